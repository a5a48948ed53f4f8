// Sources: the lists of sessions and documents, and one of each.

import { documents, oneDocument } from "./documents.js";
import { oneSession, sessions } from "./sessions.js";

export const TITLE = "Sources";
const VIEWS = { session: oneSession, document: oneDocument, documents };

export function show(view) {
  (VIEWS[view.route.name] ?? sessions)(view);
}
