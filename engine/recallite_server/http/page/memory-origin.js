// Where a memory comes from: what stands around it in its document, session or other source.

import { get } from "./api.js";
import { load } from "./components.js";
import { h, short } from "./dom.js";
import { number, plural } from "./format.js";
import { link, toMemory } from "./router.js";
import { message } from "./sessions.js";

const AROUND = 2;
const SESSION_KEYS = ["session", "session_id", "conversation", "conversation_id", "thread_id"];

export function originOf(memory, { signal }) {
  const named = SESSION_KEYS.map((key) => memory.metadata[key]).find((each) => typeof each === "string");
  if (memory.source === null && named === undefined) return null;
  const around = h("div", {});
  const said = h("div", {});
  if (memory.source !== null) {
    load(
      around,
      () => neighbours(memory, signal),
      (found) => (found.length > 1 ? passages(found, memory) : null),
      { signal },
    );
  }
  load(
    said,
    () => session([named, memory.kind === "chunk" ? null : memory.source].filter(Boolean), signal),
    (found) => found && messages(found, memory),
    { signal, quiet: true },
  );
  return h(
    "section",
    { class: "section stack", "aria-labelledby": "origin-title" },
    h("h2", { id: "origin-title" }, "Where it comes from"),
    h(
      "dl",
      { class: "facts" },
      facts(memory, named).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
    around,
    said,
  );
}

function facts(memory, named) {
  const { lines, page, headings } = memory.metadata;
  const source =
    memory.kind === "chunk"
      ? h("a", { href: link("document", memory.source, { scope: memory.scope }) }, memory.source)
      : memory.source;
  return [
    ["Source", source],
    ["Session", named],
    ["Position", memory.position !== null && number(memory.position)],
    ["Lines", Array.isArray(lines) && `${lines[0]} to ${lines[1]}`],
    ["Page", typeof page === "number" && number(page)],
    ["Headings", Array.isArray(headings) && headings.length > 0 && short(headings.join(" › "), 200)],
  ].filter(([, value]) => value);
}

async function neighbours(memory, signal) {
  if (memory.position === null) {
    const query = {
      scope: memory.scope,
      where: { source: memory.source },
      include_superseded: true,
      order: "oldest",
      limit: 2 * AROUND + 1,
    };
    return (await get("v1/memories", query, signal)).memories;
  }
  const where = { source: memory.source, position: { gte: memory.position - AROUND, lte: memory.position + AROUND } };
  const query = { scope: memory.scope, where, include_superseded: true, limit: 50 };
  const { memories: found } = await get("v1/memories", query, signal);
  return found.sort((one, other) => one.position - other.position);
}

function passages(found, memory) {
  return h(
    "div",
    {},
    h("h3", {}, "Around it in its source"),
    h(
      "ol",
      { class: "passages" },
      found.map((each) =>
        h(
          "li",
          { "aria-current": each.id === memory.id ? "true" : null },
          each.position !== null && h("span", { class: "place" }, number(each.position)),
          each.id === memory.id
            ? h("div", { class: "stored", dir: "auto" }, short(each.text, 400))
            : h("a", { href: toMemory(each.id), class: "stored text-link", dir: "auto" }, short(each.text, 300)),
        ),
      ),
    ),
  );
}

// The session of this name, with its messages; null if there is none.
async function session(names, signal) {
  if (names.length === 0) return null;
  const all = await get("v1/sessions", {}, signal);
  const found = all.find((each) => names.includes(each.id));
  if (!found) return null;
  return {
    found,
    messages: await get(
      `v1/sessions/${encodeURIComponent(found.id)}/messages`,
      { agent: found.agent, skip_damaged: true },
      signal,
    ),
  };
}

function messages({ found, messages: all }, memory) {
  const at = memory.position !== null && memory.position < all.length ? memory.position : all.length - 1;
  const from = Math.max(0, at - AROUND);
  const shown = all.slice(from, at + AROUND + 1);
  return h(
    "div",
    {},
    h("h3", {}, `In the session ${found.id}`),
    h(
      "ol",
      { class: "messages", start: from },
      shown.map((each, place) => message(each, from + place, from + place === memory.position)),
    ),
    h(
      "p",
      {},
      h(
        "a",
        { href: link("session", found.id, { agent: found.agent ?? "" }) },
        `Open the session, ${plural(all.length, "message")}`,
      ),
    ),
  );
}
