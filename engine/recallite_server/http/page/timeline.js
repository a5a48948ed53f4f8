// Memories over time, and those of a period.

import { get } from "./api.js";
import { empty, field, load, movable } from "./components.js";
import { announce, h, replace } from "./dom.js";
import { counted, fromQuery, inForce, panel, toFields, toQuery } from "./filters.js";
import { memories, number } from "./format.js";
import { list, replacedNote } from "./hit.js";
import { link } from "./router.js";

export const TITLE = "Timeline";
const PAGE = 25;
const MOST_COLUMNS = 1500;
// Between two labels.
const GAP_PX = 10;
// Up to today if it is at most so many columns after the last memory.
const MOST_AHEAD = 60;
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const BUCKETS = [
  ["month", "Months"],
  ["week", "Weeks"],
  ["day", "Days"],
];

export function show({ root, route, signal }) {
  const filter = fromQuery(route.query);
  let bucket = BUCKETS.some(([name]) => name === route.query.get("bucket")) ? route.query.get("bucket") : "month";
  let at = route.query.get("at") ?? "";
  const chart = h("div", { class: "chart-box" });
  const period = h("div", { class: "results" });
  const here = () => link("timeline", "", { ...toQuery(filter), bucket: bucket === "month" ? "" : bucket, at });

  const pick = (start) => {
    at = start;
    history.pushState(null, "", here());
    for (const column of chart.querySelectorAll("button.column"))
      column.setAttribute("aria-pressed", String(column.dataset.start === start));
    showPeriod();
  };

  async function draw() {
    await load(
      chart,
      () => get("v1/timeline", { bucket, ...toFields(filter) }, signal),
      (found) => {
        announce(`${memories(found.reduce((sum, each) => sum + each.memories, 0))} in the timeline`);
        if (found.length === 0) {
          replace(period);
          if (counted(filter)) return empty("No memory matches these filters", "Clear a filter to see more.");
          return empty("This memory is empty", h("a", { href: "#/search" }, "Add the first memory"));
        }
        return [inForce(filter), columns(filled(found, bucket), bucket, at, pick)];
      },
      { signal },
    );
  }

  function showPeriod() {
    if (at === "") {
      replace(period, h("p", { class: "hint" }, "Choose a column to list its memories."));
      return;
    }
    const within = { gte: at, lt: next(new Date(at), bucket).toISOString() };
    const where = { or: [{ valid_from: within }, { valid_from: null, created_at: within }] };
    const fields = { ...toFields(filter), where };
    load(
      period,
      async () => {
        const [listed, count] = await Promise.all([
          get("v1/memories", { ...fields, limit: PAGE, order: "oldest" }, signal),
          get("v1/count", fields, signal),
        ]);
        return { records: listed.memories, leftOut: listed.left_out, count };
      },
      ({ records, leftOut, count }) => {
        announce(`${memories(count)} in ${told(new Date(at), bucket)}`);
        return [
          h("h2", {}, `${told(new Date(at), bucket)}: ${memories(count)}`),
          replacedNote(leftOut),
          pages(records, count, fields, signal),
        ];
      },
      { signal },
    );
  }

  const unit = h(
    "select",
    {
      change: () => {
        bucket = unit.value;
        at = "";
        history.pushState(null, "", here());
        draw();
        showPeriod();
      },
    },
    BUCKETS.map(([value, label]) => h("option", { value, selected: value === bucket }, label)),
  );

  replace(
    root,
    h(
      "div",
      { class: "page-head" },
      h(
        "div",
        {},
        h("h1", {}, "Timeline"),
        h(
          "p",
          {},
          "Memories by the time they are about if it is known, else by the time they were stored.",
        ),
      ),
      h("div", { class: "inline-field" }, field("Columns", unit)),
    ),
    h(
      "div",
      { class: "search-grid" },
      h("div", { class: "search-main stack" }, chart, period),
      panel(
        filter,
        () => {
          history.pushState(null, "", here());
          draw();
          showPeriod();
        },
        signal,
      ),
    ),
  );
  draw();
  showPeriod();
}

function pages(first, count, fields, signal) {
  const shown = movable(list(first));
  if (count <= first.length) return shown;
  const box = h("div", { class: "stack" }, shown);
  const more = h(
    "button",
    {
      type: "button",
      click: async () => {
        const offset = shown.children.length;
        const page = { ...fields, limit: PAGE, offset, order: "oldest" };
        const { memories: records } = await get("v1/memories", page, signal);
        shown.append(...list(records).children);
        if (shown.children.length >= count || records.length === 0) more.remove();
        shown.children[offset]?.querySelector("[data-item]")?.focus();
      },
    },
    "More memories",
  );
  box.append(h("div", {}, more));
  return box;
}

function next(start, bucket) {
  const after = new Date(start);
  if (bucket === "month") after.setUTCMonth(after.getUTCMonth() + 1);
  else after.setUTCDate(after.getUTCDate() + (bucket === "week" ? 7 : 1));
  return after;
}

// Every period from the first to the last, also those without memories.
function filled(found, bucket) {
  const counts = new Map(found.map((each) => [new Date(each.start).getTime(), each.memories]));
  const times = [...counts.keys()].sort((one, other) => one - other);
  const now = Date.now();
  let ahead = new Date(times.at(-1));
  for (let step = 0; step < MOST_AHEAD && next(ahead, bucket).getTime() <= now; step += 1) ahead = next(ahead, bucket);
  if (next(ahead, bucket).getTime() > now && ahead.getTime() > times.at(-1)) times.push(ahead.getTime());
  const all = [];
  for (
    let start = new Date(times[0]);
    start.getTime() <= times.at(-1) && all.length < MOST_COLUMNS;
    start = next(start, bucket)
  ) {
    all.push({ start, count: counts.get(start.getTime()) ?? 0 });
  }
  if (all.length === MOST_COLUMNS)
    return times.slice(-MOST_COLUMNS).map((time) => ({ start: new Date(time), count: counts.get(time) ?? 0 }));
  return all;
}

function told(start, bucket) {
  const date = start.toISOString().slice(0, 10);
  if (bucket === "month") return `${MONTHS[start.getUTCMonth()]} ${start.getUTCFullYear()}`;
  return bucket === "week" ? `Week of ${date}` : date;
}

// The month of each column in which one begins, with the year at the first of a year.
function ticksOf(periods) {
  return periods.map(({ start }, place) => {
    const before = place ? periods[place - 1].start : null;
    const sameYear = before?.getUTCFullYear() === start.getUTCFullYear();
    if (sameYear && before.getUTCMonth() === start.getUTCMonth()) return "";
    const month = MONTHS[start.getUTCMonth()].slice(0, 3);
    return sameYear ? month : `${month} ${start.getUTCFullYear()}`;
  });
}

// Hides labels that would meet others or leave the chart, years last.
function thin(row) {
  const ticks = [...row.querySelectorAll(".tick")];
  const end = row.lastElementChild.getBoundingClientRect().right + 4;
  for (const tick of ticks) tick.hidden = false;
  const boxes = ticks.map((tick) => ({ tick, year: tick.textContent.length > 3, ...edges(tick) }));
  const shown = [];
  for (const box of boxes.toSorted((one, other) => other.year - one.year)) {
    box.tick.hidden =
      box.right > end || shown.some((other) => box.left < other.right + GAP_PX && other.left < box.right + GAP_PX);
    if (!box.tick.hidden) shown.push(box);
  }
}

function edges(element) {
  const { left, right } = element.getBoundingClientRect();
  return { left, right };
}

function columns(periods, bucket, at, pick) {
  const most = Math.max(...periods.map((each) => each.count));
  const [first, last] = [periods[0], periods.at(-1)].map((each) => told(each.start, bucket));
  const row = h("div", {
    class: "columns",
    role: "group",
    "aria-label": `Memories by ${bucket}: from ${first} to ${last}, at most ${memories(most)}`,
  });
  const chosen = at && new Date(at).getTime();
  let tabbed = periods.findLast((each) => each.count > 0);
  tabbed = periods.find((each) => each.start.getTime() === chosen) ?? tabbed;
  const ticks = ticksOf(periods);
  const isNow = (start) => start.getTime() <= Date.now() && Date.now() < next(start, bucket).getTime();
  periods.forEach(({ start, count }, place) => {
    const label = ticks[place];
    const fill = h("span", { class: "column-fill" });
    fill.style.height = `${(100 * count) / most}%`;
    const said = `${told(start, bucket)}: ${memories(count)}`;
    const iso = start.toISOString();
    const column =
      count === 0
        ? h("span", { class: "column" })
        : h(
            "button",
            {
              type: "button",
              class: "column",
              title: said,
              "aria-label": said,
              "aria-pressed": String(start.getTime() === chosen),
              "data-start": iso,
              tabindex: tabbed.start === start ? 0 : -1,
              click: () => pick(iso),
            },
            fill,
          );
    row.append(
      h(
        "div",
        { class: isNow(start) ? "column-box now" : "column-box" },
        column,
        label && h("span", { class: "tick", "aria-hidden": "true" }, label),
      ),
    );
  });
  row.addEventListener("keydown", (event) => {
    const buttons = [...row.querySelectorAll("button.column")];
    const now = buttons.indexOf(document.activeElement);
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || !buttons[to]) return;
    event.preventDefault();
    buttons[now]?.setAttribute("tabindex", "-1");
    buttons[to].setAttribute("tabindex", "0");
    buttons[to].focus();
  });
  let wasDrawn = false;
  new ResizeObserver(() => {
    thin(row);
    if (!wasDrawn) row.scrollLeft = row.scrollWidth;
    wasDrawn = true;
  }).observe(row);
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", { class: "axis" }, h("span", {}, number(most)), h("span", {}, "0")),
    row,
  );
}
