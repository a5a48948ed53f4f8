"""What a scoped handle shows does not change with what others in the file do."""

from __future__ import annotations

import io
import json

import pytest

from recallite import Memory, Settings
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from recallite.remember import merge_candidates
from tests.unit.core.memory.support import unit


@pytest.fixture
def ada(memory):
    return memory.scoped("/users/ada")


@pytest.fixture
def bob(memory):
    return memory.scoped("/users/bob")


def test_the_score_of_a_message_does_not_tell_what_others_said(ada, bob):
    with_ada = ada.sessions.open("talk")
    with_ada.append("user", "the kiln is warm")
    with_ada.append("user", "glaze for the kiln")
    before = [(hit.content, hit.confidence, round(hit.score, 4)) for hit in ada.sessions.search("kiln glaze")]
    assert [content for content, *_ in before] == ["glaze for the kiln", "the kiln is warm"]
    bob.sessions.open("talk").append("user", "glaze glaze kiln and a long message about something else")
    after = ada.sessions.search("kiln glaze")
    assert [(hit.content, hit.confidence, round(hit.score, 4)) for hit in after] == before


def test_when_a_memory_was_last_recalled_is_its_own(ada, bob):
    """The last recall of anyone's was shown as the last access of all that had been recalled."""
    kept = ada.remember("the kiln")
    bob.remember("the kiln")
    ada.recall("kiln")
    before = ada.get(kept.id)
    assert before.access_count == 1
    bob.recall("kiln")
    assert ada.get(kept.id) == before


def test_a_list_shows_accesses_before_another_writes(ada, bob):
    """Counts go to the file with the next write: a list showed them from the moment that another wrote."""
    kept = ada.remember("the kiln")
    ada.recall("kiln")
    before = ada.list(), ada.history(kept.id)
    assert before[0][0].access_count == 1
    bob.remember("anything")
    assert (ada.list(), ada.history(kept.id)) == before


def test_a_cosine_is_the_same_whoever_else_has_just_written(ada, bob, monkeypatch):
    """New records are compared before the index has them, with others' beside them or not."""
    policy = WritePolicy(link_cosine=0.0)
    first = ada.remember(NewRecord("first", vector=unit(1)))
    cosines = []
    for late in (0, 24):
        monkeypatch.setattr(merge_candidates, "_LATE", late)
        for place in range(5):
            bob.remember(NewRecord(f"other {late} {place}", vector=unit(50 + place + late)))
        near = ada.remember(NewRecord(f"second {late}", vector=unit(1) + 0.5 * unit(2)), policy=policy)
        (link,) = (link for link in ada.neighbors(near.id) if first.id in (link.source, link.target))
        cosines.append(link.strength)
        ada.forget(near.id)
    assert cosines[0] == cosines[1]


def _export(ids):
    """Two linked memories, the first with an earlier version, as a handle exports them."""
    first, second = ids
    moment = "2026-01-01T00:00:00.000000Z"
    lines = [
        {"id": first, "text": "was", "recorded_from": moment, "recorded_until": "2026-01-02T00:00:00.000000Z"},
        {"id": first, "text": "is", "created_at": moment},
        {"id": second, "text": "second"},
        {"link": {"source": first, "target": second, "type": "causal", "strength": 0.5}},
    ]
    return io.StringIO("\n".join(map(json.dumps, lines)))


def test_an_import_does_not_tell_that_an_id_is_taken_elsewhere(ada, bob, memory):
    """Ids of others were skipped and counted, so that who guessed one learnt that it was there."""
    foreign = bob.remember("Secret").id
    with Memory(":memory:", settings=Settings(embedder="none")) as alone:
        for _ in range(2):
            ids = foreign, "chosen"
            assert ada.transfer.import_(_export(ids)) == alone.transfer.import_(_export(ids))
        (mine,) = ada.list(where={"text": "is"})
        assert mine.id != foreign
        assert [each.text for each in ada.history(mine.id)] == [each.text for each in alone.history(foreign)]
        (link,) = ada.neighbors(mine.id)
        assert (link.source, link.target, link.type) == (mine.id, "chosen", "causal")
        assert ada.count() == alone.count() == 2
    assert bob.get(foreign).text == memory.get(foreign).text == "Secret"
    # Links of another import lead to the memory too, and the given id keeps meaning it when the other's is gone.
    more = {"link": {"source": "chosen", "target": foreign}}
    assert ada.transfer.import_(io.StringIO(json.dumps(more))).links == 1
    bob.forget(foreign)
    assert ada.transfer.import_(_export(ids)).skipped == 2


def test_the_id_that_an_import_would_choose_may_be_taken_too(ada, bob):
    foreign = bob.remember("Secret").id
    ada.transfer.import_(_export((foreign, "chosen")))
    (mine,) = ada.list(where={"text": "is"})
    ada.forget(mine.id)
    bob.transfer.import_(_export((mine.id, "other")))
    assert ada.transfer.import_(_export((foreign, "chosen"))).records == 1
    assert ada.count() == 2


def test_a_document_comes_with_its_chunks_though_its_id_is_taken_elsewhere(ada, bob):
    bob.knowledge.ingest(b"# Kiln\n\nThe kiln is warm.", name="kiln.md")
    exported = io.StringIO()
    bob.transfer.export(exported, format="jsonl")
    report = ada.transfer.import_(io.StringIO(exported.getvalue()))
    assert report.records == 1
    (document,) = ada.knowledge.list()
    assert (document.source, document.id == bob.knowledge.list()[0].id) == ("kiln.md", False)


def test_equal_procedures_stand_in_the_order_of_storing(ada):
    """By id, the order told that an import had given one of them another id than its own."""
    told = {"name": "bake", "description": "Bake", "pattern": ""}
    lines = [{"id": id, "text": id, "kind": "procedure", "metadata": told} for id in ("z", "a")]
    ada.transfer.import_(io.StringIO("\n".join(map(json.dumps, lines))))
    assert [each.id for each in ada.procedures.list()] == ["z", "a"]
