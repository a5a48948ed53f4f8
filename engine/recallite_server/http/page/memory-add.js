// What an empty memory says, and a form that adds to it.

import { post } from "./api.js";
import { action, empty, faultLine, field } from "./components.js";
import { announce, h } from "./dom.js";

const COMMANDS = [
  ["Claude Code, Codex and others remember by themselves", "recallite connect claude-code"],
  ["What you have elsewhere", "recallite import --help"],
  ["At the command line", 'recallite remember "Ada is on call for billing"'],
];

export function emptyMemory(canWrite, done) {
  return empty(
    "This memory is empty",
    canWrite ? "Type something to remember. Then ask for it in the search above." : "What is remembered will be here.",
    canWrite && adding(done),
    h(
      "dl",
      { class: "ways" },
      COMMANDS.map(([name, words]) => h("div", {}, h("dt", {}, name), h("dd", {}, h("code", {}, words)))),
    ),
  );
}

function adding(done) {
  const fault = faultLine();
  const text = h("textarea", { rows: 2, dir: "auto", placeholder: "Ada is on call for billing", required: true });
  const button = action(
    "Remember",
    async () => {
      await post("v1/memories", { text: text.value });
      announce("Remembered");
      await done();
    },
    fault,
    { class: "primary" },
  );
  const form = h(
    "form",
    {
      class: "stack adding",
      submit: (event) => {
        event.preventDefault();
        button.click();
      },
    },
    field("Something to remember", text),
    h("div", { class: "row" }, button),
    fault,
  );
  return form;
}
