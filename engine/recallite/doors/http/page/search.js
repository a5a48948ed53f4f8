// Search: what the memory finds for a query and why; without a query, the newest memories.

import { aborted, get, post, unanswered } from "./api.js";
import { empty, failed, field, loading, movable } from "./components.js";
import { announce, debounced, h, replace } from "./dom.js";
import { counted, fromQuery, inForce, panel, toFields, toQuery } from "./filters.js";
import { memories, milliseconds, plural } from "./format.js";
import { hit, list, scaleOf } from "./hit.js";
import { link, note } from "./router.js";
import { shared } from "./shared.js";
import { whyNot } from "./why.js";

export const TITLE = "Search";
const PAGE = 25;
const FIRST_LIMIT = 10;
const MOST = 100;
const ORDERS = [
  ["updated", "Last changed"],
  ["newest", "Newest"],
  ["oldest", "Oldest"],
  ["importance", "Most important"],
];

export function show({ root, route, signal }) {
  const filter = fromQuery(route.query);
  const asked = {
    query: route.query.get("q") ?? "",
    order: route.query.get("order") ?? "updated",
    page: Number(route.query.get("page") ?? 0) || 0,
    limit: FIRST_LIMIT,
  };
  // The memory that is followed through the query: what was typed, and whether it is an id that was explained.
  const why = route.query.get("why") ?? "";
  const followed = { text: why, explained: why !== "" };
  let running = null;
  const results = h("div", { class: "results" });
  const below = h("div", {});
  const input = h("input", {
    type: "search",
    id: "query",
    value: asked.query,
    placeholder: "Ask or type words",
    autocomplete: "off",
    spellcheck: "false",
    maxlength: 100000,
    "aria-label": "Search the memory",
  });

  const here = () =>
    link("search", "", {
      q: asked.query,
      ...toQuery(filter),
      order: asked.order === "updated" ? "" : asked.order,
      page: asked.page || "",
      why: followed.explained ? followed.text : "",
    });

  async function run() {
    running?.abort();
    running = new AbortController();
    const mine = running;
    results.setAttribute("aria-busy", "true");
    if (!results.firstChild) replace(results, loading());
    try {
      const parts = asked.query.trim() ? await recalled(mine.signal) : await listed(mine.signal);
      if (mine.signal.aborted) return;
      const focused = itemIn(results);
      replace(results, inForce(filter), parts);
      focused?.();
    } catch (fault) {
      if (aborted(fault) || mine.signal.aborted) return;
      if (unanswered(fault) && results.querySelector("[data-item]")) return results.removeAttribute("aria-busy");
      replace(results, failed(fault, run));
      replace(below);
      announce(`Error: ${fault.message}`);
    }
    if (mine === running) results.removeAttribute("aria-busy");
  }

  async function recalled(aborter) {
    const query = asked.query.trim();
    const body = {
      query,
      limit: asked.limit,
      purpose: "explain",
      filter: toFields(filter),
    };
    const [found, relevant] = await Promise.all([
      post("v1/recall", body, aborter),
      post("v1/recall", { ...body, relevant: true }, aborter),
    ]);
    const answers = new Set(relevant.hits.map((each) => each.id));
    const took_ms = Object.values(found.stages).reduce((sum, each) => sum + each, 0);
    shared.lastRecall = { query, stages: found.stages, hits: found.hits.length };
    const scale = scaleOf(found.hits.map((each) => each.signals));
    announce(`${plural(found.hits.length, "hit")} for ${query}`);
    replace(below, whyNot({ query, filter, limit: asked.limit, followed, hits: found.hits, signal }));
    if (found.hits.length === 0) return empty("Nothing was found", "Other words may help, or fewer filters.");
    const count = h(
      "p",
      { class: "muted small" },
      `${plural(found.hits.length, "hit")} in ${milliseconds(took_ms)}`,
      found.diversify_by && `, spread over ${found.diversify_by}`,
    );
    const gaps =
      found.evidence_gaps.length > 0 &&
      h("p", { class: "note" }, `The memory may not know this: ${found.evidence_gaps.join("; ")}.`);
    const more =
      found.hits.length >= asked.limit &&
      asked.limit < MOST &&
      h(
        "button",
        {
          type: "button",
          click: () => {
            asked.limit = Math.min(asked.limit * 3, MOST);
            run();
          },
        },
        "More hits",
      );
    const items = found.hits.map((each, place) => hit(each, place, scale, query));
    const [strong, weak] = [true, false].map((wanted) =>
      items.filter((_, place) => answers.has(found.hits[place].id) === wanted),
    );
    const fold =
      weak.length > 0 &&
      h(
        "details",
        { class: "weak" },
        h("summary", {}, strong.length ? `${plural(weak.length, "weaker hit")}` : "Nothing answers it: the nearest"),
        h("ol", { class: "hits" }, weak),
      );
    if (fold && (strong.length === 0 || fold.contains(document.activeElement))) fold.open = true;
    return [
      count,
      gaps,
      movable(h("div", { class: "results", "data-list": true }, strong.length > 0 && h("ol", { class: "hits" }, strong), fold)),
      more,
    ];
  }

  async function listed(aborter) {
    const fields = toFields(filter);
    const query = { ...fields, order: asked.order, limit: PAGE, offset: asked.page * PAGE };
    const [records, count] = await Promise.all([get("v1/memories", query, aborter), get("v1/count", fields, aborter)]);
    replace(below);
    announce(memories(count));
    if (count === 0) {
      if (counted(filter)) return empty("No memory matches these filters", "Clear a filter to see more.");
      return empty("This memory is empty", "What an agent remembers will be listed here.");
    }
    const order = h(
      "select",
      {
        change: () => {
          asked.order = order.value;
          asked.page = 0;
          turned();
        },
      },
      ORDERS.map(([value, label]) => h("option", { value, selected: value === asked.order }, label)),
    );
    const pages = Math.ceil(count / PAGE);
    const turn = (label, page, on) =>
      h(
        "button",
        {
          type: "button",
          disabled: !on,
          click: () => {
            asked.page = page;
            turned();
            scrollTo(0, 0);
            results.querySelector("[data-item]")?.focus({ preventScroll: true });
          },
        },
        label,
      );
    return [
      h(
        "div",
        { class: "row apart list-head" },
        h("p", { class: "muted small" }, memories(count)),
        h("div", { class: "inline-field" }, field("Order", order)),
      ),
      movable(list(records)),
      pages > 1 &&
        h(
          "div",
          { class: "row pager" },
          turn("Previous", asked.page - 1, asked.page > 0),
          h("span", { class: "muted small" }, `Page ${asked.page + 1} of ${pages}`),
          turn("Next", asked.page + 1, asked.page + 1 < pages),
        ),
    ];
  }

  function turned() {
    history.pushState(null, "", here());
    run();
  }

  const typed = debounced(() => {
    if (signal.aborted) return;
    note(here());
    run();
  }, 160);
  input.addEventListener("input", () => {
    asked.query = input.value;
    asked.page = 0;
    asked.limit = FIRST_LIMIT;
    typed();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      results.querySelector("[data-item]")?.focus();
    }
  });
  signal.addEventListener("abort", () => running?.abort());

  replace(
    root,
    h("h1", { class: "hidden-text" }, "Search"),
    h(
      "form",
      {
        role: "search",
        class: "search-form",
        submit: (event) => {
          event.preventDefault();
          note(here());
          run();
        },
      },
      input,
    ),
    h(
      "div",
      { class: "search-grid" },
      h("div", { class: "search-main" }, followed.explained ? [below, results] : [results, below]),
      panel(
        filter,
        () => {
          asked.page = 0;
          turned();
        },
        signal,
      ),
    ),
  );
  run();
}

// What gives the focus back to the item that has it, or to the one at its place, when the list is drawn anew.
function itemIn(box) {
  const at = [...box.querySelectorAll("[data-item]")].indexOf(document.activeElement);
  if (at < 0) return null;
  const address = document.activeElement.getAttribute("href");
  return () => {
    const items = [...box.querySelectorAll("[data-item]")];
    (items.find((each) => each.getAttribute("href") === address) ?? items[at] ?? items.at(-1))?.focus();
  };
}
