// A hit with its confidence and scores, and a memory as a line of a list.

import { barRow, bar, chip } from "./components.js";
import { h, hasUnseen, cut, replace, short } from "./dom.js";
import { day, figure, percent, reason, SIGNALS, time } from "./format.js";
import { link, toMemory } from "./router.js";

const TEXT_SHOWN = 420;
const COMPACT = ["cosine", "bm25", "rerank", "decay"];
const WORD = /[\p{L}\p{N}]+/gu;
const COMMON = new Set(
  "the and are was were did does has have had for from with what when where which who whom whose why how that this".split(
    " ",
  ),
);

// Forms of a word have one stem: "deploys", "deployed" and "deploy".
function stem(word) {
  return word.toLowerCase().replace(/(?<=...)(?:ing|ed|es|s)$/, "");
}

// The text, with the words that the query has too marked.
function marked(text, query) {
  const words = new Set((query.match(WORD) ?? []).filter((each) => each.length > 2 && !COMMON.has(each.toLowerCase())).map(stem));
  const parts = [];
  let at = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!words.has(stem(word))) continue;
    parts.push(text.slice(at, index), h("mark", {}, word));
    at = index + word.length;
  }
  return [...parts, text.slice(at)];
}

// The text as a link to the memory; a long one is cut, with a button that shows all of it.
export function textLink(id, text, most = TEXT_SHOWN, query = "") {
  const anchor = h("a", { href: toMemory(id), class: "stored text-link", dir: "auto", "data-item": true });
  if (text.length <= most * 1.2) {
    replace(anchor, marked(text, query));
    return [anchor, hasUnseen(text) && unseenNote()];
  }
  replace(anchor, marked(cut(text, most), query), "…");
  const more = h(
    "button",
    {
      type: "button",
      class: "link",
      click: () => {
        replace(anchor, marked(text, query));
        anchor.classList.add("whole");
        more.remove();
      },
    },
    `Show all ${text.length.toLocaleString("en")} characters`,
  );
  return [anchor, more, hasUnseen(text) && unseenNote()];
}

function unseenNote() {
  return h("p", { class: "note" }, "The text has characters that are invisible or turn the direction of writing.");
}

// Who said it: the authority, with the source or, of a URL, its host.
export function saidBy(memory) {
  const source = memory.source?.id ?? memory.source;
  if (memory.authority === "user" || !source) return memory.authority;
  const host = /^(?:https?|ftp):\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(source)?.[1];
  return `${memory.authority}:${host ?? source}`;
}

export function meta(memory) {
  const when = memory.valid_from ?? memory.created_at;
  return h(
    "div",
    { class: "meta" },
    h("time", { datetime: when, title: `${time(when)} UTC` }, day(when)),
    h("span", {}, memory.scope),
    memory.kind !== "memory" && h("span", {}, memory.kind),
    memory.context && h("span", { dir: "auto" }, short(memory.context, 60)),
    memory.superseded_by?.length > 0 && h("span", { class: "warn" }, superseded(memory)),
    (memory.contradicts ?? []).map((id) => h("a", { href: toMemory(id), class: "warn" }, "contradicts another")),
    memory.authority !== "user" && h("span", { class: memory.authority === "web" && "warn" }, `said by ${saidBy(memory)}`),
    memory.pinned && h("span", {}, "pinned"),
    (memory.tags ?? []).map((tag) => chip(tag, { href: link("search", "", { tag }) })),
  );
}

function superseded(memory) {
  const rule = memory.superseded_by_rule ? ` by rule (${short(memory.superseded_by_rule, 60)})` : "";
  return `superseded${rule}, ${memory.held_until ? `held until ${day(memory.held_until)}` : "may still hold"}`;
}

function heldOf(former) {
  return former.held_until ? `held ${day(former.held_from)} to ${day(former.held_until)}` : "which may still hold";
}

// How many memories a list leaves out because others have surely replaced them.
export function replacedNote(count) {
  if (count === 0) return null;
  const told = count === 1 ? "1 replaced memory is" : `${count.toLocaleString("en")} replaced memories are`;
  return h("p", { class: "hint" }, `${told} left out: “Include superseded” in the search shows them.`);
}

export function row(memory, extra = null) {
  return h("li", { class: "line", "data-row": true }, textLink(memory.id, memory.text), meta(memory), extra);
}

export function list(records, extra = () => null) {
  return h(
    "ul",
    { class: "lines", "data-list": true },
    records.map((record) => row(record, extra(record))),
  );
}

// The greatest value of each signal among hits: bars are drawn against it.
export function scaleOf(all) {
  const scale = { cosine: 1, speaker: 1, date: 1, decay: 1, similarity: 1, rerank: 0.25 };
  for (const signals of all) {
    for (const [name, value] of Object.entries(signals)) scale[name] = Math.max(scale[name] ?? 0, Math.abs(value));
  }
  return scale;
}

export function signalBars(signals, scale, { ranks = {}, only = null, withRanks = true } = {}) {
  const rows = SIGNALS.filter(([name]) => name in signals && (only === null || only.includes(name)));
  return h(
    "dl",
    { class: only ? "bars compact" : "bars" },
    rows.map(([name, label, explained]) => {
      const value = signals[name];
      const signed = name === "rerank";
      const rank = ranks[name] ?? signals[`${name}_rank`];
      return barRow(label, value / (scale[name] || 1), signed && value > 0 ? `+${figure(value)}` : figure(value), {
        title: explained,
        signed,
        tone: value < 0 ? "minus" : "",
        rank: withRanks ? (rank ?? "") : null,
      });
    }),
  );
}

// `read`: whether its text was read, so that its confidence is that of an answer.
export function hit(found, place, scale, query, read = true) {
  const scores = h("div", { class: "scores", id: `scores-${place}`, hidden: true });
  const toggle = h(
    "button",
    {
      type: "button",
      class: "link",
      "aria-expanded": "false",
      "aria-controls": scores.id,
      click: () => {
        if (!scores.firstChild) {
          scores.append(
            signalBars(found.signals, scale),
            h(
              "p",
              { class: "hint" },
              "Ranks are among all candidates of this query. A bar is full at 1, or at the best hit.",
            ),
          );
        }
        scores.hidden = !scores.hidden;
        toggle.setAttribute("aria-expanded", String(!scores.hidden));
      },
    },
    "All scores",
  );
  const said = found.match_reasons.map(reason).join(", ");
  return h(
    "li",
    { class: "hit", "data-row": true },
    h("span", { class: "place", "aria-hidden": "true" }, place + 1),
    h(
      "div",
      { class: "hit-main" },
      textLink(found.id, found.text, TEXT_SHOWN, query),
      meta(found),
      said && h("p", { class: "why" }, h("span", { class: "muted" }, "Found by: "), said),
      found.supersedes.map((former) =>
        h(
          "p",
          { class: "why" },
          h("span", { class: "muted" }, `Replaces, ${heldOf(former)}: `),
          h("a", { href: toMemory(former.id), class: "stored", dir: "auto" }, short(former.text, 120)),
        ),
      ),
    ),
    h(
      "div",
      { class: "hit-side" },
      read && h(
        "div",
        { class: "confidence" },
        h("span", {}, "Confidence"),
        bar(found.confidence, { tone: "strong" }),
        h("strong", {}, percent(found.confidence)),
      ),
      signalBars(found.signals, scale, { only: COMPACT, withRanks: false }),
      toggle,
    ),
    scores,
  );
}
