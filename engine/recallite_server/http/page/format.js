// Times, numbers and the words for what the engine names in short.

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function memories(count) {
  return plural(count, "memory", "memories");
}

export function number(value) {
  return value.toLocaleString("en");
}

export function figure(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3).replace("-", "−");
}

// A share that a person sets: at most two decimals.
export function share(value) {
  return String(Math.round(value * 100) / 100);
}

export function milliseconds(value) {
  return `${figure(value)} ms`;
}

export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

export function bytes(count) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

// Times are those of the store: UTC.
export function time(iso) {
  return iso ? `${iso.slice(0, 10)} ${iso.slice(11, 16)}` : "–";
}

export function day(iso) {
  return iso ? iso.slice(0, 10) : "–";
}

// An ISO 8601 duration such as P30DT6H, in words.
export function duration(text) {
  const found = /^-?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(text);
  if (!found) return text;
  const [, days, hours, minutes, seconds] = found;
  const parts = [
    [days, "day"],
    [hours, "hour"],
    [minutes, "minute"],
    [seconds, "second"],
  ];
  const said = parts.filter(([count]) => Number(count)).map(([count, unit]) => plural(Number(count), unit));
  return said.join(" ") || "0 seconds";
}

const REASONS = {
  semantic: "similar meaning",
  keyword: "shared words",
  rerank: "close match word by word",
  speaker: "names its speaker or title",
  date: "of the time asked about",
  session: "near other hits of its source",
  link: "linked to other hits",
  recency: "recent",
  importance: "marked as important",
  change: "an older and a newer value",
  step: "tells of what another hit names",
  standing: "standing instruction",
  score: "score",
};

export function reason(name) {
  return REASONS[name] ?? name;
}

// Name, label and explanation of each signal, in the order in which recall uses them.
export const SIGNALS = [
  ["cosine", "Meaning", "How near the meaning is: the cosine of the two vectors."],
  ["bm25", "Words", "Shared words, rare ones counting more (BM25)."],
  ["similarity", "Word by word", "How well each word of the query is met by the text."],
  ["rerank", "Close reading", "What comparing word by word adds or takes away."],
  ["speaker", "Speaker", "1 if the query names the speaker or title."],
  ["date", "Time", "Share of its time that the query names."],
  ["fused", "Together", "Meaning, words and close reading as one figure."],
  ["spread_gain", "Neighbours", "What neighbours, links and the same source add."],
  ["linked", "Links", "The part of it that links add."],
  ["spread", "With neighbours", "The figure after neighbours, links and source."],
  ["decay", "Age", "Weight of age: 1 for what is new."],
  ["score", "Score", "What orders the hits."],
];

const STAGES = {
  returned: "It is among the hits",
  filter: "A filter hides it",
  superseded: "Another memory stands in its place",
  candidates: "It is no candidate",
  token_budget: "It does not fit",
  threshold: "It is below a minimum",
  group: "Another memory stands for its source",
  spread: "Others cover more",
  diversify: "Others are more diverse",
  limit: "It ranks behind the last hit",
};

export function stage(name) {
  return STAGES[name] ?? `It was dropped in the stage “${name}”`;
}

const PARTS = {
  embed: "Embed the query",
  catch_up: "Read new changes",
  search: "Search and rank",
  fetch: "Fetch the texts",
};

export function stagePart(name) {
  return PARTS[name] ?? `${name[0].toUpperCase()}${name.slice(1).replaceAll("_", " ")}`;
}
