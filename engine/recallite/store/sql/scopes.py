"""Scopes, the sources within them, and what the services keep of a scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from recallite.store.sql.repository import IN_ARRAY, Repository, within

_TABLES = {
    "sessions": "session",
    "snapshots": "session_snapshot",
    "tool_patterns": "tool_pattern",
    "error_recoveries": "error_recovery",
    "consolidations": "consolidation",
    "working_memories": "working_state",
}


class Scopes(Repository):
    """The tables `scope` and `source`."""

    def intern(self, paths: set[str]) -> dict[str, int]:
        """The id of each scope, new ones added."""
        ids = self.ids(tuple(paths))
        new = [path for path in paths if path not in ids]
        if new:
            self._tx.add_names("scope", "path", new)
            ids |= self.ids(new)
        return ids

    def intern_sources(self, keys: set[tuple[int, str]]) -> dict[tuple[int, str], int]:
        """The id of each (scope id, name), new ones added; two statements a scope."""
        names_of: dict[int, list[str]] = {}
        for scope_id, name in keys:
            names_of.setdefault(scope_id, []).append(name)
        ids: dict[tuple[int, str], int] = {}
        for scope_id in sorted(names_of):
            names = self._array(sorted(names_of[scope_id]))
            self._execute(
                "INSERT INTO source (scope_id, name) SELECT ?, value FROM carray(?) WHERE true ON CONFLICT DO NOTHING",
                (scope_id, names),
            )
            rows = self._rows(
                f"SELECT name, id FROM source WHERE scope_id = ? AND name {IN_ARRAY}",
                (scope_id, names),
            )
            ids.update({(scope_id, name): source_id for name, source_id in rows})
        return ids

    def within(self, scopes: Sequence[str]) -> list[int]:
        """The ids of these scopes and their descendants, each once."""
        ids = {
            row[0]
            for scope in scopes
            for row in self._execute(
                "SELECT id FROM scope WHERE path = ? OR (path >= ? AND path < ?)", (scope, scope + "/", scope + "0")
            )
        }
        return sorted(ids)

    def inhabited(self, scopes: Sequence[str], limit: int) -> list[str]:
        """Paths of these scopes (empty: all) and their descendants that have open records, shallow ones first."""
        return self._column(
            f"SELECT s.path FROM scope s WHERE {'s.id ' + IN_ARRAY if scopes else 'true'} AND EXISTS "
            "(SELECT 1 FROM record r WHERE r.scope_id = s.id AND r.recorded_until IS NULL) "
            "ORDER BY length(s.path) - length(replace(s.path, '/', '')), s.path LIMIT ?",
            (*([self._id_array(self.within(scopes))] if scopes else []), limit),
        )

    def ids(self, paths: Sequence[str]) -> dict[str, int]:
        """The ids of the scopes that the store knows among these paths."""
        if len(paths) == 1:
            scope_id = self._tx.known(("scope", paths[0]), lambda: self._read_ids(paths).get(paths[0]))
            return {} if scope_id is None else {paths[0]: scope_id}
        return self._read_ids(paths)

    def _read_ids(self, paths: Sequence[str]) -> dict[str, int]:
        rows = self._rows(f"SELECT path, id FROM scope WHERE path {IN_ARRAY}", (self._array(paths),))
        return dict(rows)

    def drop_empty_sources(self, source_ids: Iterable[Any]) -> None:
        """Remove these sources where no record and no document is left of them."""
        self._execute_many(
            "DELETE FROM source WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM record WHERE source_id = ?1) "
            "AND NOT EXISTS (SELECT 1 FROM document WHERE source_id = ?1)",
            [(source_id,) for source_id in source_ids if source_id is not None],
        )

    def id_of(self, path: str) -> int:
        """The id of a scope, added if it is new."""
        return self.intern({path})[path]

    def service_counts(self, scope: str) -> dict[str, int]:
        """The number of rows that each service keeps in a scope and its descendants."""
        condition, bound = within(scope)
        seen = f"(SELECT id FROM scope WHERE {condition})"
        counts: dict[str, int] = {
            name: self._execute(f"SELECT count(*) FROM {table} WHERE scope_id IN {seen}", bound).get
            for name, table in _TABLES.items()
        }
        counts["session_messages"] = self._execute(
            f"SELECT count(*) FROM session_message m JOIN session s ON s.id = m.session_id WHERE s.scope_id IN {seen}",
            bound,
        ).get
        counts["documents"] = len(self._tx.documents.listed(scope))
        return counts

    def purge_services(self, scope: str) -> int:
        """Purge what every service keeps in a scope and its descendants; returns the rows, messages not counted."""
        condition, bound = within(scope)
        removed = 0
        sessions = self._tx.sessions.unused_since(scope, None)
        if sessions:
            self._tx.sessions.delete(sessions)
            removed += len(sessions)
        for table in _TABLES.values():
            self._execute(f"DELETE FROM {table} WHERE scope_id IN (SELECT id FROM scope WHERE {condition})", bound)
            removed += self._connection.changes()
        return removed + self._tx.documents.purge_scope(scope)
