// Forgetting, with a confirmation and a receipt of what was removed from where.

import { post } from "./api.js";
import { action, dialog, faultLine, load } from "./components.js";
import { announce, h, short } from "./dom.js";
import { bytes, memories, number, plural, time } from "./format.js";

// `done(forgotten)` is called after the server has removed it.
export function forgetMemory(memory, done) {
  const receipt = h("input", { type: "checkbox" });
  const chain = h("input", { type: "checkbox" });
  const fault = faultLine();
  return dialog("Forget this memory?", (close) => {
    const cancel = h("button", { type: "button", autofocus: true, click: close }, "Cancel");
    return h(
      "div",
      { class: "stack" },
      h("blockquote", { class: "quoted stored", dir: "auto" }, short(memory.text, 280)),
      h("p", {}, "Its text, versions, vectors and links are removed for good. This cannot be undone."),
      memory.supersedes.length > 0 && formers(memory, chain),
      h(
        "label",
        { class: "check" },
        receipt,
        h(
          "span",
          {},
          "With a receipt: the file is compacted and searched for what was removed. This can take a while.",
        ),
      ),
      fault,
      h(
        "div",
        { class: "actions" },
        action(
          "Forget",
          async () => {
            const forgotten = await post("v1/memories/forget", {
              id: memory.id,
              receipt: receipt.checked,
              chain: chain.checked,
            });
            announce("Forgotten");
            close();
            done(forgotten);
          },
          fault,
          { class: "danger primary" },
        ),
        cancel,
      ),
    );
  });
}

// What the memory replaced, which holds again unless it is forgotten too.
function formers(memory, chain) {
  const box = h("div", {});
  load(
    box,
    async () => Object.values(await post("v1/memories/get", { ids: memory.supersedes })),
    (records) => records.map((each) => h("blockquote", { class: "quoted stored", dir: "auto" }, short(each.text, 160))),
  );
  return h(
    "div",
    { class: "stack-tight" },
    h("p", {}, h("strong", {}, "What it replaced will hold again:")),
    box,
    h("label", { class: "check" }, chain, h("span", {}, "Forget what it replaced too")),
  );
}

export function receiptOf(forgotten) {
  const { receipt } = forgotten;
  const versions = forgotten.versions ? ` and ${plural(forgotten.versions, "earlier version")}` : "";
  const again = forgotten.holds_again.length;
  const holds = again ? ` What it replaced holds again: ${memories(again)}.` : "";
  const removed = h("p", {}, `${memories(forgotten.records)}${versions} removed.${holds}`);
  if (!receipt) return h("div", { class: "section" }, removed);
  const rows = (counts, shown = number) =>
    Object.entries(counts).map(([name, count]) =>
      h("tr", {}, h("td", { class: "mono" }, name), h("td", { class: "number" }, shown(count))),
    );
  const table = (caption, head, body) =>
    h(
      "div",
      {},
      h("h3", {}, caption),
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h("tr", {}, h("th", { scope: "col" }, head[0]), h("th", { scope: "col", class: "number" }, head[1])),
        ),
        h("tbody", {}, body),
      ),
    );
  return h(
    "section",
    { class: "section receipt", "aria-labelledby": "receipt-title" },
    h("h2", { id: "receipt-title" }, "Receipt"),
    h("p", { class: "verdict" }, h("strong", {}, verdict(receipt))),
    removed,
    h(
      "p",
      { class: "muted small" },
      `Checked ${time(receipt.erased_at)} UTC: ${plural(receipt.searched, "byte sequence")} searched for, `,
      `${plural(receipt.too_short, "value")} too short to search for. `,
      receipt.index_snapshot && "The index snapshot was deleted.",
    ),
    receipt.problems.length > 0 &&
      h(
        "ul",
        { class: "problems" },
        receipt.problems.map((each) => h("li", { class: "fault" }, each)),
      ),
    h(
      "div",
      { class: "two" },
      table("Removed", ["Table", "Rows"], rows(receipt.removed)),
      table("Files searched", ["File", "Size"], rows(receipt.files, bytes)),
    ),
    Object.keys(receipt.elsewhere).length > 0 &&
      h(
        "div",
        { class: "elsewhere" },
        table("The same bytes in rows that stay", ["Column", "Rows"], rows(receipt.elsewhere)),
      ),
  );
}

function verdict({ complete, elsewhere }) {
  if (!complete) return "Something is left: see the problems.";
  if (Object.keys(elsewhere).length === 0) return "Nothing of it is left in the files.";
  return "Nothing of it is left in the files, but for rows that stay and say the same.";
}
