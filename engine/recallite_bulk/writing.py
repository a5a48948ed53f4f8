"""Storing batches so that a batch that comes twice is stored once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from recallite.embedding.protocol import Embedder
from recallite.errors import InvalidItem
from recallite.memory import Memory
from recallite.model.policies import WritePolicy
from recallite.model.records import NewRecord
from recallite.model.reports import Remembered
from recallite.model.settings import Settings
from recallite.plugin import engine_of
from recallite_bulk.arrow import Table, new_records


def known_ids(memory: Memory, ids: Iterable[str]) -> set[str]:
    """Return those of these ids that are memories which this handle sees."""
    names = list(ids)
    engine = engine_of(memory)
    with engine.read() as reader:
        return {*reader.records.find_ids(names, engine.scope)} if names else set()


def write(records: Sequence[NewRecord], memory: Memory, *, policy: WritePolicy | None = None) -> Remembered:
    """Store records in one transaction, in order; those whose id is stored already are passed over.

    Several processes may do this with the same records: each is stored once. Raises what `Memory.remember_many` raises.
    """
    first: dict[str, int] = {}
    for place, record in enumerate(records):
        if record.id is not None:
            first.setdefault(record.id, place)
    fresh = [place for place, record in enumerate(records) if record.id is None or first[record.id] == place]
    while True:
        known = known_ids(memory, _ids(records, fresh))
        fresh = [place for place in fresh if records[place].id not in known]
        if not fresh:
            return Remembered(known=len(records))
        try:
            ids = memory.remember_many([records[place] for place in fresh], batch_size=len(fresh), policy=policy)
        except InvalidItem as refused:
            # Another process has stored one of them meanwhile, and this batch is rolled back: try without that one.
            if refused.error.reason == "exists" and known_ids(memory, _ids(records, fresh)):
                continue
            raise InvalidItem(fresh[refused.position], 0, refused.error) from refused.error
        stored = sum(map(bool, ids))
        return Remembered(records=stored, known=len(records) - len(fresh), junk=len(fresh) - stored)


def _ids(records: Sequence[NewRecord], places: Sequence[int]) -> list[str]:
    return [name for place in places if (name := records[place].id) is not None]


class OpenedStore:
    """The base of what opens the store at `path` once, for one batch after another, and writes or reads in `base`."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        settings: Settings | None,
        embedder: Embedder | str | None,
        base: str,
        key: str | None = None,
    ) -> None:
        self._opened = Memory(path, embedder=embedder, settings=settings, key=key)
        self.memory = self._opened if base == "/" else self._opened.scoped(base)

    def close(self) -> None:
        """Close the store."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Write(OpenedStore):
    """Stores batches in the store at `path`, which it opens once. Of a SQLite file let one process write at a time."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | str | None = None,
        policy: WritePolicy | None = None,
        base: str = "/",
        key: str | None = None,
    ) -> None:
        super().__init__(path, settings, embedder, base, key)
        self._policy = policy

    def __call__(self, batch: object) -> Table:
        """Store Arrow data as `Embed` gives it; return a row that counts what was done."""
        import pyarrow as pa

        done = write([*new_records(batch)], self.memory, policy=self._policy)
        return pa.table({name: [value] for name, value in done.to_dict().items()})
