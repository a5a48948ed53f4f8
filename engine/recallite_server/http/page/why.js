// "Why is this not a hit?": a memory followed through the stages of a query.

import { ApiError, get, ofMemory, post } from "./api.js";
import { action, barRow, faultLine, field } from "./components.js";
import { announce, h, replace, short, stored } from "./dom.js";
import { toFields } from "./filters.js";
import { figure, percent, reason, stage } from "./format.js";
import { scaleOf, signalBars } from "./hit.js";
import { toMemory } from "./router.js";

const PICKS = 8;

export function whyNot({ query, filter, limit, followed, hits, signal }) {
  const fault = faultLine();
  const out = h("div", { "aria-live": "polite" });
  const input = h("input", { type: "text", value: followed.text, autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", () => Object.assign(followed, { text: input.value, explained: false }));

  async function explain(id) {
    const told = await post("v1/explain", { query, id, limit, relevant: true, filter: toFields(filter) }, signal);
    const { text } = await get(ofMemory(id), {}, signal);
    replace(out, explanation(told, text, hits));
    input.value = id;
    Object.assign(followed, { text: id, explained: true });
    announce(stage(told.stage));
  }

  async function look() {
    const wanted = input.value.trim();
    if (wanted === "") throw new ApiError(0, "", "Give the id of a memory, or words of its text.");
    if (Object.values(await post("v1/memories/get", { ids: [wanted] }, signal)).length > 0) {
      await explain(wanted);
      return;
    }
    const fields = { filter: { include_superseded: true }, limit: PICKS, mode: "keyword" };
    const found = await post("v1/recall", { query: wanted, purpose: "inspect", ...fields }, signal);
    if (found.hits.length === 0) throw new ApiError(0, "", "No memory has this id, and none has these words.");
    replace(
      out,
      h("p", { class: "hint" }, "Which one?"),
      h(
        "ul",
        { class: "picks" },
        found.hits.map((each) =>
          h(
            "li",
            {},
            action(short(each.text, 110), () => explain(each.id), fault, { class: "pick", dir: "auto" }),
          ),
        ),
      ),
    );
    out.querySelector("button").focus();
  }

  const button = action("Explain", look, fault);
  const form = h(
    "form",
    {
      class: "why-form",
      submit: (event) => {
        event.preventDefault();
        button.click();
      },
    },
    field("Id of the memory, or words of its text", input),
    button,
  );
  if (followed.explained) button.click();
  return h(
    "section",
    { class: "section", "aria-labelledby": "why-title" },
    h("h2", { id: "why-title" }, followed.explained ? "Would this memory be found?" : "Why not another one?"),
    h("p", { class: "hint" }, "Follows a memory through this query, and says which stage left it out."),
    form,
    fault,
    out,
  );
}

export function explanation(told, text = "", hits = []) {
  const scale = scaleOf([told.signals, ...hits.map((each) => each.signals)]);
  const learned = Object.entries(told.learned);
  const most = Math.max(0.1, ...learned.map(([, value]) => Math.abs(value)));
  return h(
    "div",
    { class: "explanation" },
    h("p", { class: "verdict" }, h("strong", {}, stage(told.stage)), `: ${told.reason}.`),
    text && h("div", { class: "quoted" }, stored(text, { most: 240 })),
    h(
      "div",
      { class: "meta" },
      text && h("a", { href: toMemory(told.id) }, "Open the memory"),
      told.confidence !== null && h("span", {}, `confidence ${percent(told.confidence)}`),
    ),
    Object.keys(told.signals).length > 0 &&
      h("div", {}, h("h3", {}, "Scores"), signalBars(told.signals, scale, { ranks: told.ranks })),
    learned.length > 0 &&
      h(
        "div",
        {},
        h("h3", {}, "What learned ranking made of it"),
        told.ranks.formula && h("p", { class: "hint" }, `Without it, the rank would be ${told.ranks.formula}.`),
        h(
          "dl",
          { class: "bars" },
          learned.map(([name, value]) =>
            barRow(reason(name), value / most, value > 0 ? `+${figure(value)}` : figure(value), {
              signed: true,
              tone: value < 0 ? "minus" : "",
              title: value < 0 ? "It was lowered" : "It was raised",
            }),
          ),
        ),
      ),
  );
}
