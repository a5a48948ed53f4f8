"""Bulk work: embed and store a corpus, or ask millions of questions, on many cores or machines.

`Embed`, `Write` and `Recall` are loaded once and called with batches, which are lists of records, or Arrow tables in
the extra `arrow`. `remember_many` and `recall_many` call them in processes of one machine, `recallite_bulk.on_ray` on
the machines of a Ray cluster (extra `ray`). The results are those of one process.
"""

from recallite.remember.prepare import content_id
from recallite_bulk.jobs import recall_many, remember_files, remember_many
from recallite_bulk.stages import Embed, Recall, Write, recall, write

__all__ = [
    "Embed",
    "Recall",
    "Write",
    "content_id",
    "recall",
    "recall_many",
    "remember_files",
    "remember_many",
    "write",
]
