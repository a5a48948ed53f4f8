"""Comparing everything derived with the records, without changing anything; and figures about a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from recallite.errors import StoreCorrupt
from recallite.model.reports import Problem, Verification
from recallite.store.sql.derived import STORED_TEXT, Stored, StoredText, key_array, packed_lists, statement_row
from recallite.store.sql.relations import DERIVED_SQL
from recallite.store.sql.services import LOST_MESSAGES
from recallite.store.sql.vectors import VECTOR_BYTES
from recallite.store.store import Progress
from recallite.store.transaction import Writer

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

    def examples(name: str, statement: str) -> Iterator[Problem]:
        rows = [row[0] for row in tx.connection.execute(statement)]
        return found(name, rows, _OTHER_REMEDIES.get(name, REBUILD))

    for table in counts:
        with reported():
            counts[table] = tx.connection.execute(f"SELECT count(*) FROM {table}").get
    every: tuple[Callable[[], Iterator[Problem]], ...] = (
        *others,
        *(partial(examples, name, statement) for name, statement in {**_CHECKS, **checks}.items()),
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


def _statements(tx: Writer) -> Iterator[Problem]:
    """Compare keys and frames with the texts, and the listed keys with the keys."""
    wrong = []
    # Before there are rows: what these raise would keep them open, and a rebuild could drop no table.
    waiting = tx.comparisons.ranges()
    unreadable = [f"records {entry.first_id} to {entry.last_id}" for entry in tx.comparisons.unreadable()]
    owners, entries = tx.statements.listed.all()
    rows = tx.connection.execute(
        f"SELECT r.public_id, r.indexed, q.keys, q.frames, q.outline, {STORED_TEXT} FROM record r "
        "LEFT JOIN statement q ON q.record_id = r.id ORDER BY r.id"
    )
    for block, stored, _ in _blocks(rows, 5):
        derivation = tx.derive(stored.texts)
        for i, (public_id, indexed, *row) in enumerate(block):
            row_id = stored.ids[i]
            if row[0] is None and any(first <= row_id <= last for first, last in waiting):
                continue
            form = derivation.statement(i) if indexed else None
            made = (None, None, None) if form is None else statement_row(stored, i, form)[1:]
            expected = b"" if made[0] is None or stored.superseded_at[i] is not None else made[0]
            start, stop = np.searchsorted(owners, (row_id, row_id + 1))
            if tuple(row[:3]) != made or not np.array_equal(entries[start:stop], key_array(expected)):
                wrong.append(public_id)
    yield from found("policy of records that wait to be compared is unreadable", unreadable)
    yield from found("record whose statement is not that of its text", wrong)
    stated_ids = np.fromiter((row[0] for row in tx.connection.execute("SELECT record_id FROM statement")), np.int64)
    yield from found("key of no statement", [f"record {version}" for version in np.setdiff1d(owners, stated_ids)])


def _blocks(rows: Any, width: int) -> Iterator[tuple[list[Any], Stored, list[Any]]]:
    """Yield rows with readable texts, the versions that they have after their first `width` columns, and other rows."""
    stream = iter(rows)
    while block := list(islice(stream, _BLOCK)):
        readable: list[Any] = []
        others: list[Any] = []
        for row in block:
            text, context = row[-3:-1]
            sound = isinstance(text, str) and isinstance(context, str | None)
            (readable if sound else others).append(row)
        yield readable, Stored.of([StoredText(*row[width:]) for row in readable]), others


def _words(tx: Writer, total: int, on_progress: Progress | None) -> Iterator[Problem]:
    numbers = dict(tx.connection.execute("SELECT text, id FROM term WHERE id > 0"))
    unknown = max(numbers.values(), default=0) + 1  # for words without a number: one that no word has
    missing: list[str] = []
    wrong: list[str] = []
    edited: list[str] = []
    misjudged: list[str] = []
    rows = tx.connection.execute(
        f"SELECT r.public_id, r.content_hash, t.terms, t.counts, s.name, r.indexed, {STORED_TEXT} FROM record r "
        "LEFT JOIN record_terms t ON t.record_id = r.id LEFT JOIN standing s ON s.record_id = r.id ORDER BY r.id"
    )
    done = 0
    for block, stored, unreadable in _blocks(rows, 6):
        edited += [row[0] for row in unreadable]
        derivation = tx.derive(stored.texts)
        words = derivation.words
        known = np.array([numbers.get(word, unknown + i) for i, word in enumerate(words.vocabulary)], np.int32)
        lists = packed_lists(known[words.indices], words.counts, words.offsets)
        columns = zip(block, derivation.hashes, derivation.standing, lists, strict=True)
        for (public_id, stored_hash, terms, counts, standing, indexed, *_), digest, judged, expected in columns:
            if digest != stored_hash:
                edited.append(public_id)
            if (judged if indexed else None) != standing:
                misjudged.append(public_id)
            if not indexed:
                wrong += [public_id] * (terms is not None)
            elif terms is None:
                missing.append(public_id)
            elif (terms, counts) != expected:
                wrong.append(public_id)
        done += len(block) + len(unreadable)
        if on_progress is not None:
            on_progress(done, total)
    for name, examples in (
        ("record without words", missing),
        ("record whose words are not those of its text", wrong),
        ("record whose standing is not that of its text", misjudged),
        ("record whose text was changed outside Recallite", edited),
    ):
        yield from found(name, examples)


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
        "to_compare": tx.comparisons.count() if scope == "/" else None,
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
