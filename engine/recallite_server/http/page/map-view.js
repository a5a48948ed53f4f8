// The map: every memory as a point, near those with similar meaning.

import { get, ofMemory, post } from "./api.js";
import { empty, faultLine, field, load, movable } from "./components.js";
import { announce, debounced, h, replace, short } from "./dom.js";
import { day, memories, number } from "./format.js";
import { list, replacedNote } from "./hit.js";
import { PointMap } from "./map-canvas.js";
import { sortedPoints } from "./map-points.js";
import { go, link, note, toMemory } from "./router.js";

export const TITLE = "Map";
const TEXT_SHOWN = 240;
const LISTED = 20;
const MARKED = 12;
const KEYS_TOLD = "Plus and minus zoom, arrows move, 0 resets. The button below lists the memories in view.";
const LIGHT = [
  "#2b6cb0",
  "#c05621",
  "#2f855a",
  "#a8326f",
  "#6b46c1",
  "#a16a10",
  "#0f766e",
  "#c53030",
  "#7a7f14",
  "#5a67d8",
  "#8c5a3c",
];
const DARK = [
  "#6aa9ea",
  "#ed9a5c",
  "#68c08b",
  "#e683b0",
  "#ad90ea",
  "#e0b64f",
  "#4fc3b8",
  "#f08484",
  "#c0c850",
  "#96a3f7",
  "#cfa283",
];
const OTHER = ["#8a9299", "#7d868d"];
const BY = [
  ["cluster", "Topic"],
  ["scope", "Scope"],
  ["source", "Source"],
  ["kind", "Kind"],
];

export function show(view) {
  const { root, signal } = view;
  const body = h("div", {});
  replace(
    root,
    h(
      "div",
      { class: "page-head" },
      h(
        "div",
        {},
        h("h1", {}, "Map"),
        h("p", {}, "Every memory is a point, near those with similar meaning."),
      ),
    ),
    body,
  );
  load(body, () => get("v1/map", {}, signal), (data) => pointMap(view, data), { signal });
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// The most frequent values as categories of their own, and the others as one.
function categories(values, names) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const frequent = [...counts].sort((one, other) => other[1] - one[1]);
  const own = frequent.slice(0, frequent.length <= LIGHT.length ? frequent.length : LIGHT.length - 1);
  const place = new Map(own.map(([value], at) => [value, at]));
  const entries = own.map(([value, count]) => ({ label: value < 0 ? "None" : names[value] || "No words", count }));
  const rest = frequent.slice(own.length);
  if (rest.length)
    entries.push({
      label: `${number(rest.length)} others`,
      count: rest.reduce((sum, [, count]) => sum + count, 0),
      other: true,
    });
  return { entries, of: Uint8Array.from(values, (value) => place.get(value) ?? own.length) };
}

// The middle of each cluster, with its name.
function middles({ x, y, cluster, clusters }) {
  const sums = clusters.map((text) => ({ text, x: 0, y: 0, count: 0 }));
  cluster.forEach((of, at) => {
    if (of < 0) return;
    sums[of].x += x[at];
    sums[of].y += y[at];
    sums[of].count += 1;
  });
  return sums
    .filter(({ text, count }) => text && count)
    .sort((one, other) => other.count - one.count)
    .map(({ text, count, ...sum }) => ({ text, x: sum.x / count, y: sum.y / count }));
}

function pointMap({ signal, route }, data) {
  if (data.total === 0) return empty("This memory is empty", h("a", { href: "#/search" }, "Add the first memory"));
  if (data.ids.length === 0)
    return empty("Nothing to draw", "No memory has a vector: this store has no embedder, and searches by keyword.");
  const choices = data.clusters.length ? BY : BY.slice(1);
  const labels = middles(data);
  const canvas = h("canvas", {
    class: "map",
    tabindex: 0,
    role: "application",
    "aria-label": `Map of ${memories(data.ids.length)}. ${KEYS_TOLD}`,
  });
  const tip = h("div", { class: "tip", hidden: true });
  const legend = h("ul", { class: "legend" });
  const inView = h("div", { class: "results" });
  const line = faultLine();
  const texts = textsOf(signal);
  let by = choices.some(([name]) => name === route.query.get("by")) ? route.query.get("by") : choices[0][0];
  let wanted = -1;

  const drawn = new PointMap(canvas, sortedPoints(data.x, data.y), {
    hover: async (place, at) => {
      wanted = place;
      tip.hidden = true;
      if (place < 0) return;
      const memory = await texts(data.ids[place]);
      if (memory === undefined || wanted !== place || signal.aborted) return;
      replace(
        tip,
        memory === null
          ? "This memory is gone."
          : [
              h("p", { class: "stored", dir: "auto" }, short(memory.text, TEXT_SHOWN)),
              h(
                "p",
                { class: "small muted" },
                `${day(memory.valid_from ?? memory.created_at)}  ${memory.scope}  ${memory.kind}`,
              ),
            ],
      );
      tip.hidden = false;
      put(tip, at, canvas);
    },
    pick: (place) => go(toMemory(data.ids[place])),
    moved: () => {
      canvas.dataset.drawnMs = drawn.drawn_ms.toFixed(1);
      canvas.dataset.frames = drawn.frames;
    },
  });
  signal.addEventListener("abort", () => drawn.close());
  drawn.hollow(data.superseded);

  function paint() {
    const dark = isDark();
    const { entries, of } = categories(data[by], data[`${by}s`]);
    const colours = entries.map((entry, at) => (entry.other ? OTHER[Number(dark)] : (dark ? DARK : LIGHT)[at]));
    drawn.hidden.fill(0);
    const under = entries.findIndex((entry) => entry.other);
    const [background, mark] = dark ? ["#14171a", "#ffffff"] : ["#ffffff", "#111111"];
    drawn.paint(of, { colours, under, background, mark, labels: by === "cluster" ? labels : [] });
    replace(
      legend,
      entries.map((entry, at) => {
        const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
        swatch.style.background = colours[at];
        const input = h("input", { type: "checkbox", checked: true, change: () => drawn.hide(at, !input.checked) });
        return h(
          "li",
          {},
          h(
            "label",
            { class: "check" },
            input,
            swatch,
            h("span", {}, entry.label),
            h("span", { class: "count" }, number(entry.count)),
          ),
        );
      }),
    );
  }
  document.addEventListener("themechange", paint, { signal });

  const select = h(
    "select",
    {
      change: () => {
        by = select.value;
        note(link("map", "", { by: by === choices[0][0] ? "" : by }));
        paint();
      },
    },
    choices.map(([value, label]) => h("option", { value, selected: value === by }, label)),
  );

  const place = new Map();
  const find = h("input", { type: "search", autocomplete: "off", placeholder: "Ask or type words" });
  const mark = async () => {
    line.show(null);
    const query = find.value.trim();
    try {
      const found = query ? (await post("v1/recall", { query, limit: MARKED, purpose: "inspect" }, signal)).hits : [];
      if (find.value.trim() !== query) return;
      if (place.size === 0) data.ids.forEach((id, at) => place.set(id, at));
      const places = found.map((each) => place.get(each.id)).filter((at) => at !== undefined);
      drawn.mark(places);
      if (query) announce(`${memories(places.length)} marked`);
    } catch (fault) {
      if (fault.name !== "AbortError") line.show(fault);
    }
  };
  find.addEventListener("input", debounced(mark, 250));

  const listIt = h(
    "button",
    {
      type: "button",
      click: () => {
        const { count, places } = drawn.inView(LISTED);
        load(
          inView,
          () => post("v1/memories/get", { ids: places.map((at) => data.ids[at]) }, signal),
          (found) => {
            const records = Object.values(found);
            announce(`${memories(count)} in view`);
            if (records.length === 0) return empty("No memory is in view", "Press 0 on the map to see all of it.");
            const told =
              count > records.length
                ? `The ${records.length} nearest to the middle, of ${memories(count)} in view`
                : `${memories(count)} in view`;
            return [h("h2", {}, told), movable(list(records))];
          },
          { signal },
        );
      },
    },
    "List the memories in view",
  );

  const zoom = (label, sign, does) =>
    h("button", { type: "button", class: "zoom", "aria-label": label, title: label, click: does }, sign);
  paint();
  return [
    h(
      "div",
      { class: "map-grid" },
      h(
        "div",
        { class: "map-main" },
        h(
          "div",
          { class: "map-box" },
          canvas,
          tip,
          h(
            "div",
            { class: "zooms" },
            zoom("Zoom in", "+", () => drawn.zoomBy(1.6)),
            zoom("Zoom out", "−", () => drawn.zoomBy(1 / 1.6)),
            zoom("All of the map", "All", () => drawn.reset()),
          ),
        ),
        h(
          "div",
          { class: "row apart" },
          listIt,
          h(
            "p",
            { class: "small muted" },
            memories(data.ids.length),
            data.sampled && `, an even sample of ${number(data.total)}`,
            !data.sampled && data.total > data.ids.length && `; ${number(data.total - data.ids.length)} have no vector`,
            data.superseded.length > 0 && `; ${number(data.superseded.length)} superseded that may still hold: hollow points`,
          ),
        ),
        replacedNote(data.left_out),
      ),
      h(
        "div",
        { class: "map-side stack" },
        field("Colour by", select),
        legend,
        field("Mark what is found for", find),
        line,
      ),
    ),
    inView,
  ];
}

// Texts of points, each asked for once; only the last one asked for matters.
function textsOf(signal) {
  const known = new Map();
  let wait = 0;
  return async (id) => {
    if (!known.has(id)) {
      wait += 1;
      const mine = wait;
      await new Promise((resolve) => setTimeout(resolve, 60));
      if (mine !== wait) return undefined;
      known.set(
        id,
        get(ofMemory(id), {}, signal).catch(() => null),
      );
      if (known.size > 500) known.delete(known.keys().next().value);
    }
    return known.get(id);
  };
}

function put(tip, [x, y], canvas) {
  const left = Math.min(Math.max(8, x + 14), canvas.clientWidth - tip.offsetWidth - 8);
  const under = y + 18 + tip.offsetHeight < canvas.clientHeight;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${under ? y + 18 : Math.max(8, y - tip.offsetHeight - 18)}px`;
}
