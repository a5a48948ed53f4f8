// One memory: its text and fields, and sections on where it comes from and what is near it.

import { get, ofMemory, post } from "./api.js";
import { load, chip } from "./components.js";
import { h, replace, short, stored } from "./dom.js";
import { duration, number, share, time } from "./format.js";
import { saidBy } from "./hit.js";
import { editMemory } from "./memory-edit.js";
import { forgetMemory, receiptOf } from "./memory-forget.js";
import { linksOf } from "./memory-links.js";
import { originOf } from "./memory-origin.js";
import { successionOf, versionsOf } from "./memory-versions.js";
import { link } from "./router.js";
import { explanation } from "./why.js";

export const TITLE = "Memory";
const TEXT_SHOWN = 1600;
const METADATA_SHOWN = 2000;

export function show(view) {
  const { root, route, signal, canWrite } = view;
  const box = h("div", {});
  let current = null;
  const edit = h("button", { type: "button", click: () => editMemory(current, again) }, "Edit");
  const forget = h(
    "button",
    {
      type: "button",
      class: "danger",
      click: () => forgetMemory(current, (told) => replace(root, gone(current, told))),
    },
    "Forget",
  );
  const actions = h("div", { class: "actions", hidden: true }, canWrite && [edit, forget]);
  replace(root, h("div", { class: "page-head" }, h("h1", {}, "Memory"), actions), box);

  const read = () => get(ofMemory(route.id), {}, signal);
  const again = () => load(box, read, page, { signal, quiet: true });

  function page(memory) {
    current = memory;
    actions.hidden = false;
    view.title(short(memory.text, 60));
    const tags = memory.tags.map((tag) => chip(tag, { href: link("search", "", { tag }) }));
    const text = stored(memory.text, { most: TEXT_SHOWN, tag: "div" });
    return h(
      "div",
      { class: "memory-grid" },
      h(
        "div",
        { class: "memory-main" },
        h("div", { class: "memory-text" }, text),
        tags.length > 0 && h("div", { class: "chips" }, tags),
        whyForm(memory, view),
        successionOf(memory, view, again),
        originOf(memory, view),
        linksOf(memory, view),
        versionsOf(memory, view, again),
      ),
      h("aside", { class: "memory-side", "aria-label": "Fields" }, fields(memory)),
    );
  }

  load(box, read, page, { signal });
}

function gone(memory, forgotten) {
  const heading = h("h1", { tabindex: "-1" }, "Forgotten");
  queueMicrotask(() => heading.focus());
  return [
    heading,
    h("p", { class: "muted" }, `${memory.id} is no longer in the store.`),
    receiptOf(forgotten),
    h("p", { class: "section" }, h("a", { href: "#/search" }, "To the memories")),
  ];
}

function whyForm(memory, { signal }) {
  const input = h("input", {
    type: "text",
    autocomplete: "off",
    placeholder: "A question",
    "aria-label": "A question to ask of this memory",
  });
  const box = h("div", { "aria-live": "polite" });
  const form = h(
    "form",
    {
      class: "why-form",
      submit: (event) => {
        event.preventDefault();
        const query = input.value.trim();
        if (query) load(box, () => post("v1/explain", { query, id: memory.id, relevant: true }, signal), (told) => explanation(told), { signal });
      },
    },
    input,
    h("button", { type: "submit" }, "Would it be found?"),
  );
  return h("div", { class: "stack" }, form, box);
}

function fields(memory) {
  const rows = [
    ["Scope", h("a", { href: link("search", "", { scope: memory.scope }) }, memory.scope)],
    ["Kind", memory.kind],
    ["Context", memory.context && h("span", { dir: "auto" }, short(memory.context, 300))],
    ["Said by", saidBy(memory)],
    ["Topic", memory.topic && h("span", { dir: "auto" }, short(memory.topic, 300))],
    ["About", about(memory)],
    ["Stored", `${time(memory.created_at)} UTC`],
    ["Last written", memory.updated_at !== memory.created_at && `${time(memory.updated_at)} UTC`],
    ["Recalled", memory.access_count ? `${times(memory.access_count)}, last ${time(memory.accessed_at)} UTC` : "never"],
    ["Repeated", memory.occurrences > 1 && `${number(memory.occurrences)} times`],
    [
      "Importance",
      share(memory.importance) +
        (memory.base_importance === null ? "" : ` (ranked by ${share(memory.base_importance)})`),
    ],
    ["Pinned", memory.pinned && "yes"],
    ["Standing", memory.standing],
    ["Expires", memory.expires_at ? `${time(memory.expires_at)} UTC` : "never"],
    ["Lives for", memory.expires_after && `${duration(memory.expires_after)} after each use`],
    ["In recall", memory.indexed ? null : "no: it is not indexed"],
    [
      "Vector",
      { embedded: "yes", pending: "not yet", refused: "refused by the embedder", none: "none" }[
        memory.embedding_state
      ] ?? memory.embedding_state,
    ],
    ["Id", h("span", { class: "mono" }, memory.id)],
  ];
  const metadata =
    Object.keys(memory.metadata).length > 0 &&
    h(
      "div",
      { class: "metadata" },
      h("h2", {}, "Metadata"),
      stored(JSON.stringify(memory.metadata, null, 2), { most: METADATA_SHOWN, tag: "pre", className: "stored code" }),
    );
  return [
    h(
      "dl",
      { class: "facts" },
      rows.filter(([, value]) => value).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
    metadata,
  ];
}

function about(memory) {
  if (memory.valid_from === null) return null;
  const until = memory.valid_until ? ` until ${time(memory.valid_until)}` : "";
  return `${time(memory.valid_from)}${until} UTC${memory.valid_resolved ? ", found in the text" : ""}`;
}

function times(count) {
  return count === 1 ? "once" : `${number(count)} times`;
}
