"""Asking batches of questions, each of which is answered as one process would answer it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack

from msgspec import structs

from recallite.embedding.protocol import Embedder
from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.model.checks import check_time
from recallite.model.records import Hits
from recallite.model.settings import Settings
from recallite.plugin import engine_of
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import RecallOptions, build_request, recall_arguments
from recallite.store.opening import shown_path, store_exists
from recallite.system.numerics import kernel_errors
from recallite_bulk.arrow import Table, hits_table, questions
from recallite_bulk.writing import OpenedStore


def recall_texts(
    memory: Memory,
    queries: Sequence[str],
    *,
    vectors: Sequence[object] | None = None,
    limit: int | None = None,
    now: datetime | str | None = None,
    **options: Unpack[RecallOptions],
) -> list[Hits]:
    """`Memory.recall_many` as of the moment `now`, from which ages are measured; hits count as accessed on request."""
    arguments = recall_arguments({"purpose": "inspect", **options})
    request = build_request(memory.scope, memory.settings.profile, limit=limit, **arguments)
    moment = check_time(now, "now")
    if moment is not None:
        request = structs.replace(request, now=moment)
    with kernel_errors():
        answers = recall_queries(engine_of(memory).core, list(queries), vectors, request)
    if memory.scope != "/":
        for hits in answers:
            hits[:] = map(memory._seen, hits)
    return answers


def recall(
    batch: object,
    store: Memory,
    *,
    limit: int | None = None,
    now: datetime | str | None = None,
    **options: Unpack[RecallOptions],
) -> Table:
    """The hits of a batch of questions as a table of `recallite_bulk.arrow.hit_schema`.

    `batch` is Arrow data with the column `query`, and if there are any the columns `vector`, the query's own, and
    `question`, an int or text that names the question in the hits; without it they have its place in the batch. Other
    columns are passed over. Options are those of `Memory.recall`; the hits do not count as accessed. Two calls with the
    same `now` give the same hits, wherever they run.
    """
    names, queries, vectors = questions(batch)
    if not queries:
        return hits_table([], questions=names)
    return hits_table(recall_texts(store, queries, vectors=vectors, limit=limit, now=now, **options), questions=names)


class Recall(OpenedStore):
    """Answers batches of questions from the store at `path`; loads model and index once.

    The arguments are those of `Memory` and `recall`. The store may be a copy that nobody writes to. Raises InvalidInput
    if there is no such file: a mistyped path is no empty store.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | str | None = None,
        base: str = "/",
        key: str | None = None,
        limit: int | None = None,
        now: datetime | str | None = None,
        options: RecallOptions | None = None,
    ) -> None:
        if path is not None and not store_exists(path):
            raise InvalidInput(f"there is no store at {shown_path(path)}")
        super().__init__(path, settings, embedder, base, key)
        # Kernels that are not loaded yet would be stood in for, with the same hits to the last bits but a few.
        self._opened.store.warmup()
        self._options: dict[str, Any] = {"limit": limit, "now": now, **(options or {})}

    def __call__(self, batch: object) -> Table:
        """The hits of a batch of questions: `recall`."""
        return recall(batch, self.memory, **self._options)

    def texts(self, queries: Sequence[str]) -> list[Hits]:
        """The hits of each query."""
        return recall_texts(self.memory, queries, **self._options) if queries else []
