"""A read transaction of a SQLite store, on a connection that nobody else reads from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recallite.store.sqlite.faults import raise_translated

if TYPE_CHECKING:
    from types import TracebackType

    from recallite.store.sqlite.store import SqliteStore
    from recallite.store.sqlite.transaction import SqliteTransaction


class Reading:
    """A read transaction. A class, since recalls are short and a generator takes three times as long."""

    __slots__ = ("_reader", "_store")

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def __enter__(self) -> SqliteTransaction:
        reader = self._reader = self._store.take_reader()
        try:
            reader.connection.execute("BEGIN")
            reader.changes.begin_reading()
        except BaseException as fault:
            self.__exit__(type(fault), fault, None)
            raise
        return reader

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        store, reader = self._store, self._reader
        try:
            if fault is not None:
                raise_translated(fault, store.path, reader.connection, encrypted=store.key is not None)
        finally:
            store.give_back(reader, sound=fault is None)
