// Documents: the list, and one with its passages.

import { get } from "./api.js";
import { empty, load, movable } from "./components.js";
import { announce, h, replace, short, stored } from "./dom.js";
import { bytes, day, number, plural, time } from "./format.js";
import { textLink } from "./hit.js";
import { link } from "./router.js";
import { head } from "./source-head.js";

const LISTED = 200;
const PASSAGES = 50;

export function documents({ root, signal }) {
  const box = h("div", {});
  replace(root, head("Documents", "Files and pages that were read into the memory, as passages."), box);
  load(
    box,
    () => get("v1/documents", { limit: LISTED }, signal),
    (rows) => {
      if (rows.length === 0) return empty("No documents", "Documents are read in with recallite knowledge ingest.");
      announce(plural(rows.length, "document"));
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
                { href: link("document", each.id), class: "text-link stored", dir: "auto", "data-item": true },
                each.title ?? each.source,
              ),
              h(
                "div",
                { class: "meta" },
                h("span", {}, each.source),
                h("span", {}, plural(each.chunks, "passage")),
                h("span", {}, bytes(each.size_bytes)),
                h("span", {}, `read ${day(each.updated_at)}`),
                h("span", {}, each.scope),
              ),
            ),
          ),
        ),
      );
    },
    { signal },
  );
}

export function oneDocument(view) {
  const { root, route, signal } = view;
  const box = h("div", {});
  const heading = h("h1", { class: "stored", dir: "auto" }, "Document");
  replace(
    root,
    h("p", { class: "small" }, h("a", { href: "#/documents" }, "Documents")),
    h("div", { class: "page-head" }, heading),
    box,
  );
  load(
    box,
    () => get(`v1/documents/${encodeURIComponent(route.id)}`, { scope: route.query.get("scope") }, signal),
    (found) => {
      heading.textContent = found.title ?? found.source;
      view.title(short(heading.textContent, 60));
      const passages = h("ol", { class: "passages" });
      const more = h("div", {});
      const next = async (from) => {
        const where = { source: found.source, position: { gte: from, lt: from + PASSAGES } };
        const { memories: rows } = await get(
          "v1/memories",
          { scope: found.scope, kinds: ["chunk"], where, limit: 2 * PASSAGES },
          signal,
        );
        passages.append(...rows.sort((one, other) => one.position - other.position).map(passage));
        replace(
          more,
          from + PASSAGES < found.chunks &&
            h("button", { type: "button", click: () => next(from + PASSAGES) }, "More passages"),
        );
      };
      load(
        more,
        () => next(0),
        () => more.firstChild,
        { signal },
      );
      const facts = [
        ["Source", found.source],
        ["Scope", found.scope],
        ["Type", found.media_type],
        ["Size", bytes(found.size_bytes)],
        ["First read", `${time(found.created_at)} UTC`],
        ["Last read", `${time(found.updated_at)} UTC`],
        ["SHA-256", h("span", { class: "mono" }, found.content_hash)],
      ];
      const metadata =
        Object.keys(found.metadata).length > 0 &&
        stored(JSON.stringify(found.metadata, null, 2), { most: 2000, tag: "pre", className: "stored code" });
      return [
        h(
          "dl",
          { class: "facts" },
          facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
        ),
        metadata,
        h(
          "section",
          { class: "section", "aria-labelledby": "passages-title" },
          h("h2", { id: "passages-title" }, plural(found.chunks, "passage")),
          movable(passages),
          more,
        ),
      ];
    },
    { signal },
  );
}

function passage(record) {
  return h(
    "li",
    { "data-row": true },
    h("span", { class: "place" }, number(record.position)),
    h(
      "div",
      {},
      record.context && h("p", { class: "small muted", dir: "auto" }, short(record.context, 160)),
      textLink(record.id, record.text, 600),
    ),
  );
}
