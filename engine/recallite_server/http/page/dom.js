// Elements made of text nodes and attributes. Nothing here, or anywhere on the page, parses markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "style" || name.startsWith("on")) throw new Error(`${name} is not allowed`);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

// h("button", {class: "quiet", click: save}, "Save"): functions are listeners, all else attributes.
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

export function announce(text) {
  document.getElementById("announce").textContent = text;
}

// Calls `run` when no other call came for `wait_ms`.
export function debounced(run, wait_ms) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), wait_ms);
  };
}

// Characters that are not seen, or that turn the direction of what follows.
const UNSEEN = /[\u00AD\u061C\u180E\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}]/u;

export function hasUnseen(text) {
  return UNSEEN.test(text);
}

// A stored text, verbatim; a long one is cut until all of it is asked for.
export function stored(text, { most = 320, tag = "p", className = "stored" } = {}) {
  const body = h(tag, { class: className, dir: "auto" });
  const parts = [body];
  if (text.length <= most * 1.2) body.textContent = text;
  else {
    body.textContent = `${cut(text, most)}…`;
    const more = h(
      "button",
      {
        type: "button",
        class: "link",
        click: () => {
          body.textContent = text;
          more.remove();
        },
      },
      `Show all ${text.length.toLocaleString("en")} characters`,
    );
    parts.push(more);
  }
  if (hasUnseen(text)) {
    parts.push(
      h("p", { class: "note" }, "The text has characters that are invisible or turn the direction of writing."),
    );
  }
  return parts;
}

// The first characters, without half of a pair.
export function cut(text, most) {
  const end = /[\uD800-\uDBFF]/.test(text[most - 1] ?? "") ? most - 1 : most;
  return text.slice(0, end);
}

export function short(text, most = 80) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${cut(line, most - 1)}…`;
}
