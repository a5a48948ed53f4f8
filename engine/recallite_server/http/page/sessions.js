// Sessions: the list, the search in their messages, and one with its messages.

import { get, post } from "./api.js";
import { empty, field, load, movable } from "./components.js";
import { announce, debounced, h, replace, short, stored } from "./dom.js";
import { number, plural, time } from "./format.js";
import { list } from "./hit.js";
import { link } from "./router.js";
import { head } from "./source-head.js";

const LISTED = 200;
const MESSAGES = 200;

export function sessions({ root, signal }) {
  const box = h("div", {});
  const found = h("div", { class: "results" });
  const input = h("input", { type: "search", autocomplete: "off", placeholder: "Words of a message" });
  const all = () =>
    load(
      box,
      () => get("v1/sessions", { limit: LISTED }, signal),
      (rows) => {
        if (rows.length === 0)
          return empty("No sessions", "Conversations that an agent keeps in the memory are listed here.");
        announce(plural(rows.length, "session"));
        return movable(
          h(
            "ul",
            { class: "lines", "data-list": true },
            rows.map((each) =>
              h(
                "li",
                { class: "line", "data-row": true },
                h(
                  "a",
                  {
                    href: link("session", each.id, { agent: each.agent ?? "" }),
                    class: "text-link stored",
                    dir: "auto",
                    "data-item": true,
                  },
                  each.id,
                ),
                h(
                  "div",
                  { class: "meta" },
                  h("span", {}, plural(each.messages, "message")),
                  h("span", {}, `last used ${time(each.updated_at)} UTC`),
                  each.agent && h("span", {}, `agent ${each.agent}`),
                  each.provider && h("span", {}, each.provider),
                ),
              ),
            ),
          ),
        );
      },
      { signal },
    );
  const search = () => {
    const query = input.value.trim();
    box.hidden = query !== "";
    if (query === "") {
      replace(found);
      return;
    }
    load(
      found,
      () => post("v1/sessions/search", { query, limit: 30 }, signal),
      (hits) => {
        if (input.value.trim() !== query) return found.firstChild;
        announce(plural(hits.length, "message"));
        if (hits.length === 0) return empty("No message has these words");
        return movable(
          h(
            "ul",
            { class: "lines", "data-list": true },
            hits.map((each) =>
              h(
                "li",
                { class: "line", "data-row": true },
                h(
                  "a",
                  {
                    href: link("session", each.session, { agent: each.agent ?? "", at: each.position }),
                    class: "text-link stored",
                    dir: "auto",
                    "data-item": true,
                  },
                  short(each.content, 300),
                ),
                h(
                  "div",
                  { class: "meta" },
                  h("span", {}, each.session),
                  each.role && h("span", {}, each.role),
                  h("span", {}, `${time(each.created_at)} UTC`),
                ),
              ),
            ),
          ),
        );
      },
      { signal, quiet: true },
    );
  };
  input.addEventListener("input", debounced(search, 180));
  replace(
    root,
    head("Sessions", "Conversations, message by message."),
    h("div", { class: "narrow" }, field("Search messages", input)),
    found,
    box,
  );
  all();
}

// A message as its agent gave it: texts as text, all else as JSON.
export function message(given, place, marked = false) {
  const role = typeof given.role === "string" ? given.role : typeof given.type === "string" ? given.type : "item";
  return h(
    "li",
    { class: `message${marked ? " marked" : ""}`, id: `message-${place}`, "aria-current": marked ? "true" : null },
    h(
      "div",
      { class: "message-head" },
      h("span", { class: "role" }, short(role, 40)),
      h("span", { class: "muted" }, number(place)),
    ),
    h("div", { class: "message-body" }, contents(given)),
  );
}

function contents(given) {
  if (
    typeof given.content === "string" &&
    given.content !== "" &&
    Object.keys(given).every((key) => ["role", "content", "created_at", "id"].includes(key))
  )
    return stored(given.content, { most: 1200 });
  const parts = Array.isArray(given.content) ? given.content : [];
  if (parts.length > 0 && parts.every((part) => typeof part?.text === "string"))
    return parts.map((part) => stored(part.text, { most: 1200 }));
  return stored(JSON.stringify(given, null, 2), { most: 1200, tag: "pre", className: "stored code" });
}

export function oneSession(view) {
  const { root, route, signal } = view;
  const id = route.id;
  const at = route.query.get("at") === null ? -1 : Number(route.query.get("at"));
  const box = h("div", {});
  const made = h("div", {});
  view.title(short(id, 60));
  replace(
    root,
    h("p", { class: "small" }, h("a", { href: "#/sessions" }, "Sessions")),
    h("div", { class: "page-head" }, h("h1", { class: "stored", dir: "auto" }, id)),
    box,
    made,
  );
  load(
    box,
    () =>
      get(
        `v1/sessions/${encodeURIComponent(id)}/messages`,
        { agent: route.query.get("agent"), skip_damaged: true },
        signal,
      ),
    (all) => {
      if (all.length === 0) return empty("This session has no messages");
      const from = at >= 0 ? Math.max(0, Math.min(at - 20, all.length - MESSAGES)) : Math.max(0, all.length - MESSAGES);
      const rows = h(
        "ol",
        { class: "messages" },
        all.slice(from, from + MESSAGES).map((each, place) => message(each, from + place, from + place === at)),
      );
      const earlier =
        from > 0 &&
        h(
          "button",
          {
            type: "button",
            click: () => {
              rows.prepend(...all.slice(0, from).map((each, place) => message(each, place)));
              earlier.remove();
            },
          },
          `Show ${plural(from, "earlier message")}`,
        );
      const rest = all.length - from - MESSAGES;
      const later =
        rest > 0 &&
        h(
          "button",
          {
            type: "button",
            click: () => {
              rows.append(...all.slice(from + MESSAGES).map((each, place) => message(each, from + MESSAGES + place)));
              later.remove();
            },
          },
          `Show ${plural(rest, "later message")}`,
        );
      requestAnimationFrame(() => document.getElementById(`message-${at}`)?.scrollIntoView({ block: "center" }));
      return [h("p", { class: "muted small" }, plural(all.length, "message")), earlier, rows, later];
    },
    { signal },
  );
  load(
    made,
    () =>
      get(
        "v1/memories",
        {
          where: { or: [{ source: id }, { "metadata.session": id }, { "metadata.session_id": id }] },
          include_superseded: true,
          order: "oldest",
          limit: 50,
        },
        signal,
      ),
    ({ memories: found }) => {
      if (found.length === 0) return null;
      return h(
        "section",
        { class: "section", "aria-labelledby": "made-title" },
        h("h2", { id: "made-title" }, "Memories from this session"),
        movable(list(found)),
      );
    },
    { signal, quiet: true },
  );
}
