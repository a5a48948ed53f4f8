"""Comparing everything derived with the records, without changing anything; and figures about a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from recallite.errors import StoreCorrupt
from recallite.model.reports import Problem, Verification
from recallite.store.sql.derived import Stated, key_array, packed_lists, stored_form
from recallite.store.sql.relations import DERIVED_SQL
from recallite.store.sql.repository import TAGS_SQL
from recallite.store.sql.services import LOST_MESSAGES
from recallite.store.sql.vectors import VECTOR_BYTES
from recallite.store.store import Progress
from recallite.store.transaction import Writer
from recallite.text.reading import read_texts
from recallite.text.standing import standing_of_each
from recallite.text.words import content_hash

_SHOWN = 5
_BLOCK = 1000
REBUILD = "recallite rebuild"
_OTHER_REMEDIES = {"more than one active embedder": "recallite reembed"}
RESTORE = "recallite restore BACKUP, or export what can be read and import it into a new file"


# Names of problems, and statements that find examples of them.
_CHECKS = {
    "record without vector": (
        "SELECT r.public_id FROM record r WHERE r.embedding_state = 'embedded' AND NOT EXISTS (SELECT 1 FROM vector v "
        "JOIN embedder e ON e.id = v.embedder_id AND e.active WHERE v.record_id = r.id)"
    ),
    "more than one active embedder": (
        "SELECT name FROM embedder WHERE active AND (SELECT count(*) FROM embedder WHERE active) > 1"
    ),
    "gap in a record's parts": (
        "SELECT 'record ' || record_id FROM vector GROUP BY record_id, embedder_id HAVING max(part) + 1 != count(*)"
    ),
    "vector of the wrong size": (
        "SELECT 'vector ' || v.id FROM vector v JOIN embedder e ON e.id = v.embedder_id "
        f"WHERE length(v.value) != {VECTOR_BYTES}"
    ),
    "token codes of the wrong size": (
        "SELECT 'vector ' || c.vector_id FROM token_code c JOIN vector v ON v.id = c.vector_id "
        "WHERE length(c.codes) % 8 != 0"
    ),
    "record whose succession is not that of its supersessions": (
        "SELECT v.public_id FROM record v LEFT JOIN record r ON r.public_id = v.public_id AND r.recorded_until IS NULL "
        f"LEFT JOIN ({DERIVED_SQL} GROUP BY x.old_id) d ON d.record_id = r.id WHERE (v.superseded_at, "
        "v.superseded_until, v.held_until) IS DISTINCT FROM (d.superseded_at, d.superseded_until, d.held_until)"
    ),
    "supersession without link, or link without supersession": (
        "SELECT 'record ' || x.new_id FROM supersession x WHERE x.known_until IS NULL AND NOT EXISTS (SELECT 1 "
        "FROM link l WHERE l.source_id = x.new_id AND l.target_id = x.old_id AND l.type = 'supersedes') "
        "UNION ALL SELECT 'record ' || l.source_id FROM link l WHERE l.type = 'supersedes' AND NOT EXISTS (SELECT 1 "
        "FROM supersession x WHERE x.new_id = l.source_id AND x.old_id = l.target_id AND x.known_until IS NULL)"
    ),
    "text of a message that is missing": LOST_MESSAGES.format("public_id"),
    "record whose kind has no number": "SELECT public_id FROM record WHERE kind NOT IN (SELECT name FROM kind)",
}


def verify(
    tx: Writer,
    checks: Mapping[str, str],
    others: Sequence[Callable[[], Iterator[Problem]]],
    fault_of: Callable[[Exception], Problem | None],
    on_progress: Progress | None = None,
) -> Verification:
    """Compare everything derived with the records. Nothing is changed.

    A database adds `checks`, which are statements by the names of problems, and `others` of its own; `fault_of` says
    which problem an exception of it is.
    """
    problems: list[Problem] = []
    counts = {"record": 0, "vector": 0}

    @contextmanager
    def reported() -> Iterator[None]:
        """Turn an error of the database into a problem: a check that fails is a finding."""
        try:
            yield
        except StoreCorrupt as fault:
            problems.append(Problem(name="value that was not stored so", count=1, examples=(str(fault),)))
        except Exception as fault:
            problem = fault_of(fault)
            if problem is None:
                raise
            if problem not in problems:
                problems.append(problem)

    for table in counts:
        with reported():
            counts[table] = tx.connection.execute(f"SELECT count(*) FROM {table}").get
    every: tuple[Callable[[], Iterator[Problem]], ...] = (
        *others,
        *(partial(_examples, tx, name, statement) for name, statement in {**_CHECKS, **checks}.items()),
        lambda: found("vector that is not of unit length", [f"record {row_id}" for row_id in tx.vectors.unsound()]),
        partial(_statements, tx),
        partial(_words, tx, counts["record"], on_progress),
    )
    for check in every:
        with reported():
            problems.extend(check())
    return Verification(records=counts["record"], vectors=counts["vector"], problems=tuple(problems))


def found(name: str, examples: Sequence[object], remedy: str = REBUILD) -> Iterator[Problem]:
    """A problem with the first examples, if there are any."""
    if examples:
        yield Problem(name=name, count=len(examples), examples=tuple(map(str, examples[:_SHOWN])), remedy=remedy)


def _examples(tx: Writer, name: str, statement: str) -> Iterator[Problem]:
    yield from found(name, [row[0] for row in tx.connection.execute(statement)], _OTHER_REMEDIES.get(name, REBUILD))


def _statements(tx: Writer) -> Iterator[Problem]:
    """Compare keys and frames with the texts, and the listed keys with the keys."""
    wrong = []
    # Before there are rows: what these raise would keep them open, and a rebuild could drop no table.
    waiting = tx.uncompared.ranges()
    unreadable = [f"records {entry.first_id} to {entry.last_id}" for entry in tx.uncompared.unreadable()]
    owners, entries = tx.statements.entries()
    rows = tx.connection.execute(
        "SELECT r.public_id, q.keys, q.frames, r.indexed, r.id, r.kind, r.scope_id, r.authority, r.position, r.text, "
        "r.context, r.recorded_until, r.superseded_at FROM record r LEFT JOIN statement q ON q.record_id = r.id "
        "ORDER BY r.id"
    )
    for public_id, keys, frames, indexed, *stated in rows:
        version = Stated(*stated)
        start, stop = np.searchsorted(owners, (version.row_id, version.row_id + 1))
        if keys is None and any(first <= version.row_id <= last for first, last in waiting):
            continue
        if not isinstance(version.text, str) or not isinstance(version.context, str | None):
            continue  # another finding
        made = stored_form(version) if indexed else None
        expected = b"" if made is None or version.superseded_at is not None else made[0]
        if (keys, frames) != (made or (None, None)) or not np.array_equal(entries[start:stop], key_array(expected)):
            wrong.append(public_id)
    yield from found("policy of records that wait to be compared is unreadable", unreadable)
    yield from found("record whose statement is not that of its text", wrong)
    stated_ids = np.fromiter((row[0] for row in tx.connection.execute("SELECT record_id FROM statement")), np.int64)
    yield from found("key of no statement", [f"record {version}" for version in np.setdiff1d(owners, stated_ids)])


def _words(tx: Writer, total: int, on_progress: Progress | None) -> Iterator[Problem]:
    numbers = dict(tx.connection.execute("SELECT text, id FROM term WHERE id > 0"))
    missing: list[str] = []
    wrong: list[str] = []
    edited: list[str] = []
    misjudged: list[str] = []
    rows = tx.connection.execute(
        f"SELECT r.public_id, r.text, r.context, r.content_hash, t.terms, t.counts, {TAGS_SQL}, r.kind, s.name, "
        "r.indexed AND r.authority = 0, r.indexed FROM record r LEFT JOIN record_terms t ON t.record_id = r.id "
        "LEFT JOIN standing s ON s.record_id = r.id ORDER BY r.id"
    )
    done = 0
    stream = iter(rows)
    while block := list(islice(stream, _BLOCK)):
        readable = [row for row in block if isinstance(row[1], str) and isinstance(row[2], str | None)]
        edited += [row[0] for row in block if not (isinstance(row[1], str) and isinstance(row[2], str | None))]
        names = standing_of_each([(row[7], row[1], row[2]) for row in readable])
        for row, words, judged in zip(readable, _expected(readable, numbers), names, strict=True):
            public_id, text, context, stored_hash, terms, counts, _, _, standing, may_stand, indexed = row
            if content_hash(text, context) != stored_hash:
                edited.append(public_id)
            if (judged if may_stand else None) != standing:
                misjudged.append(public_id)
            if not indexed:
                wrong += [public_id] * (terms is not None)
            elif terms is None:
                missing.append(public_id)
            elif (terms, counts) != words:
                wrong.append(public_id)
        done += len(block)
        if on_progress is not None:
            on_progress(done, total)
    for name, examples in (
        ("record without words", missing),
        ("record whose words are not those of its text", wrong),
        ("record whose standing is not that of its text", misjudged),
        ("record whose text was changed outside Recallite", edited),
    ):
        yield from found(name, examples)


def _expected(rows: Sequence[Any], numbers: dict[str, int]) -> list[tuple[bytes, bytes]]:
    """Return the right `terms` and `counts` of rows of `_words`; a word without a number gets one that no word has."""
    reading = read_texts(
        [row[1] for row in rows], [row[2] for row in rows], [msgspec.json.decode(row[6]) for row in rows]
    )
    free = max(numbers.values(), default=0) + 1
    known = np.array([numbers.get(word, free + i) for i, word in enumerate(reading.vocabulary)], np.int32)
    return packed_lists(known[reading.indices], reading.counts, reading.offsets)


def figures(tx: Writer, scope: str) -> dict[str, Any]:
    """Counts, as `Stats` names them, of `scope` and its descendants; what a database tells of itself it adds."""
    embedder = tx.vectors.active_embedder()
    visible = tx.conditions.in_scopes([scope])
    seen = f"(SELECT r.id FROM record r WHERE {visible.sql})"

    def count(sql: str, *values: Any) -> int:
        number: int = tx.connection.execute(f"SELECT count(*) FROM {sql}", values).get
        return number

    def within(column: str) -> str:
        return f"WHERE {column} IN {seen}" if visible.values else ""

    # In the order of an index: grouped by kind alone, ten million rows are sorted.
    kinds: Counter[str] = Counter()
    records = superseded = closed = 0
    for kind, opened, replaced, every in tx.connection.execute(
        "SELECT r.kind, count(*) FILTER (WHERE r.recorded_until IS NULL), "
        "count(*) FILTER (WHERE r.recorded_until IS NULL AND r.held_until IS NOT NULL), count(*) "
        f"FROM record r WHERE {visible.sql} GROUP BY r.scope_id, r.kind",
        visible.values,
    ):
        kinds[kind] += opened
        records, superseded, closed = records + opened, superseded + replaced, closed + every - opened
    of_scope = f" JOIN vector v ON v.id = c.vector_id WHERE v.record_id IN {seen}" if visible.values else ""
    codes, bytes_of_codes = tx.connection.execute(
        f"SELECT count(*), sum(length(c.codes)) FROM token_code c{of_scope}", visible.values
    ).fetchone()
    return {
        "path": tx.path if scope == "/" else None,
        "records": records,
        "superseded": superseded,
        "versions": closed,
        "to_compare": tx.uncompared.count() if scope == "/" else None,
        "pending": count(
            f"record r WHERE r.embedding_state != 'embedded' AND r.embedding_state = 'pending' AND {visible.sql}",
            *visible.values,
        ),
        "refused": tx.vectors.count_refused(scope),
        "vectors": count(f"vector {within('record_id')}", *visible.values),
        "token_codes": codes,
        "token_code_bytes": int(bytes_of_codes or 0),
        "links": count(f"link {within('source_id')}", *visible.values),
        "sources": count(
            f"(SELECT DISTINCT r.source_id FROM record r WHERE r.source_id IS NOT NULL AND {visible.sql})",
            *visible.values,
        ),
        "terms": tx.lexicon.size() if scope == "/" else None,
        "kinds": {kind: number for kind, number in sorted(kinds.items(), key=str) if number},
        "services": tx.scopes.service_counts(scope),
        "sequence": tx.changes.last() if scope == "/" else None,
        "embedder": None if embedder is None else embedder.name,
        "dimension": None if embedder is None else embedder.dimension,
        "vector_type": None if embedder is None else embedder.vector_type,
    }
