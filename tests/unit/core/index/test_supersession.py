"""The index and what is superseded: read from the feed, and without cost where nothing is."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.index.table import RowFilter
from recallite.model.filters import Filter
from recallite.store.sql.relations import Supersessions
from tests.unit.core.memory.support import PLAIN


@pytest.fixture
def memory():
    with Memory(":memory:", settings=PLAIN) as memory:
        memory.remember_many([f"statement {number}" for number in range(50)])
        yield memory


def test_a_supersession_is_read_from_the_feed(memory):
    new, old = (each.id for each in memory.list(limit=2))
    memory.recall("statement")
    loads = memory._engine.index.loads
    memory.supersede(old, new)
    (hit,) = (hit for hit in memory.recall("statement", limit=100) if hit.superseded_by)
    assert (hit.id, hit.superseded_by) == (old, (new,))
    memory.restore(old)
    assert not any(hit.superseded_by for hit in memory.recall("statement", limit=100))
    assert memory._engine.index.loads == loads


def test_without_supersessions_nothing_is_masked_and_nothing_is_asked(memory, monkeypatch):
    asked = []
    for name in ("formers", "successors", "lapses", "undone", "ahead"):
        monkeypatch.setattr(Supersessions, name, lambda *_, name=name: asked.append(name))
    assert len(memory.recall("statement", limit=100)) == 50
    assert asked == []
    assert memory._engine.index.selection(RowFilter(now=0)) is None


def test_when_all_is_undone_nothing_is_masked_again(memory):
    new, old = (each.id for each in memory.list(limit=2))
    memory.supersede(old, new)
    memory.recall("statement")
    assert memory._engine.index.table.lifetimes() == (False, True)
    memory.restore(old)
    memory.recall("statement")
    assert memory._engine.index.table.lifetimes() == (False, False)


def test_what_supersedes_is_no_way_for_relevance(memory):
    """Recall spreads along links: what an answer has replaced gains nothing by it."""
    new, old = (each.id for each in memory.list(limit=2))
    memory.recall("statement")
    memory.supersede(old, new)
    memory.recall("statement")
    with memory._engine.store.read() as reader:
        assert len(reader.blocks.links().sources) == 0


def test_a_snapshot_of_the_index_keeps_it(tmp_path, monkeypatch):
    monkeypatch.setattr("recallite.index.snapshot._SMALLEST", 10)
    with Memory(tmp_path / "agent.db", settings=PLAIN) as memory:
        ids = memory.remember_many([f"statement {number}" for number in range(50)])
        memory.remember_many([{"text": "statement of May", "valid_from": "2026-05-01", "valid_until": "2026-06-01"}])
        memory.supersede(ids[0], ids[1])
        memory.recall("statement")
    with Memory(tmp_path / "agent.db", settings=PLAIN) as memory:
        assert [hit.id for hit in memory.recall("statement", limit=100) if hit.superseded_by] == [ids[0]]
        assert memory._engine.index.origin == "snapshot"
        assert [
            hit.text for hit in memory.recall("statement", filter=Filter(since="2026-05-20", until="2026-05-21"))
        ] == ["statement of May"]
        assert len(memory.recall("statement", limit=100, filter=Filter(include_superseded=True))) == 51


def test_what_recall_asks_walks_no_table(memory):
    """Where something is superseded; a walk through 20,000 records took twice as long as the recall."""
    new, old = (each.id for each in memory.list(limit=2))
    memory.supersede(old, new)
    asked = []
    with memory._engine.store.read() as reader:
        reader.connection.exec_trace = lambda _, sql, bindings: asked.append((sql, bindings)) or True
        supersessions = reader.supersessions
        assert supersessions.lapses() == supersessions.undone(0) == supersessions.undone(0, 0) == []
        assert len(supersessions.formers([1, 50], 0)) == len(supersessions.successors([1, 49])) == 1
        assert len(supersessions.ahead([1, 49], 0)) == 1
        reader.connection.exec_trace = None
        for sql, bindings in asked:
            steps = [row[3] for row in reader.connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]
            assert not [
                step for step in steps if step.startswith("SCAN ") and step.split()[1] not in ("carray", "ahead")
            ], steps
    assert len(asked) == 6
