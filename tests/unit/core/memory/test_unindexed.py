"""Memories that recall leaves out, and those that live as long as they are touched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import PLAIN, WordEmbedder, raw, state, unit

FAR = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("many", [1, 100])
def test_what_is_not_indexed_is_stored_and_in_no_recall(path, many):
    with Memory(path, embedder=WordEmbedder()) as memory:
        shown = memory.remember(NewRecord("the red harbour", source="s", position=0))
        items = [
            {"text": f"a red lighthouse {n}", "indexed": False, "tags": ["x"], "source": "s", "position": n + 1}
            for n in range(many)
        ]
        ids = memory.remember_many([*items, {"text": "red sails"}])
        memory.link(shown.id, ids[0])
        record = memory.get(ids[0])
        assert (record.indexed, record.embedding_state, record.standing) == (False, "none", None)
        assert memory.count() == many + 2
        assert memory.count(where={"text": {"contains": "lighthouse"}}) == many
        for options in ({}, {"mode": "keyword"}, {"mode": "vector"}, {"tags": ["x"]}, {"where": {"source": "s"}}):
            assert not set(ids[:-1]) & {
                hit.id for hit in memory.recall("red lighthouse", limit=50, **recall_arguments(options))
            }
        explained = memory.review.explain("red lighthouse", ids[0])
        assert (explained.stage, explained.reason[:18]) == ("filter", "it is not indexed:")
        assert memory.vectors(ids[:-1]) == {}
        assert memory.store.verify().ok
        assert memory.store.rebuild().ok
    with Memory(path, embedder=WordEmbedder()) as memory:
        assert {hit.text for hit in memory.recall("red lighthouse", limit=50)} == {"the red harbour", "red sails"}
        assert memory.store.stats().pending == 0
        memory.update(ids[0], text="another lighthouse", importance=0.9)
        memory.update(ids[0], tags=["y"])
        assert ids[0] not in {hit.id for hit in memory.recall("lighthouse", limit=50)}
        assert [each.indexed for each in memory.history(ids[0])] == [False, False]
        memory.restore(ids[0], 0)
        assert ids[0] not in {hit.id for hit in memory.recall("lighthouse", limit=50)}
        assert memory.store.verify().ok
        assert memory.forget(ids[0]).records == 1
        assert memory.store.verify().ok


def test_it_is_indexed_and_left_out_again_when_it_is_replaced(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember(NewRecord("the lighthouse", id="k", indexed=False))
        assert memory.recall("lighthouse") == []
        memory.remember(NewRecord("the lighthouse", id="k", vector=unit(1)), on_existing="version")
        assert [hit.id for hit in memory.recall("lighthouse", vector=unit(1))] == ["k"]
        memory.remember(NewRecord("the lighthouse", id="k", indexed=False), on_existing="replace")
        assert memory.recall("lighthouse", vector=unit(1)) == []
        memory.remember("Always answer in French", id="k", on_existing="replace")
        assert memory.get("k").standing == "instruction"
        memory.remember(NewRecord("Always answer in French", id="k", indexed=False), on_existing="replace")
        assert memory.get("k").standing is None
        assert memory.store.verify().ok
        assert memory.remember("Always answer in French").outcome == "created"


def test_it_changes_no_other_memory(memory):
    old = memory.remember("Ada lives in Oslo")
    memory.remember(NewRecord("Ada lives in Rome now", indexed=False))
    assert memory.get(old.id).superseded_by == ()
    assert memory.remember("Ada lives in Rome now").supersedes == (old.id,)


def test_a_vector_is_of_no_use_to_it(memory):
    before = state(memory)
    with pytest.raises(InvalidInput, match="indexed=False"):
        memory.remember(NewRecord("x", vector=unit(1), indexed=False))
    with pytest.raises(InvalidInput, match="indexed is 0"):
        memory.remember(NewRecord("x", indexed=0))
    assert state(memory) == before
    record = memory.remember(NewRecord("x", indexed=False))
    with pytest.raises(InvalidInput, match="is not indexed"):
        memory.update(record.id, vector=unit(1))


def test_verify_finds_what_is_derived_from_it(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("the lighthouse")
        memory.remember(NewRecord("the harbour", indexed=False))
    other = raw(path)
    other.execute("INSERT INTO record_terms SELECT 2, terms, counts FROM record_terms")
    other.close()
    with Memory(path, settings=PLAIN) as memory:
        assert [problem.name for problem in memory.store.verify().problems] == [
            "record whose words are not those of its text"
        ]
        assert memory.store.rebuild().ok


def test_what_is_touched_lives_longer(memory):
    month = timedelta(days=30)
    record = memory.remember("a cache entry", expires_at=month)
    assert record.expires_after == month
    assert abs(record.expires_at - record.created_at - month) < timedelta(minutes=1)
    forever = memory.remember("something else")
    memory.update(record.id, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert memory.recall("cache") == []
    assert memory.get(record.id).expires_after is None
    memory.update(record.id, expires_at=month)
    before = memory.get(record.id)
    assert memory.update([record.id, forever.id, "unknown"], renew=True) == 2
    after = memory.get(record.id)
    assert after.expires_at > before.expires_at
    assert (after.updated_at, after.expires_after) == (before.updated_at, month)
    assert memory.get(forever.id).expires_at is None
    assert memory.recall("cache")[0].id == record.id
    memory.update(record.id, expires_at=FAR)
    assert (memory.get(record.id).expires_at, memory.get(record.id).expires_after) == (FAR, None)
    assert memory.update([record.id], expires_at="P7D") == 1
    assert memory.get(record.id).expires_after == timedelta(days=7)
    for bad in (timedelta(0), timedelta(days=-1), timedelta(days=400_000), 30, "-P1D", "P1X"):
        with pytest.raises(InvalidInput, match="expires_at"):
            memory.remember("x", expires_at=bad)


def test_both_go_through_an_export(memory, tmp_path):
    memory.remember(NewRecord("kept aside", id="a", indexed=False))
    memory.remember("for a while", id="b", expires_at=timedelta(hours=36))
    memory.transfer.export(tmp_path / "out.jsonl")
    memory.transfer.export_folder(tmp_path / "folder")
    for name, read in (("one", "out.jsonl"), ("two", "folder")):
        with Memory(tmp_path / f"{name}.db", settings=PLAIN) as other:
            (other.transfer.import_ if name == "one" else other.transfer.import_folder)(tmp_path / read)
            assert (other.get("a").indexed, other.get("b").indexed) == (False, True)
            assert other.get("b").expires_after == timedelta(hours=36)
            assert other.get("b").expires_at == memory.get("b").expires_at
            assert other.recall("aside") == []
            assert other.store.verify().ok
