"""Deriving everything from the records again; repair never asks a broken index."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from recallite.store.rows import read_rows
from recallite.store.sql.repository import IN_ARRAY, TAGS_SQL
from recallite.store.sql.term_lists import numbers_in
from recallite.store.sql.vectors import VECTOR_BYTES
from recallite.store.store import Progress
from recallite.text.reading import read_texts
from recallite.text.words import content_hash

if TYPE_CHECKING:
    from recallite.store.transaction import Writer


_BATCH = 2000


class _Text(NamedTuple):
    id: int
    text: str
    context: str | None
    tags: str
    indexed: bool | int


def rebuild(tx: Writer, on_progress: Progress | None = None) -> None:
    """Make words and hashes from the records anew. Unsound vectors are removed, the others kept as the settings say.

    A database has emptied the derived tables before, and filled those that it alone has.
    """
    tx.connection.execute("INSERT INTO kind (name) SELECT DISTINCT kind FROM record")
    tx.supersessions.rebuild()
    tx.uncompared.mend()
    open_epoch(tx)
    tx.numbers.forget()
    total = tx.connection.execute("SELECT count(*) FROM record").get
    done, last = 0, 0
    while rows := _texts(tx, last):
        ids = [row[0] for row in rows]
        shown = [row for row in rows if row.indexed]
        if shown:
            reading = read_texts(
                [row.text for row in shown],
                [row.context for row in shown],
                [msgspec.json.decode(row.tags) for row in shown],
            )
            tx.lexicon.put_reading([row.id for row in shown], reading)
        tx.standing.derive(ids)
        tx.statements.derive(ids)
        tx.connection.executemany(
            "UPDATE record SET content_hash = ?1 WHERE id = ?2 AND content_hash IS DISTINCT FROM ?1",
            [(content_hash(row.text, row.context), row.id) for row in rows],
        )
        last = ids[-1]
        done += len(rows)
        if on_progress is not None:
            on_progress(done, total)
    _mend_vectors(tx)
    tx.vectors.convert()
    tx.changes.append("reload", 0)


def drop_unused(tx: Writer) -> None:
    """Drop words and tags that no record has."""
    used: set[int] = set()
    rows = iter(tx.connection.execute("SELECT terms FROM record_terms"))
    while lists := [row[0] for row in islice(rows, _BATCH)]:
        used.update(numbers_in(lists).tolist())
    unused = [row[0] for row in tx.connection.execute("SELECT id FROM term") if row[0] not in used]
    if unused:
        open_epoch(tx)
        tx.connection.execute(f"DELETE FROM term WHERE id {IN_ARRAY}", (tx.id_array(unused),))
        tx.changes.append("reload", 0)
    tx.connection.execute("DELETE FROM tag WHERE NOT EXISTS (SELECT 1 FROM record_tag r WHERE r.tag_id = tag.id)")


def _texts(tx: Writer, after_id: int) -> list[_Text]:
    rows: Any = tx.connection.execute(
        f"SELECT r.id, r.text, r.context, {TAGS_SQL}, r.indexed FROM record r WHERE r.id > ? ORDER BY r.id LIMIT ?",
        (after_id, _BATCH),
    )
    return read_rows(rows, _Text, "record")


def open_epoch(tx: Writer) -> None:
    """Begin another epoch of the numbers of words: those that processes keep are looked up again."""
    tx.connection.execute(
        "INSERT INTO meta VALUES ('lexicon_epoch', '1') "
        "ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)"
    )
    tx.forget_known()


def _mend_vectors(tx: Writer) -> None:
    """Leave only whole sets of sound vectors of one embedder; records without go back to pending.

    Token codes that cannot be right go too; `reembed` makes them again.
    """
    tx.connection.execute(
        "UPDATE embedder SET active = false WHERE id != (SELECT e.id FROM embedder e WHERE e.active "
        "ORDER BY (SELECT count(*) FROM vector v WHERE v.embedder_id = e.id) DESC, e.id LIMIT 1)"
    )
    tx.forget_known()
    tx.connection.execute(
        "DELETE FROM vector WHERE record_id NOT IN (SELECT id FROM record) OR embedder_id NOT IN (SELECT id "
        f"FROM embedder) OR length(value) != (SELECT {VECTOR_BYTES} FROM embedder e WHERE e.id = embedder_id)"
    )
    tx.connection.execute(
        "DELETE FROM token_code WHERE vector_id NOT IN (SELECT id FROM vector) OR length(codes) % 8 != 0"
    )
    bad = tx.vectors.unsound()
    tx.connection.execute(f"DELETE FROM vector WHERE record_id {IN_ARRAY}", (tx.id_array(bad),))
    tx.connection.execute(
        "DELETE FROM vector WHERE (record_id, embedder_id) IN (SELECT record_id, embedder_id FROM vector "
        "GROUP BY record_id, embedder_id HAVING max(part) + 1 != count(*))"
    )
    for state, other, exists in (("pending", "embedding_state = 'embedded'", "NOT EXISTS"),
                                 ("embedded", "embedding_state != 'embedded'", "EXISTS")):  # fmt: skip
        tx.connection.execute(
            f"UPDATE record SET embedding_state = '{state}' WHERE {other} AND {exists} (SELECT 1 FROM vector v "
            "JOIN embedder e ON e.id = v.embedder_id AND e.active WHERE v.record_id = record.id)"
        )
