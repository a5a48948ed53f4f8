// What a search or a list is restricted to: scope, kind, tags, time, superseded ones.

import { get } from "./api.js";
import { chip, failed, field } from "./components.js";
import { h, replace } from "./dom.js";
import { number } from "./format.js";

const MOST_SHOWN = 100;

export function fromQuery(query) {
  return {
    scope: query.get("scope") ?? "",
    kinds: query.getAll("kind"),
    tags: query.getAll("tag"),
    since: query.get("since") ?? "",
    until: query.get("until") ?? "",
    valid_at: query.get("held") ?? "",
    superseded: query.get("superseded") === "1",
  };
}

export function toQuery(filter) {
  return {
    scope: filter.scope,
    kind: filter.kinds,
    tag: filter.tags,
    since: filter.since,
    until: filter.until,
    held: filter.valid_at,
    superseded: filter.superseded,
  };
}

// The fields of the API. Days are those of UTC, and the last one is included whole.
export function toFields(filter) {
  const fields = {};
  if (filter.scope) fields.scope = filter.scope;
  if (filter.kinds.length) fields.kinds = filter.kinds;
  if (filter.tags.length) fields.tags = filter.tags;
  if (filter.since) fields.since = filter.since;
  if (filter.until) fields.until = `${filter.until}T23:59:59.999999Z`;
  if (filter.valid_at) fields.valid_at = `${filter.valid_at}T23:59:59Z`;
  if (filter.superseded) fields.include_superseded = true;
  return fields;
}

export function counted(filter) {
  const { scope, kinds, tags, since, until, valid_at, superseded } = filter;
  return [scope, since, until, valid_at, superseded].filter(Boolean).length + kinds.length + tags.length;
}

// The panel; it writes into `filter` and calls `changed`.
export function panel(filter, changed, signal) {
  const scopes = h("div", { class: "tree" });
  const kinds = h("div", {});
  const tags = h("div", { class: "stack-tight" });
  const body = h(
    "div",
    { class: "filters-body" },
    h("fieldset", {}, h("legend", {}, "Scope"), scopes),
    h("fieldset", {}, h("legend", {}, "Kind"), kinds),
    tags,
    h(
      "fieldset",
      { class: "stack-tight" },
      h("legend", {}, "Time (UTC)"),
      date("From", "since", filter, changed),
      date("To", "until", filter, changed),
      date("Held on", "valid_at", filter, changed, "What held that day, replaced since or not."),
    ),
    check("Include superseded", filter.superseded, (on) => {
      filter.superseded = on;
      changed();
    }),
    h(
      "button",
      {
        type: "button",
        class: "quiet clear",
        click: () => {
          Object.assign(filter, {
            scope: "",
            kinds: [],
            tags: [],
            since: "",
            until: "",
            valid_at: "",
            superseded: false,
          });
          changed();
          redraw();
        },
      },
      "Clear filters",
    ),
  );
  function redraw() {
    const fresh = panel(filter, changed, signal);
    box.replaceWith(fresh);
    fresh.open = box.open;
    fresh.querySelector("button.clear")?.focus();
  }
  const box = h("details", { class: "filters" }, h("summary", {}, "Filters"), body);
  box.open = matchMedia("(min-width: 1100px)").matches;
  scopeTree(scopes, filter, changed, signal);
  fill(kinds, () => kindList(filter, changed, signal));
  fill(tags, () => tagInput(filter, changed, signal));
  return box;
}

async function fill(box, build) {
  try {
    replace(box, await build());
  } catch (fault) {
    if (fault.name !== "AbortError") replace(box, failed(fault));
  }
}

function check(label, on, changed, count = null) {
  const input = h("input", { type: "checkbox", checked: on, change: () => changed(input.checked) });
  return h(
    "label",
    { class: "check" },
    input,
    h("span", {}, label),
    count !== null && h("span", { class: "count" }, number(count)),
  );
}

function date(label, name, filter, changed, hint = "") {
  const input = h("input", {
    type: "date",
    value: filter[name],
    change: () => {
      filter[name] = input.value;
      changed();
    },
  });
  return field(label, input, hint);
}

async function kindList(filter, changed, signal) {
  const stats = await get("v1/stats", {}, signal);
  const names = [...new Set([...Object.keys(stats.kinds), ...filter.kinds])];
  // As the tree of scopes counts: what holds.
  const counts = await Promise.all(names.map((kind) => get("v1/count", { kinds: [kind] }, signal)));
  const kinds = Object.fromEntries(names.map((kind, place) => [kind, counts[place]]));
  if (names.length === 0) return h("p", { class: "hint" }, "No memories yet.");
  return names.map((kind) =>
    check(
      kind,
      filter.kinds.includes(kind),
      (on) => {
        filter.kinds = on ? [...filter.kinds, kind] : filter.kinds.filter((each) => each !== kind);
        changed();
      },
      kinds[kind] ?? 0,
    ),
  );
}

async function tagInput(filter, changed, signal) {
  const known = await get("v1/tags", {}, signal);
  const chosen = h("div", { class: "chips" });
  const options = h(
    "datalist",
    { id: "known-tags" },
    known
      .sort((one, other) => other.memories - one.memories)
      .slice(0, 500)
      .map(({ tag, memories }) => h("option", { value: tag }, number(memories))),
  );
  const input = h("input", { type: "text", list: "known-tags", autocomplete: "off", placeholder: "Add a tag" });
  const add = () => {
    const tag = input.value.trim();
    input.value = "";
    if (tag === "" || filter.tags.includes(tag)) return;
    filter.tags = [...filter.tags, tag];
    draw();
    changed();
  };
  input.addEventListener("change", add);
  function draw() {
    replace(
      chosen,
      filter.tags.map((tag) =>
        h(
          "button",
          {
            type: "button",
            class: "chip-button",
            "aria-label": `Remove tag ${tag}`,
            click: () => {
              filter.tags = filter.tags.filter((each) => each !== tag);
              draw();
              changed();
              input.focus();
            },
          },
          `${tag} ×`,
        ),
      ),
    );
  }
  draw();
  return [field("Tags", input, "Any of them."), options, chosen];
}

// Scopes as a tree, two levels read at a time: the second says whether the first can be opened.
async function scopeTree(box, filter, changed, signal) {
  const group = `scope${Math.random().toString(36).slice(2, 8)}`;
  const choice = (path, label, count) => {
    const input = h("input", {
      type: "radio",
      name: group,
      checked: filter.scope === path,
      change: () => {
        filter.scope = path;
        changed();
      },
    });
    return h(
      "label",
      { class: "check", title: path || null },
      input,
      h("span", {}, label),
      count !== null && h("span", { class: "count" }, number(count)),
    );
  };
  async function level(path) {
    const found = await get("v1/scopes", { scope: path || "/", depth: 2 }, signal);
    const children = new Map();
    let total = 0;
    for (const { scope, memories } of found) {
      total += memories;
      const [name, deeper] = scope.slice(path.length).split("/").slice(1);
      if (!name) continue;
      const child = children.get(name) ?? { path: `${path}/${name}`, count: 0, opens: false };
      child.count += memories;
      child.opens ||= deeper !== undefined;
      children.set(name, child);
    }
    return {
      total,
      children: [...children].sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true })),
    };
  }
  function branch(children, most = MOST_SHOWN) {
    const list = h(
      "ul",
      {},
      children.slice(0, most).map(([name, child]) => node(name, child, children.length === 1)),
    );
    if (children.length > most) {
      const more = h(
        "button",
        { type: "button", class: "link", click: () => list.replaceWith(branch(children, most * 10)) },
        `${number(children.length - most)} more`,
      );
      list.append(h("li", {}, more));
    }
    return list;
  }
  function node(name, child, alone) {
    const below = h("div", { hidden: true });
    const toggle =
      child.opens &&
      h("button", {
        type: "button",
        class: "twist",
        "aria-expanded": "false",
        "aria-label": `Scopes in ${child.path}`,
        click: async () => {
          below.hidden = !below.hidden;
          toggle.setAttribute("aria-expanded", String(!below.hidden));
          if (!below.hidden && !below.firstChild)
            await fill(below, async () => branch((await level(child.path)).children));
        },
      });
    const item = h(
      "li",
      {},
      h("div", { class: "node" }, toggle || h("span", { class: "twist" }), choice(child.path, name, child.count)),
      below,
    );
    if (toggle && (alone || filter.scope.startsWith(`${child.path}/`))) toggle.click();
    return item;
  }
  await fill(box, async () => {
    const { total, children } = await level("");
    return [h("div", { class: "node" }, h("span", { class: "twist" }), choice("", "All", total)), branch(children)];
  });
}

// The filters in force, as chips that say what they are.
export function inForce(filter) {
  const told = [
    filter.scope && `scope ${filter.scope}`,
    ...filter.kinds.map((kind) => `kind ${kind}`),
    ...filter.tags.map((tag) => `tag ${tag}`),
    filter.since && `from ${filter.since}`,
    filter.until && `to ${filter.until}`,
    filter.valid_at && `held on ${filter.valid_at}`,
    filter.superseded && "with superseded",
  ].filter(Boolean);
  return told.length
    ? h(
        "div",
        { class: "chips", "aria-label": "Filters in force" },
        told.map((each) => chip(each)),
      )
    : null;
}
