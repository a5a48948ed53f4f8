// State: sizes, embedder, kernels, index, and what recall costs.

import { get, plainText, post, unanswered } from "./api.js";
import { action, barRow, failed, faultLine, load } from "./components.js";
import { h, replace, short } from "./dom.js";
import { bytes, milliseconds, number, plural, stagePart } from "./format.js";
import { shared } from "./shared.js";

export const TITLE = "State";

export function show(view) {
  const { root, signal } = view;
  const store = h("div", {});
  const costs = h("div", {});
  const server = h("div", {});
  replace(
    root,
    h(
      "div",
      { class: "page-head" },
      h("div", {}, h("h1", {}, "State"), h("p", {}, "What the store holds, and what recall costs.")),
    ),
    store,
    section("What the last recall cost", costs),
    section("Recall on this server", server),
  );
  load(
    store,
    () => get("v1/stats", {}, signal),
    (stats) => stated(stats, view),
    { signal },
  );
  lastRecall(costs, signal);
  load(server, () => figures(signal), latency, { signal });
}

function section(title, ...body) {
  return h("section", { class: "section" }, h("h2", {}, title), body);
}

function facts(rows) {
  return h(
    "dl",
    { class: "facts" },
    rows
      .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "")
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

function stated(stats, view) {
  const most = Math.max(1, ...Object.values(stats.kinds));
  const services = Object.entries(stats.services).filter(([, count]) => count > 0);
  const big = [
    [number(stats.records - stats.superseded), "memories that hold"],
    [number(stats.superseded), "superseded"],
    [number(stats.versions), "earlier versions"],
    [number(stats.links), "links"],
    [stats.bytes_on_disk === null ? "–" : bytes(stats.bytes_on_disk), "on disk"],
  ];
  return [
    h(
      "dl",
      { class: "tiles" },
      big.map(([value, name]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
    stats.notes.map((each) => h("p", { class: "note" }, short(each, 400))),
    h(
      "div",
      { class: "two section" },
      h(
        "div",
        {},
        h("h2", {}, "Store"),
        facts([
          ["File", stats.path !== null && h("span", { class: "mono" }, stats.path)],
          ["Server", view.server.version],
          ["Schema", number(stats.schema_version)],
          ["SQLite", stats.sqlite_version],
          ["sqlite-vec", stats.sqlite_vec],
          ["Encrypted", stats.encrypted ? "yes" : "no"],
          ["Sources", number(stats.sources)],
          ["Different words", stats.terms !== null && number(stats.terms)],
          ["Waiting", stats.pending > 0 && `${number(stats.pending)} without a vector yet`],
          ["Refused", stats.refused > 0 && `${number(stats.refused)} by the embedder`],
        ]),
      ),
      h(
        "div",
        {},
        h("h2", {}, "Search"),
        facts([
          ["Mode", stats.records > 0 && stats.mode],
          ["Embedder", stats.embedder ?? (stats.records ? "none" : "loaded with the first memory")],
          ["Dimensions", stats.dimension !== null && number(stats.dimension)],
          ["Vectors", number(stats.vectors) + (stats.versions ? ", earlier versions included" : "")],
          ["Token codes", `${number(stats.token_codes)}, ${bytes(stats.token_code_bytes)}`],
          ["Kernels", stats.kernels],
          [
            "Index",
            stats.index.bytes !== undefined &&
              `${number(stats.index.records)} records, ${bytes(stats.index.bytes)} in RAM`,
          ],
          ["Index from", stats.index.origin],
        ]),
      ),
    ),
    h(
      "div",
      { class: "two section" },
      h(
        "div",
        {},
        h("h2", {}, "Kinds, superseded included"),
        stats.records === 0 && h("p", { class: "muted" }, "None."),
        h(
          "dl",
          { class: "bars" },
          Object.entries(stats.kinds)
            .sort((one, other) => other[1] - one[1])
            .map(([kind, count]) => barRow(kind, count / most, number(count))),
        ),
      ),
      h(
        "div",
        {},
        h("h2", {}, "Besides memories"),
        services.length === 0
          ? h("p", { class: "muted" }, "Nothing.")
          : facts(services.map(([name, count]) => [name.replaceAll("_", " "), number(count)])),
      ),
    ),
  ];
}

function lastRecall(box, signal) {
  const fault = faultLine();
  const again = action(
    shared.lastRecall ? "Ask it again" : "Ask once",
    async () => {
      const query = shared.lastRecall?.query ?? "What is known?";
      const found = await post("v1/recall", { query, purpose: "inspect" }, signal);
      shared.lastRecall = { query, stages: found.stages, hits: found.hits.length };
      lastRecall(box, signal);
      box.querySelector("button")?.focus();
    },
    fault,
  );
  if (shared.lastRecall === null) {
    replace(
      box,
      h("p", { class: "muted" }, "Nothing was searched for since this page was opened."),
      h("div", { class: "section-gap" }, again),
      fault,
    );
    return;
  }
  const { query, stages, hits } = shared.lastRecall;
  const entries = Object.entries(stages);
  const most = Math.max(...entries.map(([, ms]) => ms));
  const total = entries.reduce((sum, [, ms]) => sum + ms, 0);
  replace(
    box,
    h(
      "p",
      { class: "small" },
      h("span", { class: "muted" }, "Query: "),
      h("span", { class: "stored", dir: "auto" }, short(query, 120)),
      h("span", { class: "muted" }, `, ${plural(hits, "hit")}`),
    ),
    h(
      "dl",
      { class: "bars wide-labels section-gap" },
      entries.map(([name, ms]) => barRow(stagePart(name), ms / most, milliseconds(ms))),
      barRow("Together", total / most > 1 ? 1 : total / most, milliseconds(total), { tone: "strong" }),
    ),
    h("div", { class: "section-gap" }, again),
    fault,
  );
}

// Health, and the histogram of recall's times; figures of the whole store are refused to tokens of a scope.
async function figures(signal) {
  const [health, ready] = await Promise.all(
    ["healthz", "readyz"].map((path) =>
      get(path, {}, signal).then(
        (told) => told.status,
        (fault) => (unanswered(fault) ? "no answer" : fault.message),
      ),
    ),
  );
  try {
    return { health, ready, text: await plainText("metrics", { signal }), fault: null };
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    return { health, ready, text: "", fault };
  }
}

// name{labels} value, as Prometheus writes it.
export function parsed(text, metric) {
  const rows = [];
  for (const line of text.split("\n")) {
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!found || !found[1].startsWith(metric)) continue;
    const labels = Object.fromEntries(
      [...(found[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]),
    );
    rows.push({ name: found[1], labels, value: Number(found[3]) });
  }
  return rows;
}

function latency({ health, ready, text, fault }) {
  const state = facts([
    ["Server", health],
    ["Embedder", ready],
  ]);
  if (fault?.status === 403) return [state, h("p", { class: "muted section-gap" }, `${fault.message}.`)];
  if (fault !== null) return [state, !unanswered(fault) && failed(fault)];
  const all = parsed(text, "recallite_request_duration_seconds").filter((each) => each.labels.operation === "recall");
  const count = all.find((each) => each.name.endsWith("_count"))?.value ?? 0;
  if (count === 0)
    return [state, h("p", { class: "muted section-gap" }, "No recall has been answered since the server started.")];
  const sum = all.find((each) => each.name.endsWith("_sum")).value;
  const buckets = all.filter((each) => each.name.endsWith("_bucket")).sort((one, other) => edge(one) - edge(other));
  const counts = buckets.map((each, place) => each.value - (place ? buckets[place - 1].value : 0));
  const [first, last] = [counts.findIndex((each) => each > 0), counts.findLastIndex((each) => each > 0)];
  const most = Math.max(...counts);
  return [
    state,
    h(
      "p",
      { class: "section-gap" },
      `${plural(count, "recall")} answered, ${milliseconds((1000 * sum) / count)} on average, waiting included.`,
    ),
    h(
      "dl",
      { class: "bars wide-labels section-gap" },
      buckets
        .map((each, place) => [edge(each) === Infinity ? "longer" : `up to ${1000 * edge(each)} ms`, counts[place]])
        .slice(first, last + 1)
        .map(([label, each]) => barRow(label, each / most, number(each))),
    ),
  ];
}

function edge(bucket) {
  return bucket.labels.le === "+Inf" ? Infinity : Number(bucket.labels.le);
}
