"""Reading by id, in numbers, and when memories expire: get, vectors, scopes, tags, update, orders."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recallite import Memory
from recallite.errors import EmbedderError, InvalidInput, NotFound
from recallite.model.records import NewRecord, Record
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, state, unit

LATER = datetime(2100, 1, 1, tzinfo=UTC)


def counts(listed):
    return {getattr(each, "scope", None) or each.tag: each.memories for each in listed}


def test_many_are_read_by_id_in_the_order_asked(memory):
    ids = memory.remember_many(["one", "two", "three"])
    found = memory.get([ids[2], "unknown", ids[0], ids[2]])
    assert [*found] == [ids[2], ids[0]]
    assert found[ids[0]] == memory.get(ids[0])
    assert memory.get([]) == {}
    assert memory.get(iter(ids)).keys() == set(ids)


def test_a_scoped_handle_reads_its_own_alone(memory):
    own = memory.remember("own", scope="/a")
    other = memory.remember("other", scope="/b")
    handle = memory.scoped("/a")
    assert [record.scope for record in handle.get([own.id, other.id]).values()] == ["/"]
    assert handle.update([own.id, other.id], expires_at=LATER) == 1
    assert memory.get(other.id).expires_at is None
    assert handle.vectors([other.id]) == {}
    assert counts(handle.scopes()) == {"/": 1}
    assert handle.forget([own.id, other.id], missing_ok=True).records == 1
    assert memory.count() == 1


def test_vectors_are_read_back(memory):
    with_vector = memory.remember(NewRecord("red", vector=unit(3)))
    without = memory.remember("blue")
    found = memory.vectors([with_vector.id, without.id, "unknown"])
    assert [*found] == [with_vector.id]
    assert found[with_vector.id].shape == (1, len(unit(3)))
    assert found[with_vector.id].dtype == np.float32
    np.testing.assert_array_equal(found[with_vector.id][0], unit(3))


def test_one_unknown_id_refuses_all_unless_missing_is_ok(memory):
    ids = memory.remember_many(["one", "two"])
    before = state(memory)
    with pytest.raises(NotFound, match="no memory 'unknown'"):
        memory.forget([ids[0], "unknown"])
    assert state(memory) == before
    assert memory.forget([ids[0], "unknown", ids[0]], missing_ok=True).records == 1
    assert memory.forget(ids, missing_ok=True).records == 1
    assert memory.forget("unknown", missing_ok=True).records == 0
    with pytest.raises(InvalidInput, match="missing_ok is 1"):
        memory.forget("unknown", missing_ok=1)


def test_scopes_are_counted_as_count_counts(memory):
    for scope, number in {"/": 1, "/a": 2, "/a/b": 3, "/a/b/c": 1, "/ab": 1, "/z": 1}.items():
        memory.remember_many([{"text": f"{scope} {n}", "scope": scope} for n in range(number)])
    memory.remember("gone by now", scope="/z", created_at="2019-01-01", expires_at="2020-01-01T00:00:00Z")
    old, new = memory.remember("Ada lives in Oslo", scope="/z/y"), memory.remember("Ada left Oslo", scope="/z/y")
    memory.supersede(old.id, new.id)
    memory.update(new.id, text="Ada has left Oslo")
    assert counts(memory.scopes()) == {"/": 1, "/a": 2, "/a/b": 3, "/a/b/c": 1, "/ab": 1, "/z": 1, "/z/y": 1}
    assert counts(memory.scopes("/a")) == {"/a": 2, "/a/b": 3, "/a/b/c": 1}
    assert counts(memory.scopes(depth=1)) == {"/": 1, "/a": 6, "/ab": 1, "/z": 2}
    assert counts(memory.scopes("/a", depth=1)) == {"/a": 2, "/a/b": 4}
    assert counts(memory.scopes("/a", depth=0)) == {"/a": 6}
    assert counts(memory.scopes(depth=0)) == {"/": memory.count()}
    assert counts(memory.scoped("/a").scopes()) == {"/": 2, "/b": 3, "/b/c": 1}
    assert counts(memory.scoped("/a").scopes("/b", depth=0)) == {"/b": 4}
    assert memory.scopes("/nowhere") == []
    for each in memory.scopes():
        assert memory.count(scope=each.scope) >= each.memories
    with pytest.raises(InvalidInput, match="depth is -1"):
        memory.scopes(depth=-1)


def test_scopes_are_counted_for_kinds(memory):
    memory.remember("of one kind", scope="/a", kind="item")
    memory.remember("of another", scope="/a")
    memory.remember("somewhere else", scope="/b")
    assert counts(memory.scopes(kinds="item")) == {"/a": 1}
    assert counts(memory.scopes(kinds=["item", "memory"])) == {"/a": 2, "/b": 1}
    assert counts(memory.scoped("/a").scopes(kinds=["item"])) == {"/": 1}


def test_a_handle_tells_its_scope(memory):
    assert [memory.scope, memory.scoped("/a").scope, memory.scoped("/a").scoped("/b").scope] == ["/", "/a", "/a/b"]


def test_tags_are_counted(memory):
    memory.remember("one", tags=["x", "y"], scope="/a")
    two = memory.remember("two", tags=["x"], scope="/b")
    memory.remember("gone", tags=["x", "never"], created_at="2019-01-01", expires_at="2020-01-01T00:00:00Z")
    memory.update(two.id, text="two and a half")
    assert counts(memory.tags()) == {"x": 2, "y": 1}
    assert counts(memory.tags("/b")) == counts(memory.scoped("/b").tags()) == {"x": 1}
    assert memory.tags("/nowhere") == []


def test_touch_moves_the_expiry_and_nothing_else(memory):
    record = memory.remember("stays", tags=["x"], expires_at=LATER)
    assert memory.update(record.id, expires_at="2101-01-01T00:00:00Z").outcome == "updated"
    touched = memory.get(record.id)
    assert touched.expires_at == datetime(2101, 1, 1, tzinfo=UTC)
    assert touched.updated_at == record.updated_at
    assert len(memory.history(record.id)) == 1
    assert memory.recall("stays")[0].id == record.id
    assert memory.update([record.id, "unknown"], expires_at=datetime.now(UTC) - timedelta(seconds=1)) == 1
    assert memory.recall("stays") == []
    assert memory.update([record.id], expires_at=None) == 1
    assert memory.recall("stays")[0].id == record.id
    assert memory.store.verify().ok
    with pytest.raises(InvalidInput, match="expires_at"):
        memory.update(record.id, expires_at="soon")


def test_a_successor_that_is_touched_expires_at_another_time(memory):
    old, new = memory.remember_many(["Ada lives in Oslo", "Ada lives in Rome now"])
    memory.supersede(old, new) if not memory.get(old).superseded_by else None
    assert [record.id for record in memory.list()] == [new]
    memory.update(new, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert [record.id for record in memory.list()] == [old]
    assert memory.recall("Ada")[0].id == old


def test_lists_by_the_last_change(memory):
    ids = memory.remember_many(["one", "two", "three"])
    memory.update(ids[0], importance=0.9)
    memory.update(ids[1], text="two again")
    assert [record.id for record in memory.list(order="updated")] == [ids[1], ids[0], ids[2]]
    assert [record.id for record in memory.list(order="updated", limit=1, offset=1)] == [ids[0]]


def test_hits_say_when_they_changed_and_their_topic(path):
    with Memory(path, settings=PLAIN) as memory:
        record = memory.remember(NewRecord("the office is in Oslo", topic="office"))
        changed: Record = memory.update(record.id, importance=0.7)
        (hit,) = memory.recall("office")
        assert (hit.updated_at, hit.topic) == (changed.updated_at, "office")


def test_the_latest_created_is_listed_first_in_the_order_created(memory):
    ids = [memory.remember(f"note {day}", created_at=f"2026-03-0{day}").id for day in (2, 3, 1)]
    assert [record.id for record in memory.list(order="created")] == [ids[1], ids[0], ids[2]]
    assert [record.id for record in memory.list(order="created", limit=1, offset=2)] == [ids[2]]


def test_texts_are_embedded_as_queries_are(embedded):
    record = embedded.remember("Ada drinks green tea")
    vectors = embedded.embed(["Ada drinks green tea", "nobody"])
    assert (vectors.shape, vectors.dtype) == ((2, embedded.store.stats().dimension), np.float32)
    hit = embedded.recall("Ada drinks green tea", vector=vectors[0], mode="vector")[0]
    assert (hit.id, round(hit.signals["cosine"], 3)) == (record.id, 1.0)
    assert embedded.embed([]).shape[0] == 0


def test_a_memory_without_an_embedder_embeds_nothing(memory):
    with raises(EmbedderError, "missing", match="no embedder"):
        memory.embed(["text"])
    with pytest.raises(InvalidInput, match="texts"):
        memory.embed("text")
