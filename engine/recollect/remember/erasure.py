"""Erasure with a receipt: a purge that also compacts the file, and then looks for what it removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from recollect.checks import now_us, to_datetime
from recollect.engine import Engine
from recollect.errors import StoreError, StoreFull
from recollect.reports import ErasureReceipt
from recollect.store import erasing, rebuilding
from recollect.store.protocol import Reader

__all__ = ["Erasure"]


class Erasure:
    """One call of `forget`: `before` and `after` stand in its transaction, `check` follows its commit."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._traces = erasing.Traces()
        self._ids: tuple[str, ...] = ()
        self._rows: dict[str, int] = {}
        self._removed: dict[str, int] = {}
        self._sidecar = False

    def before(self, reader: Reader, record_ids: Sequence[int], scopes: Iterable[str]) -> None:
        """Note what is there of these open records and, where whole scopes go, of their services."""
        self._ids = tuple(reader.records.public_ids(record_ids))
        self._traces = erasing.traces(reader, record_ids, scopes)
        self._rows = erasing.rows_by_table(reader)
        self._sidecar = not self._engine.store.in_memory and Path(sidecar.path_of(self._engine.store.path)).exists()
        erasing.drop_cached_vectors(reader, record_ids)

    def after(self, reader: Reader) -> None:
        """Drop what the purge has left unused, and count what is gone."""
        erasing.drop_unused_scopes(reader)
        rebuilding.drop_unused(reader)
        erasing.add_names_gone(reader, self._traces)
        now = erasing.rows_by_table(reader)
        self._removed = {table: rows - now[table] for table, rows in self._rows.items() if rows != now[table]}

    def check(self) -> ErasureReceipt:
        """Compact the file, empty its WAL, and look for the removed bytes in all of its files."""
        store, problems = self._engine.store, []
        self._engine.lexicon.forget_unsaved()
        try:
            with store.exclusive() as connection:
                emptied = rebuilding.compact(connection)
        except StoreError as fault:  # a full disk, say: what was forgotten is, and that has to be told
            emptied = True
            reason = "there is no space" if isinstance(fault, StoreFull) else type(fault).__name__
            problems.append(
                f"what was forgotten is gone from the tables, but the file could not be compacted ({reason}): "
                "mend that, then run recollect vacuum"
            )
        if not emptied and not store.in_memory:
            problems.append(
                f"another connection reads an older state of {store.path}, so its WAL could not be emptied: end that "
                "reader, then run recollect vacuum"
            )
        sizes: dict[str, int] = {}
        found: set[bytes] = set()
        if not store.in_memory:
            sizes, found = erasing.found_in_files(store, self._traces)
        with store.read() as reader:
            elsewhere, standing = erasing.standing_in_tables(reader, found)
        if left := found - standing:
            problems.append(
                f"{len(left)} of {len(self._traces.pieces)} byte sequences of what was forgotten still stand in "
                f"{', '.join(sizes)}, in no row: end the other processes that have {store.path} open, then run "
                "recollect vacuum"
            )
        return ErasureReceipt(
            complete=not problems, erased_at=to_datetime(now_us()), path=store.path, ids=self._ids,
            removed=self._removed, sidecar=self._sidecar, searched=len(self._traces.pieces),
            too_short=self._traces.skipped, files=sizes, elsewhere=elsewhere, problems=tuple(problems),
        )  # fmt: skip
