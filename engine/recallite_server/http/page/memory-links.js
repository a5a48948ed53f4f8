// The links of a memory: a small graph of what is within two links, and a list.

import { get, ofMemory } from "./api.js";
import { load } from "./components.js";
import { h, short, svg } from "./dom.js";
import { share } from "./format.js";
import { toMemory } from "./router.js";

// Fewer links say all in the list.
const LEAST_DRAWN = 3;
const MOST_NEAR = 10;
const MOST_FAR = 16;

export function linksOf(memory, { signal }) {
  const box = h("div", {});
  load(
    box,
    async () => {
      const [links, reached] = await Promise.all([
        get(ofMemory(memory.id, "/neighbors"), {}, signal),
        get(ofMemory(memory.id, "/traverse"), { depth: 2, limit: 60 }, signal),
      ]);
      const near = reached.filter((each) => each.distance === 1).slice(0, MOST_NEAR);
      const further = await Promise.all(near.map((each) => get(ofMemory(each.record.id, "/neighbors"), {}, signal)));
      return { links, reached, near, edges: further.flat() };
    },
    ({ links, reached, near, edges }) => {
      // What it replaced, and what replaced it, stands above.
      const shown = links.filter((each) => each.type !== "supersedes");
      if (shown.length === 0) return h("p", { class: "muted" }, "It has no other links.");
      const texts = new Map(reached.map((each) => [each.record.id, each.record.text]));
      return [
        links.length >= LEAST_DRAWN && graph(memory, near, reached, [...links, ...edges]),
        h(
          "ul",
          { class: "lines", "data-list": true },
          shown.map((each) => line(memory.id, each, texts)),
        ),
      ];
    },
    { signal },
  );
  return h(
    "section",
    { class: "section", "aria-labelledby": "links-title" },
    h("h2", { id: "links-title" }, "Links"),
    box,
  );
}

function line(id, link, texts) {
  const out = link.source === id;
  const other = out ? link.target : link.source;
  return h(
    "li",
    { class: "line", "data-row": true },
    h(
      "a",
      { href: toMemory(other), class: "text-link stored", dir: "auto", "data-item": true },
      short(texts.get(other) ?? other, 200),
    ),
    h(
      "div",
      { class: "meta" },
      h("span", {}, out ? `${link.type}, from this one` : `${link.type}, to this one`),
      h("span", {}, `strength ${share(link.strength)}`),
      link.reason && h("span", { dir: "auto" }, short(link.reason, 160)),
    ),
  );
}

// Nodes on two rings; one of the outer ring lies behind the node through which it is reached.
function graph(memory, near, reached, edges) {
  const far = reached.filter((each) => each.distance === 2).slice(0, MOST_FAR);
  // Narrow screens have room for short labels of the inner ring; the list has the texts.
  const narrow = matchMedia("(max-width: 760px)").matches;
  const width = narrow ? 360 : 800;
  const height = near.length + far.length > 6 ? 420 : 280;
  const rings = [0, 0.26 * height, 0.42 * height];
  const spots = new Map([[memory.id, { x: width / 2, y: height / 2 }]]);
  const stretch = (narrow ? 130 : 250) / rings[2];
  const spot = (ring, angle) => ({
    x: width / 2 + stretch * rings[ring] * Math.cos(angle),
    y: height / 2 + rings[ring] * Math.sin(angle),
  });
  const angles = new Map();
  near.forEach((each, place) => {
    const angle = -Math.PI / 2 + (2 * Math.PI * (place + 0.5)) / near.length;
    angles.set(each.record.id, angle);
    spots.set(each.record.id, spot(1, angle));
  });
  const parents = new Map();
  for (const each of far) {
    const edge = edges.find(
      (one) =>
        (one.source === each.record.id && angles.has(one.target)) ||
        (one.target === each.record.id && angles.has(one.source)),
    );
    if (!edge) continue;
    const parent = angles.has(edge.source) ? edge.source : edge.target;
    parents.set(parent, [...(parents.get(parent) ?? []), each.record.id]);
  }
  for (const [parent, children] of parents) {
    const reach = (2 * Math.PI) / near.length / (children.length + 1);
    children.forEach((id, place) =>
      spots.set(id, spot(2, angles.get(parent) + reach * (place - (children.length - 1) / 2))),
    );
  }
  const seen = new Set();
  const lines = edges
    .filter((edge) => {
      const name = [edge.source, edge.target].sort().join(" ") + edge.type;
      if (seen.has(name) || !spots.has(edge.source) || !spots.has(edge.target)) return false;
      seen.add(name);
      return true;
    })
    .map((edge) => {
      const [from, to] = [spots.get(edge.source), spots.get(edge.target)];
      const mine = edge.source === memory.id || edge.target === memory.id;
      return svg(
        "g",
        {},
        svg("line", {
          x1: from.x,
          y1: from.y,
          x2: to.x,
          y2: to.y,
          class: "edge",
          "stroke-width": 1 + 2 * edge.strength,
        }),
        mine &&
          svg(
            "text",
            { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 + (from.y < to.y ? -5 : 14), class: "edge-name" },
            edge.type,
          ),
      );
    });
  const nodes = [...near, ...far]
    .filter((each) => spots.has(each.record.id))
    .map((each) => {
      const { x, y } = spots.get(each.record.id);
      const side =
        each.distance === 1 ? "middle" : x < width / 2 - 20 ? "end" : x > width / 2 + 20 ? "start" : "middle";
      const label =
        narrow && each.distance > 1 ? "" : short(each.record.text, narrow ? 18 : each.distance === 1 ? 28 : 20);
      return svg(
        "a",
        { href: toMemory(each.record.id), class: `node-link ring-${each.distance}` },
        svg("title", {}, short(each.record.text, 300)),
        svg("circle", { cx: x, cy: y, r: each.distance === 1 ? 7 : 5 }),
        svg(
          "text",
          {
            x: x + { end: -11, start: 11, middle: 0 }[side],
            y: side === "middle" ? y + (y <= height / 2 + 1 ? -13 : 23) : y + 4,
            "text-anchor": side,
          },
          label,
        ),
      );
    });
  return svg(
    "svg",
    {
      class: "graph",
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": `Graph of ${near.length + far.length} memories within two links; a list of the direct ones follows`,
    },
    lines,
    svg("circle", { cx: width / 2, cy: height / 2, r: 10, class: "node-self" }),
    nodes,
  );
}
