"""BM25 of a part of an FTS5 table: of all of it the numbers are FTS5's own."""

from __future__ import annotations

import random

import apsw
import pytest

from recallite.store.sql.repository import Condition
from recallite.store.sqlite.repositories import FullTextTable, bm25_within

_WORDS = [f"w{place}" for place in range(40)]
_NOTES = FullTextTable("t", "note n", "n.id")


def _table(rows: list[tuple[int, str, str]]) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, owner TEXT)")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(words, content='', contentless_delete=1, tokenize='ascii')")
    connection.executemany("INSERT INTO note VALUES (?, ?)", [(row_id, owner) for row_id, owner, _ in rows])
    connection.executemany("INSERT INTO t (rowid, words) VALUES (?, ?)", [(row_id, text) for row_id, _, text in rows])
    return connection


def _rows(seed: int) -> list[tuple[int, str, str]]:
    drawn = random.Random(seed)
    weights = [1 / (1 + place) for place in range(len(_WORDS))]
    return [
        (3 * place + 1, drawn.choice("ab"), " ".join(drawn.choices(_WORDS, weights, k=drawn.choice([1, 5, 40, 300]))))
        for place in range(300)
    ]


@pytest.mark.parametrize("part", [None, Condition("1"), Condition("n.owner IN ('a', 'b')")])
@pytest.mark.parametrize("words", [["w0"], ["w3", "w39", "w7"], ["w0", "nowhere"], ["nowhere"], []])
def test_of_all_rows_the_scores_are_those_of_fts5(part, words):
    connection = _table(_rows(1))
    connection.execute("DELETE FROM t WHERE rowid % 11 = 1")
    connection.execute("DELETE FROM note WHERE id % 11 = 1")
    rows, scores = bm25_within(connection, _NOTES, words, part)
    asked = " OR ".join(f'"{word}"' for word in words)
    theirs = (
        connection.execute("SELECT rowid, -bm25(t) FROM t WHERE t MATCH ? ORDER BY rowid", (asked,)) if words else []
    )
    assert list(zip(rows.tolist(), scores.tolist(), strict=True)) == list(theirs)


def test_of_some_rows_they_are_those_of_a_table_of_these():
    rows = _rows(2)
    some = bm25_within(_table(rows), _NOTES, ["w3", "w20"], Condition("n.owner = ?", ("a",)))
    alone = bm25_within(_table([row for row in rows if row[1] == "a"]), _NOTES, ["w3", "w20"], None)
    assert [each.tolist() for each in some] == [each.tolist() for each in alone]
