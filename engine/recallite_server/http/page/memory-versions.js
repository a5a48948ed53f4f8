// Versions of a memory as differences, and what stands in the place of what.

import { get, ofMemory, post } from "./api.js";
import { action, faultLine, load } from "./components.js";
import { announce, cut, h } from "./dom.js";
import { day, plural, time } from "./format.js";
import { list } from "./hit.js";

const PART_SHOWN = 4000;

export function versionsOf(memory, { signal, canWrite }, again) {
  const box = h("div", {});
  const section = h(
    "section",
    { class: "section", "aria-labelledby": "versions-title" },
    h("h2", { id: "versions-title" }, "Versions"),
    box,
  );
  load(
    box,
    async () => {
      const [history, diffs] = await Promise.all([
        get(ofMemory(memory.id, "/history"), { chain: false }, signal),
        get(ofMemory(memory.id, "/diffs"), {}, signal),
      ]);
      return { history, diffs };
    },
    ({ history, diffs }) => {
      if (history.length <= 1) return h("p", { class: "muted" }, "The text was never changed.");
      const byStart = new Map(diffs.map((each) => [each.to, each.parts]));
      return [
        h("p", { class: "hint" }, `${plural(history.length, "version")}, the newest first.`),
        h(
          "ol",
          { class: "versions" },
          history
            .map((version, place) =>
              one(version, place, history, byStart.get(version.recorded_from) ?? diffs[place - 1]?.parts),
            )
            .reverse(),
        ),
      ];
    },
    { signal },
  );

  function one(version, place, history, parts) {
    const last = place === history.length - 1;
    const fault = faultLine();
    return h(
      "li",
      {},
      h(
        "div",
        { class: "row apart" },
        h(
          "h3",
          {},
          last ? "Now" : `Version ${place + 1}`,
          h(
            "span",
            { class: "muted small since" },
            ` ${time(version.recorded_from)} UTC${version.recorded_until ? ` to ${time(version.recorded_until)}` : ""}`,
          ),
        ),
        canWrite &&
          !last &&
          action(
            "Restore this text",
            async () => {
              await post(ofMemory(memory.id, "/restore"), { version: place });
              announce("Restored");
              again();
            },
            fault,
            { class: "plain" },
          ),
      ),
      fault,
      parts ? diff(parts) : h("div", { class: "diff stored", dir: "auto" }, part("equal", version.text)),
    );
  }
  return section;
}

function diff(parts) {
  return h(
    "div",
    { class: "diff stored", dir: "auto" },
    parts.map(([kind, text]) => part(kind, text)),
  );
}

function part(kind, text) {
  const tag = { insert: "ins", delete: "del" }[kind] ?? "span";
  const element = h(tag, {}, text.length > PART_SHOWN ? `${cut(text, PART_SHOWN)}…` : text);
  if (text.length <= PART_SHOWN) return element;
  const more = h(
    "button",
    {
      type: "button",
      class: "link",
      click: () => {
        element.textContent = text;
        more.remove();
      },
    },
    `Show all ${text.length.toLocaleString("en")} characters`,
  );
  return [element, more];
}

export function successionOf(memory, { signal, canWrite }, again) {
  if (memory.supersedes.length + memory.superseded_by.length === 0) return null;
  const fault = faultLine();
  const box = h("div", {});
  load(
    box,
    async () =>
      Object.values(await post("v1/memories/get", { ids: [...memory.superseded_by, ...memory.supersedes] }, signal)),
    (found) => {
      const of = (ids) => found.filter((each) => ids.includes(each.id));
      const [newer, older] = [of(memory.superseded_by), of(memory.supersedes)];
      return [
        newer.length > 0 &&
          h(
            "div",
            {},
            h("h3", {}, `Replaced by, ${memory.held_until ? `held until ${day(memory.held_until)}` : "may still hold"}`),
            memory.superseded_by_rule !== null &&
              h("p", { class: "hint" }, `Found by rule: ${memory.superseded_by_rule || "no reason is known"}`),
            list(newer),
          ),
        older.length > 0 && h("div", {}, h("h3", {}, "Replaces"), list(older)),
      ];
    },
    { signal },
  );
  const undo =
    canWrite &&
    memory.superseded_by.length > 0 &&
    action(
      "Make it current again",
      async () => {
        await post(ofMemory(memory.id, "/restore"), {});
        announce("It is current again");
        again();
      },
      fault,
    );
  return h(
    "section",
    { class: "section stack", "aria-labelledby": "succession-title" },
    h("h2", { id: "succession-title" }, "What holds now"),
    box,
    undo && h("div", {}, undo),
    fault,
  );
}
