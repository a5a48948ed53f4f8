"""Memories as files, streamed: JSON lines without loss, CSV, and plain text.

JSON lines (`.jsonl`, `.ndjson`, `.json`), UTF-8, one object a line:

    {"format": "recallite", "version": 1, "embedder": {"fingerprint": "…", "name": "…", "dimension": 384}}
    {"id": "…", "text": "…", "kind": "memory", "scope": "/a", …}        a version of a memory
    {"link": {"source": "id", "target": "id", "type": "similar", "strength": 1.0, "created_at": "…"}}

- Memories are in the order in which they were stored; closed versions of a memory (with `recorded_until`) directly
  precede its open one. Links follow the memories they join. The header is optional: a line may have only arguments of
  `remember`.
- `scope` is as the exporting handle sees it: `/x` from `scoped("/a")` is the store's `/a/x`. A handle can import what
  another handle exported, and a scoped export reveals nothing of other scopes.
- Times are ISO 8601 UTC with microseconds. `vectors`, if requested, holds the float32 parts as base64; they are used
  if the header's fingerprint is that of the store's embedder, else the text is embedded again. Token codes are not
  exported: new vectors and `reembed` make them.
- `embedding_state` is that of the exporting store, and ignored by an import.

CSV (RFC 4180): a header row with `text` and any of `id` and `remember`'s arguments; tags joined by `;` (or a JSON list
if a tag contains one), metadata as JSON, an empty cell for an omitted argument. Text: one memory per line.
"""

from recallite.transfer.streaming import export, import_

__all__ = ["export", "import_"]
