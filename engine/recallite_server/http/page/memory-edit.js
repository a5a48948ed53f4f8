// The dialog that edits a memory. Only what was changed is sent.

import { ofMemory, patch } from "./api.js";
import { action, dialog, faultLine, field } from "./components.js";
import { announce, h } from "./dom.js";
import { share } from "./format.js";

// Kinds whose text belongs to a file or is saved as a whole.
const WITHOUT_TEXT = {
  chunk: "The text is that of a document: change the document and ingest it again.",
  procedure: "A procedure's text is saved as a whole by the agent.",
};

export function editMemory(memory, done) {
  const fixed = WITHOUT_TEXT[memory.kind] ?? "";
  const text = h("textarea", { rows: 6, dir: "auto", readonly: fixed !== "" });
  text.value = memory.text;
  const tags = h("input", { type: "text", autocomplete: "off", value: memory.tags.join(", ") });
  const told = h("output", {}, share(memory.importance));
  const importance = h("input", {
    type: "range",
    min: 0,
    max: 1,
    step: 0.05,
    value: memory.importance,
    input: () => {
      told.textContent = share(Number(importance.value));
    },
  });
  const before = memory.expires_at?.slice(0, 16) ?? "";
  const expires = h("input", { type: "datetime-local", value: before });
  const pinned = h("input", { type: "checkbox", checked: memory.pinned });
  const shownImportance = importance.value;
  const fault = faultLine();

  function changes() {
    const changed = {};
    if (!fixed && text.value !== memory.text.replace(/\r\n?/g, "\n")) changed.text = text.value;
    const list = [
      ...new Set(
        tags.value
          .split(",")
          .map((each) => each.trim())
          .filter(Boolean),
      ),
    ];
    if (tags.value !== memory.tags.join(", ")) changed.tags = list;
    if (importance.value !== shownImportance) changed.importance = Number(importance.value);
    if (expires.value !== before) changed.expires_at = expires.value ? `${expires.value}:00Z` : null;
    if (pinned.checked !== memory.pinned) changed.pinned = pinned.checked;
    return changed;
  }

  return dialog(
    "Edit the memory",
    (close) => {
      const save = action(
        "Save",
        async () => {
          const changed = changes();
          if (Object.keys(changed).length > 0) {
            await patch(ofMemory(memory.id), changed);
            announce("Saved");
            done();
          }
          close();
        },
        fault,
        { class: "primary", type: "submit" },
      );
      return h(
        "form",
        { class: "stack", submit: (event) => event.preventDefault() },
        field("Text", text, fixed || "The old text stays in its versions."),
        field("Tags", tags, "Separated by commas."),
        field("Importance", importance, "", told),
        field("Expires (UTC)", expires, "Empty: never."),
        h("label", { class: "check" }, pinned, h("span", {}, "Pinned: kept from clean-up")),
        fault,
        h("div", { class: "actions" }, save, h("button", { type: "button", click: close }, "Cancel")),
      );
    },
    { wide: true },
  );
}
