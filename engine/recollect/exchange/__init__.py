"""Memories as files: JSON lines without loss, CSV, plain text; read and written as streams.

JSON lines (`.jsonl`, `.ndjson`, `.json`), UTF-8, one object a line:

    {"format": "recollect", "version": 1, "embedder": {"fingerprint": "…", "name": "…", "dimension": 384}}
    {"id": "…", "text": "…", "kind": "memory", "scope": "/a", …}        a version of a memory
    {"link": {"source": "id", "target": "id", "type": "similar", "strength": 1.0, "created_at": "…"}}

- Memories stand in the order they were stored in; the closed versions of one (those with `valid_to`) stand right
  before the version that holds. Links follow the memories they join. Without a header a file is read just as well:
  a line may be a dict of `remember`'s arguments alone.
- `scope` is as the handle that exports sees it: `/x` from `scoped("/a")` is the store's `/a/x`. So a handle reads
  back what a like handle wrote, and a scoped one shows nothing of what is outside it.
- Times are ISO 8601 UTC with microseconds. `vectors` holds the float32 parts as base64, if asked for; they are
  taken over where the header's fingerprint is the store's own, and made anew from the text where it is not.
  Token codes are not part of a file: they come with new vectors, or by `reembed`.
- `embedding_state` is what the exporting store had; the importing one says what it has.

CSV (RFC 4180): a header row with `text` and any of `id` and `remember`'s arguments; tags joined by `;` (or a JSON
list, where a tag holds one), metadata as JSON, an empty cell for an argument left out. Text: a memory a line.

Markdown: a folder with a file a scope and month, to be read and edited by people: see `markdown`. It has every field,
time and link of each memory; closed versions, access counts and vectors are for JSON lines.
"""

from recollect.exchange.exporting import export
from recollect.exchange.folder import Folder
from recollect.exchange.from_folder import import_folder
from recollect.exchange.importing import import_
from recollect.exchange.to_folder import export_folder

__all__ = ["Folder", "export", "export_folder", "import_", "import_folder"]
