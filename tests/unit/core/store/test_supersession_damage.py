"""What another program or the disk does to supersessions and statements is found, and made again from what is left."""

from __future__ import annotations

import pytest

from recallite.derivation import derive
from recallite.model.filters import Filter
from recallite.store.opening import open_store
from recallite.store.sql.derived import Sought
from recallite.store.sql.relations import Supersession
from recallite.text.statements import keys_of, statement_of
from tests.unit.core.store.contract.support import NOW, row

STATEMENT = statement_of("Dana lives in Lund", None)


@pytest.fixture
def store():
    store = open_store(":memory:", derive=derive)
    yield store
    store.close()


def damaged(store, statement):
    with store.atomic() as writer:
        writer.connection.execute(statement)
    return {problem.name for problem in store.verify().problems}


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE record SET superseded_at = NULL WHERE public_id = 'a'", "succession"),
        ("UPDATE record SET held_until = 5 WHERE public_id = 'c'", "succession"),
        ("DELETE FROM link", "supersession without link"),
        ("DELETE FROM supersession", "link without supersession"),
        ("UPDATE statement SET frames = x'0000000000000000'", "statement is not that of its text"),
        ("DELETE FROM statement_run", "statement is not that of its text"),
        ("INSERT INTO statement_key VALUES (1, 999)", "key of no statement"),
        ("DROP TABLE statement_key", "a table is missing"),
        ("DROP TABLE statement_run", "a table is missing"),
        ("UPDATE statement_run SET keys = zeroblob(length(keys))", "statement is not that of its text"),
        ("UPDATE statement_run SET first_id = first_id + 1", "statement is not that of its text"),
        ("UPDATE statement_run SET keys = substr(keys, 9)", "value that was not stored so"),
        ("INSERT OR IGNORE INTO statement_unlisted SELECT id FROM record", "statement is not that of its text"),
        ("UPDATE text_run SET offsets = zeroblob(length(offsets))", "not found by its text"),
        ("DELETE FROM text_run", "not found by its text"),
        ("INSERT INTO text_key VALUES (1, 999)", "not found by its text"),
    ],
)
def test_damage_is_found_and_mended(store, statement, problem):
    with store.atomic() as writer:
        rows = [row("d", "Dana lives in Oslo", kind="memory"), *map(row, "abce"), *map(row, map(str, range(128)))]
        _, a, b, c, *_ = writer.records.insert(rows, None)
        writer.records.insert([row("alone")], None)
        writer.supersessions.put([Supersession(a, b, NOW, NOW), Supersession(b, c, NOW, NOW)])
        writer.records.change_text(a, row("a", "changed", recorded_from=NOW + 1), None)
    assert store.verify().problems == ()
    assert any(problem in name for name in damaged(store, statement))
    store.rebuild()
    assert store.verify().problems == ()
    with store.read() as reader:
        (found,) = reader.statements.candidates([Sought(keys_of(STATEMENT), "/", "memory")], NOW, 9)
        assert len(found) == 1
        assert reader.records.count(Filter(), NOW) in (132, 134)
