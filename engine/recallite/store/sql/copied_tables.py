"""The tables of a copy: their columns with types, their keys, and which rows belong to a scope."""

from __future__ import annotations

from types import NoneType
from typing import NamedTuple

from recallite.store.sql.repository import within

# What the columns hold, by the letter that names it below.
_TYPES: dict[str, type] = {"i": int, "f": float, "t": str, "x": bytes, "b": bool}
# Rows that are read and written at a time; of tables whose rows may be large, fewer.
_ROWS = 4096
_LARGE_ROWS = 512
_PATH = "{path is within}"


class CopiedTable(NamedTuple):
    """A table: (name, letter of the type, whether it may be NULL) of each column, the columns of its key.

    `chosen` is the condition on the rows of a scope, None where a copy of a scope leaves the table out; rows of a
    `large` one may be large.
    """

    name: str
    columns: tuple[tuple[str, str, bool], ...]
    key: tuple[str, ...]
    chosen: str | None
    large: bool

    @property
    def rows_a_block(self) -> int:
        """How many rows are read and written at a time."""
        return _LARGE_ROWS if self.large else _ROWS

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _, _ in self.columns)

    @property
    def types(self) -> tuple[frozenset[type], ...]:
        """The types that the values of each column may have."""
        return tuple(frozenset({_TYPES[letter], *([NoneType] if null else [])}) for _, letter, null in self.columns)

    def condition(self, scope: str) -> tuple[str, tuple[str, ...]]:
        """The condition on the rows of a scope and those below it, and what it binds."""
        assert self.chosen is not None
        path, bound = within(scope)
        return self.chosen.replace(_PATH, path), bound * self.chosen.count(_PATH)


def _table(name: str, columns: str, *, key: str = "id", chosen: str | None, large: bool = False) -> CopiedTable:
    """A table, its columns as "name letter", with "?" where they may be NULL."""
    parts = (each.split() for each in columns.split(","))
    parsed = tuple((column, letter[0], letter.endswith("?")) for column, letter in parts)
    return CopiedTable(name, parsed, tuple(key.split()), chosen, large)


_SCOPED = f"scope_id IN (SELECT id FROM scope WHERE {_PATH})"


def _of(column: str) -> str:
    """The condition that a column names a record of the scope; `column` is with its table."""
    return f"EXISTS (SELECT 1 FROM record r WHERE r.id = {column} AND r.{_SCOPED})"


def _of_vector(column: str) -> str:
    return f"EXISTS (SELECT 1 FROM vector v JOIN record r ON r.id = v.record_id WHERE v.id = {column} AND r.{_SCOPED})"


TERM = "term"
MESSAGE = "session_message"
STATEMENT = "statement"
TABLES = (
    _table("meta", "key t, value t", key="key", chosen=None),
    _table("scope", "id i, path t", chosen=_PATH),
    _table("kind", "id i, name t", chosen=f"EXISTS (SELECT 1 FROM record r WHERE r.kind = kind.name AND r.{_SCOPED})"),
    _table("source", "id i, scope_id i, name t, metadata t?", chosen=_SCOPED),
    _table("embedder", "id i, fingerprint t, name t, dimension i, vector_type t, active b", chosen="true"),
    # Which words a scope has is not for SQL to say: they are in arrays.
    _table(TERM, "id i, text t", chosen="id IN (SELECT value FROM carray(?))"),
    _table(
        "tag",
        "id i, name t",
        chosen="EXISTS (SELECT 1 FROM record_tag p JOIN record r ON r.id = p.record_id "
        f"WHERE p.tag_id = tag.id AND r.{_SCOPED})",
    ),
    _table(
        "record",
        "id i, public_id t, kind t, scope_id i, text t, context t?, importance f, base_importance f?, pinned b, "
        "topic t?, source_id i?, position i?, created_at i, valid_from i?, valid_until i?, valid_resolved b, "
        "updated_at i, expires_at i?, expires_after i?, recorded_from i, recorded_until i?, superseded_at i?, "
        "superseded_until i?, held_until i?, metadata t?, content_hash x, embedding_state t, indexed b",
        chosen=_SCOPED,
        large=True,
    ),
    _table("record_tag", "record_id i, place i, tag_id i", key="record_id place", chosen=_of("record_tag.record_id")),
    _table("access", "record_id i, count i, accessed_at i", key="record_id", chosen=_of("access.record_id")),
    _table("record_terms", "record_id i, terms x, counts x", key="record_id", chosen=_of("record_terms.record_id")),
    _table("standing", "record_id i, name t", key="record_id", chosen=_of("standing.record_id")),
    _table(STATEMENT, "record_id i, keys x, frames x", key="record_id", chosen=_of("statement.record_id")),
    _table("occurrence", "id i, record_id i, at i, text t?", chosen=_of("occurrence.record_id"), large=True),
    _table(
        "link",
        "source_id i, target_id i, type t, strength f, created_at i, reason t?",
        key="source_id target_id type",
        chosen=f"{_of('link.source_id')} AND {_of('link.target_id')}",
    ),
    _table(
        "supersession",
        "id i, old_id i, new_id i, holds_from i, known_from i, known_until i?, reason t?, strength f",
        chosen=f"{_of('supersession.old_id')} AND {_of('supersession.new_id')}",
    ),
    _table(
        "judgement",
        "old_id i, new_id i, confidence f, reason t, created_at i",
        key="old_id new_id",
        chosen=f"{_of('judgement.old_id')} AND {_of('judgement.new_id')}",
    ),
    _table(
        "uncompared",
        "first_id i, last_id i, policy t",
        key="first_id",
        chosen="EXISTS (SELECT 1 FROM record r WHERE r.id BETWEEN uncompared.first_id AND uncompared.last_id "
        f"AND r.{_SCOPED})",
    ),
    _table("vector", "id i, record_id i, part i, embedder_id i, value x", chosen=_of("vector.record_id")),
    _table("token_code", "vector_id i, codes x", key="vector_id", chosen=_of_vector("token_code.vector_id")),
    _table(
        "refusal",
        "record_id i, embedder_id i, reason t",
        key="record_id embedder_id",
        chosen=_of("refusal.record_id"),
    ),
    _table("session", "id i, scope_id i, name t, provider t?, created_at i", chosen=_SCOPED),
    _table(
        MESSAGE,
        "id i, session_id i, position i, role t?, content t, message t, created_at i",
        chosen=f"EXISTS (SELECT 1 FROM session s WHERE s.id = session_id AND s.{_SCOPED})",
        large=True,
    ),
    _table(
        "session_snapshot",
        "id i, public_id t, scope_id i, session t?, messages t, summary t, key_decisions t, task_ids t, "
        "started_at i?, ended_at i, total_cost f, total_tokens i",
        chosen=_SCOPED,
        large=True,
    ),
    _table(
        "procedure_use",
        "record_id i, success_rate f, use_count i, success_count i",
        key="record_id",
        chosen=_of("procedure_use.record_id"),
    ),
    _table(
        "tool_pattern",
        "scope_id i, task_type t, pattern t, total_count i, success_count i, total_steps i, steps_measured i, "
        "total_tokens i, tokens_measured i, created_at i, updated_at i",
        key="scope_id task_type pattern",
        chosen=_SCOPED,
    ),
    _table(
        "error_recovery",
        "scope_id i, tool t, error_pattern t, error t, recovery t, total_count i, created_at i, updated_at i",
        key="scope_id tool error_pattern",
        chosen=_SCOPED,
    ),
    _table(
        "consolidation",
        "id i, scope_id i, trigger_id i, replayed_id i, created_at i, compressed i, pruned i, replayed i, promoted i, "
        "error t?",
        chosen=_SCOPED,
    ),
    _table("working_state", "scope_id i, items t, updated_at i", key="scope_id", chosen=_SCOPED, large=True),
    _table(
        "document",
        "id i, public_id t, source_id i, title t?, media_type t, content_hash x, chunking t, size_bytes i, "
        "mtime_ns i?, inode i?, read_at i, metadata t?, given t?, problem t?, chunks i, created_at i, updated_at i",
        chosen=f"EXISTS (SELECT 1 FROM source s WHERE s.id = source_id AND s.{_SCOPED})",
        large=True,
    ),
    _table(
        "access_token",
        "id i, public_id t, name t?, hash x, scope t, read_only b, created_at i, expires_at i?",
        chosen=f"EXISTS (SELECT 1 FROM (SELECT access_token.scope AS path) own WHERE {_PATH})",
    ),
    # Of texts that may have been in any scope.
    _table(
        "embedding_cache",
        "id i, content_hash x, embedder_id i, parts x, codes x?, used i",
        chosen=None,
        large=True,
    ),
)
"""Each after those that its rows refer to."""
META_KEYS = ("identity", "purpose")
"""The rows of `meta` that a copy takes over; the others are each store's own."""
# What was forgotten may leave rows in these.
_LEFT_BEHIND = ("meta", "scope", "kind", "embedder", TERM, "tag", "uncompared", "embedding_cache")
OWN_CONTENT = tuple(each.name for each in TABLES if each.name not in _LEFT_BEHIND)
"""A store with rows in any of these has content."""
