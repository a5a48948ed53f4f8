"""State of what `sync` has exchanged with other devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from recallite.store.sql.repository import IN_ARRAY, Repository

_COLUMNS = "key, name, state, number, diverged"


class SyncedRow(NamedTuple):
    """A row of the table `synced`; its meaning is that of `transfer/syncing`."""

    key: str
    name: str | None
    state: bytes
    number: int
    diverged: str | None = None


class Synced(Repository):
    """The table `synced`, and the place of this store among the devices."""

    def place(self) -> str | None:
        """The place of this store, as JSON; None before the first `sync`."""
        value: str | None = self._execute("SELECT value FROM meta WHERE key = 'sync'").get
        return value

    def put_place(self, value: str) -> None:
        """Set the place of this store."""
        self._execute("INSERT INTO meta VALUES ('sync', ?) ON CONFLICT (key) DO UPDATE SET value = ?1", (value,))

    def rows(self, keys: Sequence[str]) -> dict[str, SyncedRow]:
        """The rows with these keys; others are absent."""
        rows = self._execute(f"SELECT {_COLUMNS} FROM synced WHERE key {IN_ARRAY}", (self._array(keys),))
        return {row[0]: SyncedRow(*row) for row in rows}

    def all(self) -> Iterator[SyncedRow]:
        """Every row, streamed."""
        return (SyncedRow(*row) for row in self._execute(f"SELECT {_COLUMNS} FROM synced"))

    def keys_in(self, number: int) -> list[str]:
        """The keys of what is in a file of this device."""
        return self._column("SELECT key FROM synced WHERE number = ? ORDER BY key", (number,))

    def sent_keys(self) -> list[str]:
        """The keys of all that this device has sent."""
        return self._column("SELECT key FROM synced WHERE number > 0 ORDER BY number, key")

    def gone(self) -> list[int]:
        """The file of this device in which each thing is that it has said to be gone."""
        return self._column("SELECT number FROM synced WHERE number > 0 AND name IS NULL")

    def diverged(self) -> list[tuple[str, int, int]]:
        """The ids of memories that two devices changed, and when the text that lost and the current one were stored."""
        rows = self._rows("SELECT name, diverged FROM synced WHERE diverged IS NOT NULL AND name IS NOT NULL")
        return [(msgspec.json.decode(name)[1], *msgspec.json.decode(times)) for name, times in rows]

    def put(self, rows: Iterable[SyncedRow]) -> None:
        """Insert or replace rows."""
        self._execute_many(
            f"INSERT INTO synced ({_COLUMNS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET name = "
            "excluded.name, state = excluded.state, number = excluded.number, diverged = excluded.diverged",
            [*rows],
        )

    def number(self, keys: Sequence[str], number: int) -> None:
        """Set the file in which these are."""
        self._execute(f"UPDATE synced SET number = ? WHERE key {IN_ARRAY}", (number, self._array(keys)))

    def forget_names(self, public_ids: Iterable[str]) -> None:
        """Forget the names of memories that are erased, and of what belongs to them."""
        ids = {*public_ids}
        rows = self._execute("SELECT key, name FROM synced WHERE name IS NOT NULL") if ids else ()
        # After the kind come one or two ids, and then what may be equal to one: the type of a link.
        keys = [key for key, name in rows if not ids.isdisjoint(msgspec.json.decode(name)[1:3])]
        self._execute(f"UPDATE synced SET name = NULL WHERE key {IN_ARRAY}", (self._array(keys),))
