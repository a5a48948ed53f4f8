// Parts that several views share: states, dialogs, lists that keys move in, bars.

import { unanswered } from "./api.js";
import { announce, h, replace } from "./dom.js";

export function loading(text = "Loading …") {
  return h("p", { class: "state-line", role: "status" }, text);
}

export function empty(title, ...more) {
  return h(
    "div",
    { class: "empty" },
    h("p", { class: "empty-title" }, title),
    more.map((each) => (typeof each === "string" ? h("p", {}, each) : each)),
  );
}

export function failed(fault, retry = null) {
  if (unanswered(fault)) return h("p", { class: "muted" }, "–");
  return h(
    "div",
    { class: "fault", role: "alert" },
    h("p", {}, fault.message || String(fault)),
    retry && h("button", { type: "button", click: retry }, "Try again"),
  );
}

// A place beside a control where the server's message is shown.
export function faultLine() {
  const line = h("p", { class: "fault-line", role: "alert", hidden: true });
  line.show = (fault) => {
    line.textContent = fault === null ? "" : fault.message || String(fault);
    line.hidden = fault === null;
  };
  return line;
}

// A button that is off while `run` works, and shows its fault in `line`.
export function action(label, run, line, attributes = {}) {
  const button = h(
    "button",
    {
      type: "button",
      ...attributes,
      click: async () => {
        button.disabled = true;
        line.show(null);
        try {
          await run();
        } catch (fault) {
          if (fault?.name !== "AbortError") line.show(fault);
        } finally {
          button.disabled = false;
        }
      },
    },
    label,
  );
  return button;
}

// A control with its label; `beside` is shown next to the control.
export function field(label, control, hint = "", beside = null) {
  control.id ||= `c${Math.random().toString(36).slice(2, 9)}`;
  const note = hint && h("span", { class: "hint", id: `${control.id}-hint` }, hint);
  if (note) control.setAttribute("aria-describedby", note.id);
  return h(
    "div",
    { class: "field" },
    h("label", { for: control.id }, label),
    beside ? h("span", { class: "row nowrap" }, control, beside) : control,
    note,
  );
}

// A modal dialog; Esc closes it. Resolves when it is closed.
export function dialog(title, build, { wide = false, stays = false } = {}) {
  return new Promise((resolve) => {
    const opener = document.activeElement;
    const heading = h("h2", { id: "dialog-title" }, title);
    const box = h(
      "dialog",
      { class: wide ? "dialog wide" : "dialog", "aria-labelledby": "dialog-title", "data-stays": stays },
      heading,
    );
    const close = () => box.close();
    box.append(...[build(close)].flat());
    box.addEventListener("close", () => {
      box.remove();
      if (opener?.isConnected) opener.focus();
      resolve();
    });
    document.body.append(box);
    box.showModal();
  });
}

// A bar of `share` in [-1, 1] or [0, 1]; the figure beside it is the text alternative.
export function bar(share, { signed = false, tone = "" } = {}) {
  const inner = h("span", { class: `bar-fill ${tone}` });
  const size = Math.min(Math.abs(share), 1) * 100;
  if (signed) {
    inner.style.width = `${size / 2}%`;
    inner.style.marginInlineStart = share < 0 ? `${50 - size / 2}%` : "50%";
  } else inner.style.width = `${size}%`;
  return h("span", { class: signed ? "bar signed" : "bar", "aria-hidden": "true" }, inner);
}

export function barRow(label, share, told, { title = "", signed = false, tone = "", rank = null } = {}) {
  return h(
    "div",
    { class: "bar-row", title: title || null },
    h("dt", {}, label),
    h(
      "dd",
      {},
      bar(share, { signed, tone }),
      h("span", { class: "bar-figure" }, told),
      rank !== null && h("span", { class: "bar-rank" }, rank === "" ? "" : rank ? `rank ${rank}` : "no rank"),
    ),
  );
}

// j and k, and the arrows, move between the main links of a list; Home and End to its ends.
export function movable(list, selector = "[data-item]") {
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      move(list, selector, step);
    }
  });
  return list;
}

export function move(list, selector, step) {
  const items = [...list.querySelectorAll(selector)];
  const at = items.findIndex(
    (item) => item === document.activeElement || item.closest("[data-row]")?.contains(document.activeElement),
  );
  const next = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : at + step];
  next?.closest("details")?.setAttribute("open", "");
  next?.focus();
  next?.closest("[data-row]")?.scrollIntoView({ block: "nearest" });
}

const latest = new WeakMap();

// Loads a part of a view into `box`: loading, then the result, or the fault with a button to try again.
export async function load(box, run, show, { signal, quiet = false } = {}) {
  const mine = {};
  latest.set(box, mine);
  const stale = () => signal?.aborted || latest.get(box) !== mine;
  const before = [...box.childNodes];
  if (!quiet) replace(box, loading());
  box.setAttribute("aria-busy", "true");
  try {
    const found = await run();
    if (stale()) return;
    replace(box, show(found));
  } catch (fault) {
    if (fault?.name === "AbortError" || stale()) return;
    replace(box, unanswered(fault) && before.length ? before : failed(fault, () => load(box, run, show, { signal })));
    announce(`Error: ${fault.message}`);
  } finally {
    if (latest.get(box) === mine) box.removeAttribute("aria-busy");
  }
}

export function chip(text, attributes = {}) {
  return h(attributes.href ? "a" : "span", { class: "chip", ...attributes }, text);
}

export function tabs(label, entries, current) {
  return h(
    "nav",
    { class: "tabs", "aria-label": label },
    entries.map(([name, href]) => h("a", { href, "aria-current": name === current ? "page" : null }, name)),
  );
}
