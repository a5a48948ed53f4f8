// Search: what the memory finds for a query and why; without a query, the newest memories.

import { aborted, get, post, unanswered } from "./api.js";
import { empty, failed, field, load, loading, movable } from "./components.js";
import { announce, debounced, h, replace } from "./dom.js";
import { counted, fromQuery, inForce, panel, toFields, toQuery } from "./filters.js";
import { memories, milliseconds, plural } from "./format.js";
import { hit, list, replacedNote, scaleOf } from "./hit.js";
import { emptyMemory } from "./memory-add.js";
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

export function show({ root, route, signal, canWrite }) {
  const filter = fromQuery(route.query);
  const asked = {
    query: route.query.get("q") ?? "",
    order: route.query.get("order") ?? "updated",
    page: Number(route.query.get("page") ?? 0) || 0,
    limit: FIRST_LIMIT,
    // Whether the hits that do not answer are shown.
    weaker: false,
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
    const ask = (relevant) =>
      post("v1/recall", { query, limit: asked.limit, purpose: "explain", relevant, filter: toFields(filter) }, aborter);
    const answers = await ask(true);
    const nearest = answers.hits.length === 0 || asked.weaker ? await ask(false) : null;
    const took_ms = Object.values(answers.stages).reduce((sum, each) => sum + each, 0);
    const count = plural(answers.hits.length, "hit");
    shared.lastRecall = { query, stages: answers.stages, hits: answers.hits.length };
    announce(`${count} for ${query}`);
    replace(below, whyNot({ query, filter, limit: asked.limit, followed, hits: (nearest ?? answers).hits, signal }));
    if (nearest?.hits.length === 0) return empty("Nothing was found", "Other words may help, or fewer filters.");
    const ids = new Set(answers.hits.map((each) => each.id));
    // The weaker ones were not read: their confidence would be another than that of the same memory as an answer.
    const ranked = (hits, from = 0, read = true) => {
      const scale = scaleOf(hits.map((each) => each.signals));
      return h("ol", { class: "hits" }, hits.map((each, place) => hit(each, from + place, scale, query, read)));
    };
    const weaker = ({ hits }) => {
      const others = hits.filter((each) => !ids.has(each.id));
      if (others.length === 0) return h("p", { class: "hint" }, "There are no others.");
      return [ranked(others, ids.size, false), hits.length >= asked.limit && moreHits()];
    };
    const box = h("div", {}, nearest && weaker(nearest));
    const fold = h(
      "details",
      {
        class: "weak",
        open: nearest !== null,
        toggle: () => {
          asked.weaker = fold.open;
          if (fold.open && !box.firstChild) load(box, () => ask(false), weaker, { signal: aborter });
        },
      },
      h("summary", { "data-item": true }, ids.size ? "Weaker hits" : "Nothing answers it: the nearest"),
      box,
    );
    return [
      h(
        "p",
        { class: "muted small" },
        `${count} in ${milliseconds(took_ms)}`,
        answers.diversify_by && `, spread over ${answers.diversify_by}`,
      ),
      answers.evidence_gaps.length > 0 &&
        h("p", { class: "note" }, `The memory may not know this: ${answers.evidence_gaps.join("; ")}.`),
      movable(
        h(
          "div",
          { class: "results", "data-list": true },
          ids.size > 0 && ranked(answers.hits),
          ids.size >= asked.limit && moreHits(),
          fold,
        ),
      ),
    ];
  }

  function moreHits() {
    if (asked.limit >= MOST) return null;
    const more = () => {
      asked.limit = Math.min(asked.limit * 3, MOST);
      run();
    };
    return h("button", { type: "button", click: more }, "More hits");
  }

  async function listed(aborter) {
    const fields = toFields(filter);
    const query = { ...fields, order: asked.order, limit: PAGE, offset: asked.page * PAGE };
    const [listed, count] = await Promise.all([get("v1/memories", query, aborter), get("v1/count", fields, aborter)]);
    replace(below);
    announce(memories(count));
    if (count === 0) {
      if (counted(filter)) return empty("No memory matches these filters", "Clear a filter to see more.");
      return emptyMemory(canWrite, run);
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
      replacedNote(listed.left_out),
      movable(list(listed.memories)),
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
    Object.assign(asked, { limit: FIRST_LIMIT, weaker: false });
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
