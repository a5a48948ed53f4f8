"""Ids of the caller's own: stored once, replaced, versioned, and refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from recallite import Memory
from recallite.errors import Conflict, InvalidInput, InvalidItem
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, state, unit


def test_a_memory_is_found_by_the_id_it_was_given(memory):
    for id in ("user:1", "Straße 7", "a/b?c", "x" * 512):
        record = memory.remember(f"text of {id}", id=id)
        assert (record.id, record.outcome) == (id, "created")
        assert memory.get(id).text == f"text of {id}"
        assert memory.update(id, importance=0.9).id == id
        assert [each.id for each in memory.history(id)] == [id]
    assert memory.recall("text Straße", limit=1)[0].id == "Straße 7"
    assert memory.forget(["user:1", "Straße 7"]).records == 2
    assert memory.store.verify().ok


def test_an_id_that_is_there_is_refused_and_nothing_changes(memory):
    memory.remember("one", id="k")
    before = state(memory)
    with raises(Conflict, "exists", match="a memory with the id 'k' is there already: give on_existing='replace'"):
        memory.remember("two", id="k")
    with pytest.raises(InvalidItem, match="item 1: a memory with the id 'k'") as caught:
        memory.remember_many(["before", {"text": "two", "id": "k"}])
    assert (caught.value.position, caught.value.stored) == (1, 0)
    assert state(memory) == before


def test_replacing_keeps_the_time_of_creation_and_nothing_else(memory):
    first = memory.remember(
        NewRecord(
            "one",
            id="k",
            tags=["x"],
            metadata={"a": 1},
            importance=0.9,
            pinned=True,
            topic="t",
            source="s",
            position=3,
            expires_at="2100-01-01",
            vector=unit(1),
        )
    )
    memory.remember("between", id="k", on_existing="version")
    second = memory.remember(NewRecord("two", id="k", scope="/b", vector=unit(2)), on_existing="replace")
    assert (second.id, second.outcome, second.text, second.scope) == ("k", "replaced", "two", "/b")
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert (second.tags, second.metadata, second.importance, second.pinned) == ((), {}, 0.5, False)
    assert (second.topic, second.source, second.position, second.expires_at) == (None, None, None, None)
    assert [each.text for each in memory.history("k")] == ["two"]
    np.testing.assert_array_equal(memory.vectors(["k"])["k"][0], unit(2))
    assert memory.recall("one") == []
    assert memory.recall("two")[0].id == "k"
    assert memory.count() == 1
    assert memory.store.verify().ok


def test_a_version_keeps_the_old_text(memory):
    first = memory.remember("one", id="k", tags=["x"])
    second = memory.remember("two", id="k", on_existing="version")
    assert (second.outcome, second.created_at, second.tags) == ("updated", first.created_at, ())
    assert [each.text for each in memory.history("k")] == ["one", "two"]
    again = memory.remember("two", id="k", on_existing="version", importance=0.8)
    assert (again.importance, len(memory.history("k"))) == (0.8, 2)
    assert memory.recall("one", as_of=first.created_at)[0].text == "one"
    memory.remember("two", id="k", on_existing="replace")
    assert [each.text for each in memory.history("k")] == ["two"]
    assert memory.store.verify().ok


def test_what_has_its_own_id_repeats_no_other(memory):
    memory.remember("Ada likes tea", id="a")
    assert memory.remember("Ada likes tea", id="b").outcome == "created"
    assert memory.remember("yes", id="c").id == "c"  # junk otherwise
    assert memory.remember(NewRecord("the topic", id="d", topic="t")).id == "d"
    assert memory.remember(NewRecord("the topic again", id="e", topic="t")).id == "e"
    assert memory.count() == 5
    assert memory.remember("Ada likes tea").outcome == "duplicate"


def test_many_are_replaced_at_once_and_the_last_of_equal_ids_counts(memory):
    policy = WritePolicy()
    items = [{"text": f"text {number}", "id": f"k{number % 3}", "vector": unit(number)} for number in range(9)]
    with pytest.raises(InvalidItem, match="item 3: a memory with the id 'k0'"):
        memory.remember_many(items)
    assert memory.count() == 0
    assert memory.remember_many(items, on_existing="replace", policy=policy) == [f"k{n % 3}" for n in range(9)]
    assert sorted(record.text for record in memory.list()) == ["text 6", "text 7", "text 8"]
    assert memory.remember_many(["new", *items[:2]], on_existing="version")[1:] == ["k0", "k1"]
    assert [each.text for each in memory.history("k1")] == ["text 7", "text 1"]
    assert memory.recall("text 8", vector=unit(8), limit=1)[0].id == "k2"
    assert memory.store.verify().ok


def test_a_replaced_text_is_no_duplicate_any_more(memory):
    memory.remember("Ada likes tea", id="k")
    ids = memory.remember_many(
        [{"text": "Ada likes coffee", "id": "k"}, "Ada likes tea", "Ada likes coffee"], on_existing="replace"
    )
    assert ids[0] == ids[2] == "k"
    assert memory.get(ids[1]).text == "Ada likes tea"


def test_an_id_outside_the_scope_of_a_handle_is_taken(memory):
    memory.remember("other", scope="/b", id="k")
    handle = memory.scoped("/a")
    for choice in ("error", "replace", "version"):
        with raises(Conflict, "exists", match="the id 'k' is taken by a memory outside this scope: give another"):
            handle.remember("mine", id="k", on_existing=choice)
    assert memory.get("k").text == "other"
    assert handle.remember("mine", id="own").scope == "/"
    assert handle.remember("mine again", id="own", on_existing="replace", scope="/deeper").scope == "/deeper"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": ""}, "id is ''"),
        ({"id": 7}, "id is 7"),
        ({"id": "x" * 513}, "id has 513 characters"),
        ({"id": "a\nb"}, "control character"),
        ({"id": "a\x00b"}, "NUL"),
        ({"id": "\ud800"}, "surrogate"),
        ({"id": "k", "on_existing": "upsert"}, "on_existing is 'upsert': use 'error', 'replace' or 'version'"),
    ],
)
def test_bad_ids_are_refused(memory, arguments, message):
    before = state(memory)
    with pytest.raises(InvalidInput, match=message):
        memory.remember("x", **arguments)
    assert state(memory) == before


def test_what_a_service_made_is_not_replaced(memory):
    memory.procedures.save("deploy", "how to deploy", pattern="push")
    (procedure,) = memory.list(kinds=["procedure"])
    with pytest.raises(InvalidInput, match="is a procedure"):
        memory.remember("x", id=procedure.id, on_existing="replace")


def test_a_superseded_record_keeps_its_scope(memory):
    memory.remember("Ada lives in Oslo", id="old")
    memory.remember(NewRecord("Ada lives in Rome", id="new", supersedes="old"))
    with pytest.raises(InvalidInput, match="is superseded, so its scope cannot become '/x'"):
        memory.remember("Ada lives in Bonn", id="old", on_existing="replace", scope="/x")
    assert memory.remember(NewRecord("Ada left", id="new", supersedes="old"), on_existing="replace").supersedes == (
        "old",
    )


def test_ids_go_through_an_export(memory, tmp_path):
    memory.remember("one", id="Straße 7")
    memory.transfer.export(tmp_path / "out.jsonl")
    assert '"Straße 7"' in (tmp_path / "out.jsonl").read_text()
    with Memory(tmp_path / "other.db", settings=PLAIN) as other:
        other.transfer.import_(tmp_path / "out.jsonl")
        assert other.get("Straße 7").text == "one"
        assert json.loads(other.get("Straße 7").to_json())["id"] == "Straße 7"


def test_a_record_may_have_several_vectors(memory):
    several = np.stack([unit(1), unit(5)])
    memory.remember(NewRecord("two views", id="k", vector=several))
    memory.remember(NewRecord("another", id="other", vector=unit(3)))
    memory.remember(NewRecord("as lists", id="lists", vector=[unit(7).tolist(), unit(8).tolist()]))
    np.testing.assert_array_equal(memory.vectors(["k"])["k"], several)
    for number, id in ((1, "k"), (5, "k"), (3, "other"), (7, "lists"), (8, "lists")):
        hit = memory.recall("", vector=unit(number), mode="vector", limit=1)[0]
        assert hit.id == id
        assert hit.signals["cosine"] == pytest.approx(1.0, abs=1e-5)
    ids = memory.remember_many([{"text": "a", "vector": unit(2)}, {"text": "b", "vector": several}])
    assert [memory.vectors(ids)[id].shape[0] for id in ids] == [1, 2]
    for bad, message in (
        (np.zeros((0, 8)), "0 vectors"),
        ([unit(1), unit(1)[:3]], r"vector\[1\] has shape \(3,\)"),
        ([unit(1), np.zeros(len(unit(1)))], r"vector\[1\] is all zeros"),
        (np.zeros((2, 2, 2)), r"shape"),
    ):
        with raises(InvalidInput, "vector", match=message):
            memory.remember(NewRecord("x", vector=bad))
    assert memory.store.verify().ok
