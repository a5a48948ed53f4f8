// The head of the two lists of sources.

import { tabs } from "./components.js";
import { h } from "./dom.js";

export function head(current, explained) {
  return [
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Sources"), h("p", {}, explained))),
    tabs(
      "Sources",
      [
        ["Sessions", "#/sessions"],
        ["Documents", "#/documents"],
      ],
      current,
    ),
  ];
}
