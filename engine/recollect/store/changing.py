"""Changing and purging records. Every function runs inside `Store.atomic()` and leaves derived tables in step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np

from recollect.store import feed, refusals, sidecar, vectors
from recollect.store.arrays import id_array
from recollect.store.lexicon import Lexicon
from recollect.store.writing import (
    COLUMNS,
    Row,
    insert,
    intern_scopes,
    intern_sources,
    next_id,
    put_tags,
    put_words,
    refused_rows,
    vector_rows,
)

__all__ = [
    "Access",
    "change_columns",
    "change_text",
    "delete",
    "drop_empty_sources",
    "insert_earlier",
    "purge_versions",
    "put_links",
    "set_vectors",
    "touch",
]


def change_text(
    connection: apsw.Connection,
    lexicon: Lexicon,
    record_id: int,
    row: Row,
    embedder: vectors.EmbedderRow | None,
    *,
    keep_version: bool = True,
) -> None:
    """Give a record a new text. The old one becomes a closed version in a row of its own, or is purged."""
    # The next version begins after this one, whatever the clocks of two writers say: each once was the one that stood.
    began: Any = connection.execute("SELECT valid_from FROM record WHERE id = ?", (record_id,)).get
    valid_from = max(row.valid_from, began + 1)
    if keep_version:
        _close_version(connection, record_id, closed_at=valid_from)
    else:
        purge_versions(connection, [record_id])
    connection.execute("DELETE FROM vector WHERE record_id = ?", (record_id,))
    refusals.drop(connection, record_id)
    connection.execute(
        "UPDATE record SET text = ?, context = ?, content_hash = ?, updated_at = ?, valid_from = ?, "
        "embedding_state = ? WHERE id = ?",
        (
            row.text,
            row.context,
            row.content_hash,
            row.updated_at,
            valid_from,
            row.embedding_state,
            record_id,
        ),
    )
    _drop_words(connection, [record_id])
    put_words(connection, lexicon, [record_id], [row.words])
    if embedder is not None:
        vectors.insert(connection, embedder, vector_rows([record_id], [row]))
        refusals.add(connection, embedder.id, refused_rows([record_id], [row]))
    feed.append(connection, "text", record_id)


def insert_earlier(
    connection: apsw.Connection,
    lexicon: Lexicon,
    record_id: int,
    row: Row,
    embedder: vectors.EmbedderRow | None,
) -> None:
    """Put a text that is older than the one that stands among a record's versions, at its time."""
    versions: Any = connection.execute(
        "SELECT v.id, v.valid_from, v.public_id FROM record r JOIN record v ON v.public_id = r.public_id "
        "WHERE r.id = ? ORDER BY v.valid_from, v.valid_to IS NULL, v.id",
        (record_id,),
    ).fetchall()
    row.public_id = versions[0][2]
    row.valid_to = next(began for _, began, _ in versions if began > row.valid_from)
    before = [version_id for version_id, began, _ in versions if began <= row.valid_from]
    if before:
        connection.execute("UPDATE record SET valid_to = ? WHERE id = ?", (row.valid_from, before[-1]))
        feed.append(connection, "update", before[-1])
    insert(connection, lexicon, [row], embedder)


def change_columns(
    connection: apsw.Connection, record_id: int, columns: dict[str, Any], tags: tuple[str, ...] | None
) -> None:
    """Change what is not text: `columns` by name (`scope` and `source` as names), `tags` as a whole."""
    columns = dict(columns)
    if "importance" in columns:
        columns.setdefault("base_importance", None)
    old_source = connection.execute("SELECT source_id FROM record WHERE id = ?", (record_id,)).get
    if "scope" in columns:
        scope = columns.pop("scope")
        columns["scope_id"] = intern_scopes(connection, {scope})[scope]
        if "source" not in columns:
            columns["source"] = connection.execute(
                "SELECT o.name FROM record r JOIN source o ON o.id = r.source_id WHERE r.id = ?", (record_id,)
            ).get
    if "source" in columns:
        source = columns.pop("source")
        scope_id = (
            columns.get("scope_id") or connection.execute("SELECT scope_id FROM record WHERE id = ?", (record_id,)).get
        )
        key = (scope_id, source)
        columns["source_id"] = None if source is None else intern_sources(connection, {key})[key]
    assignments = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(f"UPDATE record SET {assignments} WHERE id = ?", (*columns.values(), record_id))
    if tags is not None:
        connection.execute("DELETE FROM record_tag WHERE record_id = ?", (record_id,))
        put_tags(connection, [(record_id, tags)])
    if "source_id" in columns:
        # Closed versions move along: who may no longer see the record may not see its past either.
        moved = _version_ids(connection, [record_id])
        connection.executemany(
            "UPDATE record SET (scope_id, source_id) = (SELECT scope_id, source_id FROM record WHERE id = ?1) "
            "WHERE id = ?2",
            [(record_id, version) for version in moved],
        )
        feed.append_ids(connection, "update", moved)
        drop_empty_sources(connection, [old_source])
    feed.append(connection, "update", record_id)


def set_vectors(
    connection: apsw.Connection,
    embedder: vectors.EmbedderRow,
    parts: dict[int, vectors.Parts],
    *,
    active: bool,
) -> None:
    """Store the vectors of records that had none of this embedder, or why it refused them; they become `embedded`, or
    `refused`, when it is the active one.
    """
    connection.execute(
        "DELETE FROM vector WHERE embedder_id = ? AND record_id IN (SELECT value FROM carray(?))",
        (embedder.id, id_array(list(parts))),
    )
    vectors.insert(connection, embedder, [row for record_id, each in parts.items() for row in each.rows(record_id)])
    refusals.add(
        connection, embedder.id, {record_id: each.problem or "" for record_id, each in parts.items() if each.refused}
    )
    if active:
        connection.execute(
            "UPDATE record SET embedding_state = 'embedded' WHERE id IN (SELECT value FROM carray(?))",
            (id_array(list(parts)),),
        )
        refusals.mark(connection)
        feed.append_ids(connection, "text", list(parts))


def delete(connection: apsw.Connection, record_ids: Sequence[int]) -> int:
    """Purge records with their versions, vectors, words, tags and links; returns how many versions went too."""
    if not len(record_ids):
        return 0
    sources = connection.execute(
        "SELECT DISTINCT source_id FROM record WHERE id IN (SELECT value FROM carray(?)) AND source_id IS NOT NULL",
        (id_array(record_ids),),
    ).fetchall()
    closed = purge_versions(connection, record_ids)
    _purge(connection, record_ids)
    drop_empty_sources(connection, [row[0] for row in sources])
    return closed


def purge_versions(connection: apsw.Connection, record_ids: Sequence[int]) -> int:
    """Purge the closed versions of these open records; returns their number."""
    closed = _version_ids(connection, record_ids)
    _purge(connection, closed)
    return len(closed)


def put_links(connection: apsw.Connection, links: Iterable[tuple[int, int, str, float, int]]) -> None:
    """Insert or strengthen links (source, target, type, strength, created_at)."""
    rows = list(links)
    connection.executemany(
        "INSERT INTO link (source_id, target_id, type, strength, created_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET strength = excluded.strength",
        rows,
    )
    # Who reads a record's links anew finds both ends.
    feed.append_ids(connection, "link", sorted({row[0] for row in rows}))


class Access(NamedTuple):
    """How often a record was recalled, and when last, in microseconds."""

    times: int
    last_at: int


def touch(connection: apsw.Connection, accesses: Mapping[str, Access]) -> None:
    """Add to access counts, by public id. Outside the feed: nothing that recall ranks by depends on them."""
    connection.executemany(
        "INSERT INTO access (record_id, count, accessed_at) SELECT id, ?2, ?3 FROM record "
        "WHERE public_id = ?1 AND valid_to IS NULL ON CONFLICT (record_id) DO UPDATE SET "
        "count = count + excluded.count, accessed_at = max(accessed_at, excluded.accessed_at)",
        [(public_id, *access) for public_id, access in accesses.items()],
    )


def _close_version(connection: apsw.Connection, record_id: int, *, closed_at: int) -> None:
    """Copy a record, with words, vectors and tags, into a closed row of its own."""
    version_id = next_id(connection)
    names = [name.strip() for name in COLUMNS.split(",")]
    values = ", ".join("?" if name == "valid_to" else name for name in names)
    connection.execute(
        f"INSERT INTO record (id, {COLUMNS}) SELECT ?, {values} FROM record WHERE id = ?",
        (version_id, closed_at, record_id),
    )
    connection.execute(
        "INSERT INTO record_terms SELECT ?, terms, counts FROM record_terms WHERE record_id = ?",
        (version_id, record_id),
    )
    connection.execute(
        "INSERT INTO record_tag SELECT ?, place, tag_id FROM record_tag WHERE record_id = ?",
        (version_id, record_id),
    )
    active = vectors.active_embedder(connection)
    if active is not None:
        vectors.insert(connection, active, vectors.parts_of(connection, record_id).rows(version_id))
        refusals.copy(connection, record_id, version_id)
    connection.execute(
        "INSERT INTO record_fts (rowid, words) VALUES (?, ?)",
        (version_id, _bag_of_words(connection, version_id)),
    )
    feed.append(connection, "insert", version_id)


def _version_ids(connection: apsw.Connection, record_ids: Sequence[int]) -> list[int]:
    """Row ids of the closed versions of these open records."""
    rows: Any = connection.execute(
        "SELECT v.id FROM record r JOIN record v ON v.public_id = r.public_id AND v.valid_to IS NOT NULL "
        "WHERE r.id IN (SELECT value FROM carray(?))",
        (id_array(record_ids),),
    )
    return [row[0] for row in rows]


def drop_empty_sources(connection: apsw.Connection, source_ids: Iterable[Any]) -> None:
    """Remove these sources where no record and no document is left of them."""
    connection.executemany(
        "DELETE FROM source WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM record WHERE source_id = ?1) "
        "AND NOT EXISTS (SELECT 1 FROM document WHERE source_id = ?1)",
        [(source_id,) for source_id in source_ids if source_id is not None],
    )


def _purge(connection: apsw.Connection, record_ids: Sequence[int]) -> None:
    sidecar.discard(connection)
    if not len(record_ids):
        return
    _drop_words(connection, record_ids)
    # Tags, links, access counts, words and vectors follow by foreign key.
    connection.execute("DELETE FROM record WHERE id IN (SELECT value FROM carray(?))", (id_array(record_ids),))
    feed.append_ids(connection, "delete", list(record_ids))


def _drop_words(connection: apsw.Connection, ids: Sequence[int]) -> None:
    connection.execute("DELETE FROM record_fts WHERE rowid IN (SELECT value FROM carray(?))", (id_array(ids),))
    connection.execute("DELETE FROM record_terms WHERE record_id IN (SELECT value FROM carray(?))", (id_array(ids),))


def _bag_of_words(connection: apsw.Connection, record_id: int) -> str:
    """The words of a record's term list, each as often as it counts, as FTS5 reads them."""
    row: Any = connection.execute("SELECT terms, counts FROM record_terms WHERE record_id = ?", (record_id,)).fetchone()
    terms, counts = row
    text_of = dict(
        connection.execute(
            "SELECT id, text FROM term WHERE id IN (SELECT value FROM carray(?))",
            (id_array(np.frombuffer(terms, dtype="<i4")),),
        )
    )
    return " ".join(
        " ".join([text_of[term]] * count)
        for term, count in zip(np.frombuffer(terms, dtype="<i4").tolist(), counts, strict=True)
    )
