// Review: what the audit finds, with both texts side by side and what can be done.

import { get, ofMemory, patch, post } from "./api.js";
import { action, empty, faultLine, load, loading } from "./components.js";
import { announce, h, replace, stored } from "./dom.js";
import { memories, number, plural } from "./format.js";
import { meta } from "./hit.js";
import { editMemory } from "./memory-edit.js";
import { forgetMemory, receiptOf } from "./memory-forget.js";
import { link, note, toMemory } from "./router.js";

export const TITLE = "Review";
const CHECKS = [
  ["duplicates", "Duplicates", "The same text more than once."],
  ["near-duplicates", "Near-duplicates", "Texts that say the same."],
  ["contradictions", "Contradictions", "Texts that cannot both hold."],
  ["stale", "Stale", "“Next week” of a month ago, or not recalled for a year."],
  ["expired", "Expired", "No longer shown, and still in the file."],
  ["secrets", "Secrets", "Keys, tokens, passwords, card numbers."],
  ["instructions", "Instructions", "Texts that tell a model what to do."],
  ["junk", "Small talk", "Texts without content."],
  ["replaced-by-rule", "Replaced by rule", "What rules or a language model found to be out of date, newest first."],
  ["unjudged", "Undecided", "Pairs that wait for a language model, or for you."],
];
const BY_RULE = "replaced-by-rule";
const BOTH_CAN_HOLD = ["contradictions", "unjudged"];
const TEXT_SHOWN = 700;
const SHOWN = 20;
// Findings that a person wants to keep, until the page is closed.
const skipped = new Set();

export function show({ root, route, signal, canWrite }) {
  const asked = route.query.getAll("check");
  const chosen = new Set(asked.length ? asked : CHECKS.map(([name]) => name));
  const out = h("div", { class: "section" });
  const fault = faultLine();
  const boxes = CHECKS.map(([name, label, explained]) => {
    const input = h("input", {
      type: "checkbox",
      checked: chosen.has(name),
      change: () => (input.checked ? chosen.add(name) : chosen.delete(name)),
    });
    return h("label", { class: "check option" }, input, h("span", {}, label, h("span", { class: "hint" }, explained)));
  });
  const run = () =>
    load(
      out,
      async () => {
        replace(out, loading("Checking all memories … 100,000 of them take minutes."));
        const audit = await post("v1/audit", { checks: [...chosen] }, signal);
        wanted.open = matchMedia("(min-width: 760px)").matches;
        const ids = [...new Set(audit.findings.flatMap((each) => [each.id, each.other]).filter(Boolean))];
        return { audit, records: await recordsOf(ids.slice(0, 400), signal) };
      },
      ({ audit, records }) => results(audit, records, { signal, canWrite }),
      { signal },
    );
  const wanted = h(
    "details",
    { open: matchMedia("(min-width: 760px)").matches },
    h("summary", {}, "What to look for"),
    h("div", { class: "options section-gap", role: "group", "aria-label": "What to look for" }, boxes),
  );
  replace(
    root,
    h(
      "div",
      { class: "page-head" },
      h(
        "div",
        {},
        h("h1", {}, "Review"),
        h("p", {}, "Finds memories that may be wrong or need not be kept. Nothing is changed until you say so."),
      ),
    ),
    h(
      "form",
      {
        submit: (event) => {
          event.preventDefault();
          fault.show(chosen.size === 0 ? new Error("Choose at least one check.") : null);
          if (chosen.size === 0) return;
          note(link("review", "", { check: [...chosen] }));
          run();
        },
      },
      wanted,
      h("div", { class: "actions section-gap" }, h("button", { type: "submit", class: "primary" }, "Find")),
      fault,
    ),
    out,
  );
  if (asked.length) run();
}

async function recordsOf(ids, signal) {
  const found = new Map();
  for (let at = 0; at < ids.length; at += 100) {
    for (const each of Object.values(await post("v1/memories/get", { ids: ids.slice(at, at + 100) }, signal)))
      found.set(each.id, each);
  }
  return found;
}

const nameOf = (finding) => [finding.check, finding.id, finding.other].join(" ");

function results(audit, records, context) {
  const open = audit.findings.filter((each) => !skipped.has(nameOf(each)));
  const passed = audit.findings.length - open.length;
  announce(plural(open.length, "finding"));
  const told = h(
    "p",
    { class: "finding-count" },
    h("strong", {}, open.length ? plural(open.length, "finding") : "No findings"),
    ` in ${memories(audit.records)}, superseded ones included`,
    passed > 0 && `; ${plural(passed, "finding")} kept during this visit`,
    ".",
  );
  if (open.length === 0) return [told, empty("Nothing to review", "None of these checks has a finding.")];
  return [
    told,
    CHECKS.map(([name, label]) =>
      group(
        label,
        open.filter((each) => each.check === name),
        records,
        context,
      ),
    ),
  ];
}

function group(label, findings, records, context) {
  if (findings.length === 0) return null;
  const rows = h("ul", { class: "findings", "data-list": true });
  const more = h("div", {});
  const add = (from) => {
    rows.append(...findings.slice(from, from + SHOWN).map((each) => one(each, records, context)));
    replace(
      more,
      findings.length > from + SHOWN &&
        h(
          "button",
          { type: "button", click: () => add(from + SHOWN) },
          `${number(findings.length - from - SHOWN)} more`,
        ),
    );
  };
  add(0);
  return h(
    "section",
    { class: "section" },
    h("h2", {}, label, " ", h("span", { class: "muted" }, number(findings.length))),
    rows,
    more,
  );
}

// What was chosen holds from when the other began, if it is the older one.
function superseding(old, chosen) {
  const [from, begins] = [old, chosen].map((each) => each.valid_from ?? each.created_at);
  const at = Date.parse(begins) < Date.parse(from) ? from : undefined;
  return { old: old.id, new: chosen.id, reason: "chosen in a review", at };
}

function one(finding, records, { signal, canWrite }) {
  const fault = faultLine();
  const row = h("li", { class: "finding", "data-row": true, tabindex: "-1", "data-item": true });
  const done = (told, forgotten = null) => {
    announce(told);
    replace(row, h("p", { class: "done" }, told), forgotten?.receipt && receiptOf(forgotten));
    row.focus();
  };
  const write = (label, run, told, attributes) =>
    action(
      label,
      async () => {
        await run();
        done(told);
      },
      fault,
      attributes,
    );

  function side(id, text, title, other) {
    const record = records.get(id);
    // Secrets stay as the audit shows them: redacted.
    const shown = record && finding.check !== "secrets" ? record.text : text;
    const controls = canWrite &&
      record && [
        records.has(other) &&
          !(finding.check === BY_RULE && id === finding.id) &&
          write(
            "Keep this one",
            () => post("v1/memories/supersede", superseding(records.get(other), record)),
            "Done: the other one is superseded, and can be made current again.",
            recommended(id),
          ),
        h(
          "button",
          {
            type: "button",
            class: "plain",
            click: () =>
              editMemory(record, async () => {
                records.set(id, await get(ofMemory(id), {}, signal));
                row.replaceWith(one(finding, records, { signal, canWrite }));
              }),
          },
          "Edit",
        ),
        h(
          "button",
          {
            type: "button",
            class: "plain",
            click: () => forgetMemory(record, (forgotten) => done("Forgotten.", forgotten)),
          },
          "Forget",
        ),
      ];
    return h(
      "div",
      { class: "finding-side" },
      title && h("h3", {}, title),
      stored(shown, { most: TEXT_SHOWN }),
      record && meta(record),
      h("div", { class: "actions" }, h("a", { href: toMemory(id), class: "small" }, "Open"), controls),
    );
  }

  const recommended = (id) =>
    finding.verb && finding.other === id ? { class: "primary", title: "What the audit proposes" } : {};
  const only = canWrite && [
    finding.verb === "expire" &&
      write(
        "Let it expire now",
        () => patch(ofMemory(finding.id), { expires_at: new Date().toISOString() }),
        "Done: recall no longer shows it.",
      ),
    finding.verb === "redact" &&
      write(
        "Redact the secret",
        () => post("v1/audit", { checks: ["secrets"], where: { id: finding.id }, mend: true }),
        "Done: the secret is redacted, and earlier versions are removed.",
      ),
    finding.check === BY_RULE &&
      write("Undo", () => post(ofMemory(finding.id, "/restore"), {}), "Done: both are current again."),
    BOTH_CAN_HOLD.includes(finding.check) &&
      write(
        "Both hold",
        () => post("v1/links", { source: finding.id, target: finding.other, type: "elaborates" }),
        "Done: they are linked, and will not be listed again.",
      ),
  ];
  const skip = h(
    "button",
    {
      type: "button",
      class: "plain",
      click: () => {
        skipped.add(nameOf(finding));
        done("Kept as it is for this visit.");
      },
    },
    "Skip",
  );
  replace(
    row,
    h(
      "div",
      { class: "finding-head" },
      h("p", { class: "finding-reason" }, `This one ${finding.reason}.`),
      h("div", { class: "actions" }, only, skip),
    ),
    h(
      "div",
      { class: finding.other ? "pair" : "" },
      side(finding.id, finding.text, finding.other ? "This one" : "", finding.other),
      finding.other && side(finding.other, finding.other_text ?? "", "The other one", finding.id),
    ),
    fault,
  );
  return row;
}
