// Starts the page: the token, what the server allows, the views and the keys that work everywhere.

import { askForTokenWith, get, takeToken } from "./api.js";
import { dialog, failed, field, loading, move } from "./components.js";
import { announce, h, replace } from "./dom.js";
import { go, parse } from "./router.js";
import { keep, kept } from "./storage.js";
import * as map from "./map-view.js";
import * as memory from "./memory.js";
import * as review from "./review.js";
import * as search from "./search.js";
import * as sources from "./sources.js";
import * as state from "./state.js";
import * as timeline from "./timeline.js";

const VIEWS = {
  search,
  timeline,
  map,
  review,
  state,
  memory,
  sources,
  sessions: sources,
  session: sources,
  documents: sources,
  document: sources,
};
const NAV = { memory: "search", sessions: "sources", session: "sources", documents: "sources", document: "sources" };
const KEYS = [
  ["/", "Go to the search"],
  ["j, k or ↓, ↑", "Next and previous in a list"],
  ["Enter", "Open what has the focus"],
  ["Esc", "Close a dialog"],
  ["+, −, arrows, 0", "Zoom, move and reset the map, when it has the focus"],
  ["t", "Light or dark"],
  ["?", "These keys"],
];

const main = document.getElementById("main");
let server = null;
let leaving = null;
let first = true;

function askForToken(refused) {
  let given = null;
  return dialog(
    "Token",
    (close) => {
      const input = h("input", { type: "password", autocomplete: "off", required: true });
      const form = h(
        "form",
        {
          method: "dialog",
          class: "stack",
          submit: (event) => {
            event.preventDefault();
            given = input.value.trim() || null;
            close();
          },
        },
        h("p", {}, refused ? "The server does not accept this token." : "The server asks for a token."),
        field(
          "Token",
          input,
          "recallite token create makes one; recallite inspect prints one in its address. It is kept until you close this tab.",
        ),
        h("div", { class: "actions" }, h("button", { type: "submit", class: "primary" }, "Continue")),
      );
      return form;
    },
    { stays: true },
  ).then(() => given);
}

function showKeys() {
  const single = h("input", {
    type: "checkbox",
    checked: kept("keys") !== "off",
    change: () => keep("keys", single.checked ? "on" : "off"),
  });
  dialog("Keys", (close) => [
    h(
      "dl",
      { class: "keys" },
      KEYS.map(([key, does]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, does))),
    ),
    h("label", { class: "check" }, single, h("span", {}, "Single keys work anywhere on the page")),
    h("div", { class: "actions" }, h("button", { type: "button", click: close }, "Close")),
  ]);
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function tellTheme() {
  const button = document.getElementById("theme");
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", `${button.textContent} theme`);
}

function turnTheme() {
  const chosen = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = chosen;
  keep("theme", chosen);
  tellTheme();
  document.dispatchEvent(new Event("themechange"));
}

function show() {
  const route = parse(location.hash);
  const view = VIEWS[route.name] ?? null;
  for (const open of document.querySelectorAll("dialog:not([data-stays])")) open.close();
  leaving?.abort();
  leaving = new AbortController();
  const shown = NAV[route.name] ?? route.name;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.getAttribute("href") === `#/${shown}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  replace(main);
  scrollTo(0, 0);
  const title = (text) => {
    document.title = `${text} · Recallite`;
  };
  if (view === null) {
    title("Not found");
    replace(main, h("h1", {}, "There is no such view"), h("p", {}, h("a", { href: "#/search" }, "To the search")));
    return;
  }
  title(view.TITLE);
  view.show({ root: main, route, signal: leaving.signal, canWrite: !server.read_only, server, title });
  if (!first && !main.contains(document.activeElement)) {
    const heading = main.querySelector("h1");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
    announce(view.TITLE);
  }
  first = false;
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (kept("keys") === "off" || event.target.closest?.("input, textarea, select, dialog, canvas")) return;
  if (event.key === "/") {
    event.preventDefault();
    const input = document.getElementById("query");
    if (input) input.focus();
    else {
      go("#/search");
      addEventListener("hashchange", () => document.getElementById("query")?.focus(), { once: true });
    }
  } else if (event.key === "?") showKeys();
  else if (event.key === "t") turnTheme();
  else if (event.key === "j" || event.key === "k") {
    const list = main.querySelector("[data-list]");
    if (list) move(list, "[data-item]", event.key === "j" ? 1 : -1);
  }
}

async function start() {
  takeToken();
  tellTheme();
  askForTokenWith(askForToken);
  document.getElementById("theme").addEventListener("click", turnTheme);
  document.getElementById("keys").addEventListener("click", showKeys);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  const lost = document.getElementById("lost");
  document.addEventListener("serverlost", () => lost.toggleAttribute("hidden", false));
  document.addEventListener("serverfound", () => lost.toggleAttribute("hidden", true));
  document.getElementById("again").addEventListener("click", () => (server === null ? location.reload() : show()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    tellTheme();
    document.dispatchEvent(new Event("themechange"));
  });
  replace(main, loading());
  try {
    server = await get("v1/page/state");
  } catch (fault) {
    replace(
      main,
      h("h1", {}, "Recallite"),
      failed(fault, () => location.reload()),
    );
    return;
  }
  document.getElementById("mode").hidden = !server.read_only;
  if (server.scope !== "/") document.getElementById("place").textContent = server.scope;
  addEventListener("hashchange", () => {
    if (location.hash.startsWith("#token=")) takeToken();
    show();
  });
  document.addEventListener("keydown", onKey);
  show();
}

start();
