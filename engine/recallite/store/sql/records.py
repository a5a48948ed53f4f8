"""Writing records; derived tables stay in step."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from posixpath import commonpath
from typing import Any, NamedTuple

import msgspec

from recallite.store.columns import Derivation, Parts, Row, RowColumns
from recallite.store.sql.derived import Stored
from recallite.store.sql.record_reading import JOINS, RecordReader
from recallite.store.sql.repository import IN_ARRAY, TAGS_SQL
from recallite.store.sql.schema import columns_of
from recallite.store.sql.vectors import EmbedderRow

# Columns that a closed version takes over from its record.
_DERIVED = ("superseded_at", "superseded_until", "held_until")
_OWN = columns_of("record", without=("id", "scope_id", "source_id", *_DERIVED))
_COLUMNS = (*_OWN, "scope_id", "source_id")
_INSERTED = f"id, {', '.join(_COLUMNS)}"
# Tables whose rows a closed version has too.
_COPIED = {"record_tag": "place, tag_id", "refusal": "embedder_id, reason", "standing": "name"}
_DERIVE_FROM = (
    "UPDATE record SET (superseded_at, superseded_until, held_until) = "
    "(SELECT superseded_at, superseded_until, held_until FROM record WHERE id = ?) WHERE id = ?"
)


class Access(NamedTuple):
    """The row that was recalled, the number of times, and the last time, in microseconds.

    The row id tells a record from one that gets its public id once it is purged: `new_ids` gives none twice.
    """

    row_id: int
    times: int
    last_at: int


class Records(RecordReader):
    """The table `record` and what is derived from it."""

    def insert(self, rows: Sequence[Row], embedder: EmbedderRow | None) -> list[int]:
        """Insert records with their words, tags and vectors; returns their row ids, ascending.

        `rows` may be `RowColumns`, with what was derived from them and what they wait for.
        """
        columns = RowColumns.of(rows)
        if not columns.text:
            return []
        ids = self._tx.new_ids("record", len(columns.text))
        scopes = self._tx.scopes.intern({*columns.scope})
        scope_ids = [*map(scopes.__getitem__, columns.scope)]
        source_ids: list[int | None] = [None] * len(ids)
        if columns.source.count(None) < len(ids):
            placed = [*zip(scope_ids, columns.source, strict=True)]
            sources = self._tx.scopes.intern_sources({(scope, name) for scope, name in placed if name is not None})
            source_ids = [None if name is None else sources[scope, name] for scope, name in placed]
        self._insert_rows(ids, columns, scope_ids, source_ids)
        self._insert_derived(ids, columns, scope_ids)
        self._insert_vectors(ids, columns, embedder)
        if any(columns.repeated):
            repeated = zip(ids, columns.repeated, strict=True)
            self._tx.comparisons.add_occurrences((row_id, *again) for row_id, times in repeated for again in times)
        if columns.accessed_at.count(None) < len(ids):
            accessed = zip(ids, columns.access_count, columns.accessed_at, strict=True)
            self._insert_many(
                "access", "record_id, count, accessed_at", [row for row in accessed if row[2] is not None]
            )
        self._tx.changes.append_ids("insert", ids)
        return ids

    def _insert_rows(
        self, ids: Sequence[int], rows: RowColumns, scopes: Sequence[int], sources: Sequence[int | None]
    ) -> None:
        """Insert rows into `record`, given the ids of their scopes and sources."""
        self._number_kinds({*rows.kind})
        columns = [rows.embedding_states if name == "embedding_state" else getattr(rows, name) for name in _OWN]
        self._insert_many("record", _INSERTED, zip(ids, *columns, scopes, sources, strict=True))

    def _number_kinds(self, kinds: set[str]) -> None:
        """Give a number to each kind that has none: a trigger that looked for it took two fifths of an insert."""
        known = self._tx.known("kinds", lambda: {*self._column("SELECT name FROM kind")})
        if new := sorted(kinds - known):
            self._tx.add_names("kind", "name", new)
            known.update(new)

    def _insert_derived(self, ids: Sequence[int], rows: RowColumns, scopes: Sequence[int]) -> None:
        """Store tags, words, standing and statements of rows; rows that recall leaves out have only tags."""
        if any(rows.tags):
            self.put_tags([tagged for tagged in zip(ids, rows.tags, strict=True) if tagged[1]])
        if not all(rows.indexed):
            indices = [i for i, indexed in enumerate(rows.indexed) if indexed]
            ids, scopes = [ids[i] for i in indices], [scopes[i] for i in indices]
            rows = rows.select(indices)
        if not ids:
            return
        stored = Stored(ids, scopes, [None] * len(ids), rows.texts())
        derivation, derived = rows.derivation, rows.derived
        if derivation is None:
            derivation, derived = self._tx.derive(stored.texts), None
        waiting: dict[str, list[int]] = {}
        if rows.waits_under is not None:
            for row_id, policy in zip(ids, rows.waits_under, strict=True):
                if policy is not None:
                    waiting.setdefault(policy, []).append(row_id)
        for policy, row_ids in waiting.items():
            self._tx.comparisons.add(row_ids, policy)
        self._put_derived(stored, derivation, derived, {*chain(*waiting.values())})

    def _put_derived(
        self, stored: Stored, derivation: Derivation, derived: Sequence[int] | None, waiting: Collection[int]
    ) -> None:
        """Store what was derived from versions; `derived` are their indices in it, None for all.

        Records that wait to be compared get no statements: nothing is compared with them before their turn.
        """
        words = derivation.words
        self._tx.lexicon.put(stored.ids, words if derived is None else words.of(derived))
        indices = range(len(stored.ids)) if derived is None else derived
        standing = derivation.standing
        if any(standing):
            named = [(row_id, standing[i]) for row_id, i in zip(stored.ids, indices, strict=True) if standing[i]]
            self._insert_many("standing", "record_id, name", named)
        if len(waiting) < len(stored.ids):
            self._tx.statements.put(
                stored,
                [
                    None if row_id in waiting else derivation.statement(i)
                    for row_id, i in zip(stored.ids, indices, strict=True)
                ],
            )

    def derive(self, ids: Sequence[int]) -> None:
        """Derive again what belongs to the texts of these records, from what is stored of them."""
        self._tx.lexicon.drop(ids)
        self._execute(f"DELETE FROM standing WHERE record_id {IN_ARRAY}", (self._id_array(ids),))
        self._tx.statements.drop(ids)
        stored = self._tx.statements.stored(ids)
        if stored.ids:
            waiting = {*ids}.difference(self._tx.comparisons.without(ids))
            self._put_derived(stored, self._tx.derive(stored.texts), None, waiting)

    def _insert_vectors(self, ids: Sequence[int], rows: RowColumns, embedder: EmbedderRow | None) -> None:
        """Store the vectors of rows, or why the embedder refused them."""
        if embedder is None:
            return
        vectors: list[tuple[int, int, bytes, bytes | None]] = []
        for row_id, values, codes in zip(ids, rows.vectors, rows.codes, strict=True):
            if len(values) == 1:
                vectors.append((row_id, 0, values[0], codes[0] if codes else None))
            else:
                vectors += Parts(values, codes).rows(row_id)
        self._tx.vectors.insert(embedder, vectors)
        if any(rows.refused):
            refused = {row_id: why for row_id, why in zip(ids, rows.refused, strict=True) if why is not None}
            self._tx.vectors.add_refusals(embedder.id, refused)

    def put_tags(self, tagged: Sequence[tuple[int, tuple[str, ...]]]) -> None:
        """Store tags in their order, new names added."""
        names = tuple({name for _, tags in tagged for name in tags})
        if not names:
            return
        self._tx.add_names("tag", "name", names)
        tag_ids = dict(self._execute(f"SELECT name, id FROM tag WHERE name {IN_ARRAY}", (self._array(names),)))
        self._insert_many(
            "record_tag",
            "record_id, place, tag_id",
            [(row_id, i, tag_ids[name]) for row_id, tags in tagged for i, name in enumerate(tags)],
        )

    def replace_tags(self, tagged: Sequence[tuple[int, tuple[str, ...]]]) -> list[int]:
        """Give records other tags, which are words too; returns the ones that had others."""
        rows = self._rows(
            f"SELECT r.id, {TAGS_SQL} FROM record r WHERE r.id {IN_ARRAY}",
            (self._id_array([row_id for row_id, _ in tagged]),),
        )
        given = dict(tagged)
        changed = [row for row in rows if tuple(msgspec.json.decode(row[1])) != given[row[0]]]
        self._execute_many("DELETE FROM record_tag WHERE record_id = ?", [(row[0],) for row in changed])
        self.put_tags([(row[0], given[row[0]]) for row in changed])
        ids = [row[0] for row in changed]
        self._tx.lexicon.drop(ids)
        stored = self._tx.statements.stored(ids)
        if stored.ids:
            self._tx.lexicon.put(stored.ids, self._tx.derive(stored.texts).words)
        return ids

    def change_text(self, row_id: int, row: Row, embedder: EmbedderRow | None, *, keep_version: bool = True) -> None:
        """Replace the text of a record. The old one becomes a closed version with a row id of its own, or is purged."""
        # The next version begins after this one, whatever the clocks of two writers say: each was current once.
        began: Any = self._execute("SELECT recorded_from FROM record WHERE id = ?", (row_id,)).get
        recorded_from = max(row.recorded_from, began + 1)
        self._put_text(row_id, row, embedder, recorded_from, keep_version=keep_version)

    def put_versions(self, row_id: int, rows: Sequence[Row], embedder: EmbedderRow | None) -> None:
        """Replace all texts of a record by these, oldest first: the last is the open one."""
        *closed, current = rows
        self._put_text(row_id, current, embedder, current.recorded_from, keep_version=False)
        self._tx.comparisons.add_occurrences((row_id, *again) for again in current.repeated)
        ids = self.insert(closed, embedder)
        self._execute_many(_DERIVE_FROM, [(row_id, version_id) for version_id in ids])

    def _put_text(
        self, row_id: int, row: Row, embedder: EmbedderRow | None, recorded_from: int, *, keep_version: bool
    ) -> None:
        if keep_version:
            self._close_version(row_id, closed_at=recorded_from)
        else:
            self.purge_versions([row_id])
            self._execute("DELETE FROM occurrence WHERE record_id = ?", (row_id,))
        for table in ("vector", "refusal"):
            self._execute(f"DELETE FROM {table} WHERE record_id = ?", (row_id,))
        self._execute(
            "UPDATE record SET text = ?, context = ?, content_hash = ?, updated_at = ?, recorded_from = ?, "
            "embedding_state = ?, indexed = ? WHERE id = ?",
            (row.text, row.context, row.content_hash, row.updated_at, recorded_from, row.embedding_state, row.indexed,
             row_id),
        )  # fmt: skip
        self.derive([row_id])
        self._insert_vectors([row_id], RowColumns.of([row]), embedder)
        self._tx.changes.append("text", row_id)

    def insert_earlier(self, row_id: int, row: Row, embedder: EmbedderRow | None) -> None:
        """Insert a text that is older than the current one among the versions of a record, by its time."""
        versions = self._rows(
            "SELECT v.id, v.recorded_from, v.public_id FROM record r JOIN record v ON v.public_id = r.public_id "
            "WHERE r.id = ? ORDER BY v.recorded_from, v.recorded_until IS NULL, v.id",
            (row_id,),
        )
        row.public_id = versions[0][2]
        row.recorded_until = next(began for _, began, _ in versions if began > row.recorded_from)
        before = [version_id for version_id, began, _ in versions if began <= row.recorded_from]
        if before:
            self._execute("UPDATE record SET recorded_until = ? WHERE id = ?", (row.recorded_from, before[-1]))
            self._tx.changes.append("update", before[-1])
        (version_id,) = self.insert([row], embedder)
        self._execute(_DERIVE_FROM, (row_id, version_id))

    def change_columns(self, row_id: int, columns: dict[str, Any], tags: tuple[str, ...] | None) -> None:
        """Change fields other than text: `columns` by name, `scope` and `source` as names; `tags` replace all tags."""
        columns = dict(columns)
        if "importance" in columns:
            columns.setdefault("base_importance", None)
        scope_id, old_source, source = self._execute(
            f"SELECT r.scope_id, r.source_id, o.name FROM record r {JOINS} WHERE r.id = ?", (row_id,)
        ).fetchone()
        old_sources = {old_source}
        if not columns.keys().isdisjoint(("scope", "source")):
            source = columns.pop("source", source)
            if "scope" in columns:
                scope_id = columns["scope_id"] = self._tx.scopes.id_of(columns.pop("scope"))
            key = (scope_id, source)
            columns["source_id"] = None if source is None else self._tx.scopes.intern_sources({key})[key]
        if "kind" in columns:
            self._number_kinds({columns["kind"]})
        assignments = ", ".join(f"{name} = ?" for name in columns)
        self._execute(f"UPDATE record SET {assignments} WHERE id = ?", (*columns.values(), row_id))
        if not columns.keys().isdisjoint(("kind", "scope_id", "authority", "position")):
            self.derive([row_id])
        if "expires_at" in columns:
            self._tx.supersessions.derive([row.old_id for row in self._tx.supersessions.of_new([row_id])])
        if tags is not None and self.replace_tags([(row_id, tags)]):
            self._tx.changes.append("text", row_id)
        if "source_id" in columns:
            now, moved = self.get(row_id), self.closed_versions([row_id])
            for version, was, old_source in self._rows(
                "SELECT r.id, s.path, r.source_id FROM record r JOIN scope s ON s.id = r.scope_id "
                f"WHERE r.id {IN_ARRAY}",
                (self._id_array(moved),),
            ):
                scope_id, source_id = self._tx.scopes.id_of(self._past_scope(was, now.scope)), None
                if now.source is not None:
                    (source_id,) = self._tx.scopes.intern_sources({(scope_id, now.source)}).values()
                moved_to = (scope_id, source_id, version)
                self._execute("UPDATE record SET scope_id = ?, source_id = ? WHERE id = ?", moved_to)
                old_sources.add(old_source)
            self._tx.changes.append_ids("update", moved)
            self._tx.scopes.drop_empty_sources(old_sources)
        self._tx.changes.append("update", row_id)

    def _past_scope(self, was: str, now: str) -> str:
        """The scope of what a record said in one scope that is in another now: the narrowest that has both.

        Without access to a record there is none to its past, nor to its life elsewhere with access to it.
        """
        return commonpath((was, now))

    def set_expiry(self, row_ids: Sequence[int], expires_at: int | None, expires_after: int | None) -> None:
        """Set when records expire, and how long they live after each renewal; no other field changes."""
        self._move_expiry(row_ids, "expires_at = ?, expires_after = ?", expires_at, expires_after)

    def slide_expiry(self, row_ids: Sequence[int], now: int) -> None:
        """Let records with an `expires_after` expire so long after `now`; no other field changes."""
        self._move_expiry(row_ids, "expires_at = coalesce(? + expires_after, expires_at)", now)

    def _move_expiry(self, row_ids: Sequence[int], assignment: str, *values: int | None) -> None:
        if not len(row_ids):
            return
        self._execute(f"UPDATE record SET {assignment} WHERE id {IN_ARRAY}", (*values, self._id_array(row_ids)))
        self._tx.supersessions.derive([row.old_id for row in self._tx.supersessions.of_new(row_ids)])
        self._tx.changes.append_ids("update", list(row_ids))

    def delete(self, row_ids: Sequence[int], base: str = "/") -> int:
        """Purge open records with their versions, vectors, words, tags and links; returns as `purge_versions`."""
        if not len(row_ids):
            return 0
        sources = self._sources_of(row_ids)
        losing, following = self._tx.supersessions.losing(row_ids)
        closed = self.purge_versions(row_ids, base)
        self._purge(row_ids)
        self._tx.supersessions.put(following)
        self._tx.supersessions.derive(losing)
        self._tx.scopes.drop_empty_sources(sources)
        return closed

    def purge_versions(self, row_ids: Sequence[int], base: str = "/") -> int:
        """Purge the closed versions of these open records; returns how many the scope `base` had of them."""
        closed = self.closed_versions(row_ids)
        seen = closed if base == "/" else self.closed_versions(row_ids, base)
        # Of a record that was moved, they are in another scope, which has a source of the same name.
        sources = self._sources_of(closed) if closed else []
        self._purge(closed)
        self._tx.scopes.drop_empty_sources(sources)
        return len(seen)

    def _sources_of(self, row_ids: Sequence[int]) -> list[int]:
        return self._column(
            f"SELECT DISTINCT source_id FROM record WHERE id {IN_ARRAY} AND source_id IS NOT NULL",
            (self._id_array(row_ids),),
        )

    def touch(self, accesses: Mapping[str, Access]) -> None:
        """Add to access counts, by public id. This is no change of the feed: ranking does not depend on them."""
        self._execute_many(
            "INSERT INTO access (record_id, count, accessed_at) SELECT id, ?3, ?4 FROM record "
            "WHERE public_id = ?1 AND id = ?2 AND recorded_until IS NULL ON CONFLICT (record_id) DO UPDATE SET "
            "count = access.count + excluded.count, accessed_at = CASE WHEN access.accessed_at > excluded.accessed_at "
            "THEN access.accessed_at ELSE excluded.accessed_at END",
            # In one order, so that two writers do not wait for each other.
            [(public_id, *access) for public_id, access in sorted(accesses.items())],
        )

    def _close_version(self, row_id: int, *, closed_at: int) -> None:
        """Copy a record, with words, vectors and tags, into a closed row of its own."""
        (version_id,) = self._tx.new_ids("record", 1)
        values = ", ".join("?" if name == "recorded_until" else name for name in (*_COLUMNS, *_DERIVED))
        self._execute(
            f"INSERT INTO record (id, {', '.join((*_COLUMNS, *_DERIVED))}) SELECT ?, {values} FROM record WHERE id = ?",
            (version_id, closed_at, row_id),
        )
        for table, columns in _COPIED.items():
            self._execute(
                f"INSERT INTO {table} (record_id, {columns}) SELECT ?, {columns} FROM {table} WHERE record_id = ?",
                (version_id, row_id),
            )
        active = self._tx.vectors.active_embedder()
        if active is not None:
            self._tx.vectors.insert(active, self._tx.vectors.of_record(row_id).rows(version_id))
        self._tx.lexicon.copy(row_id, version_id)
        self._tx.statements.derive([version_id])
        self._tx.comparisons.move_occurrences(row_id, version_id)
        self._tx.changes.append("insert", version_id)

    def closed_versions(self, row_ids: Sequence[int], base: str = "/") -> list[int]:
        """Row ids of the closed versions of these open records, as far as they are in the scope `base`."""
        within = self._tx.conditions.in_scopes((base,))
        return self._column(
            "SELECT r.id FROM record o JOIN record r ON r.public_id = o.public_id AND r.recorded_until IS NOT NULL "
            f"WHERE o.id {IN_ARRAY} AND {within.sql}",
            (self._id_array(row_ids), *within.values),
        )

    def _purge(self, row_ids: Sequence[int]) -> None:
        self._tx.snapshot.discard()
        if not len(row_ids):
            return
        self._tx.lexicon.drop(row_ids)
        self._tx.statements.drop(row_ids)
        # Tags, links, supersessions, access counts and vectors follow by foreign key.
        self._execute(f"DELETE FROM record WHERE id {IN_ARRAY}", (self._id_array(row_ids),))
        self._tx.changes.append_ids("delete", list(row_ids))
