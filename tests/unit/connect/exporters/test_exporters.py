"""Memories as lines with names of their own, and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite_connect.exporters import export_to
from recallite_connect.importers import import_from

MAPPING = {
    "text": "body", "id": "uid", "scope": "user.id", "tags": "labels", "created_at": "ts", "metadata": "info",
    "metadata.channel": "user.channel", "importance": "weight", "kind": "type", "topic": "about", "context": "who",
    "source": "from", "pinned": "pin",
}  # fmt: skip
QUESTIONS = ["Who is on call?", "Which cache do we use?", "How should answers be?", "Where does Bo live?"]
MARCH = datetime(2026, 3, 21, 14, 2, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "here.db") as opened:
        ada = opened.remember(
            NewRecord(
                "Ada is on call for billing", scope="/team", topic="Ada", tags=["on call", "billing"], created_at=MARCH
            )
        )
        bo = opened.remember("Bo lives in Oslo,\n\nnear the sea", context="Bo", importance=0.8, source="chat-7",
                             metadata={"channel": "chat"}, created_at=MARCH)  # fmt: skip
        opened.link(ada.id, bo.id, type="supports")
        opened.remember(NewRecord("Answer in short sentences", pinned=True, kind="preference", created_at=MARCH))
        old = opened.remember("We cache in Redis", created_at=MARCH)
        opened.remember(NewRecord("We cache in Valkey", supersedes=old.id, created_at=MARCH.replace(month=4)))
        yield opened


def _hits(memory):
    return [[(hit.id, hit.text, round(hit.score, 4)) for hit in memory.recall(question)] for question in QUESTIONS]


def _texts(memory):
    return sorted(record.text for record in memory.list())


def test_our_own_form_moves_a_store_with_equal_hits(memory, tmp_path):
    memory.transfer.export(tmp_path / "all.jsonl")
    with Memory(tmp_path / "there.db") as there:
        there.transfer.import_(tmp_path / "all.jsonl")
        there.transfer.export(tmp_path / "back.jsonl")
        assert (tmp_path / "back.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()
        assert _hits(there) == _hits(memory)


def test_all_links_of_a_memory_are_written(tmp_path):
    with Memory(tmp_path / "here.db", embedder="none") as memory:
        hub, *spokes = memory.remember_many([{"text": f"memory {number}"} for number in range(102)])
        for spoke in spokes:
            memory.link(hub, spoke)
        assert len(memory.neighbors(hub)) == 100
        assert len(memory.neighbors(hub, limit=None)) == 101
        assert export_to(memory, "jsonl", tmp_path / "out.jsonl", mapping={"text": "text"}).lost["links"] == 101


def test_mapped_texts_move_out_and_back_with_the_loss_that_is_stated(memory, tmp_path):
    done = export_to(memory, "jsonl", tmp_path / "out", mapping=MAPPING)
    assert (done.records, done.lost) == (4, {"links": 1, "superseded": 1})
    with Memory(tmp_path / "there.db") as there:
        assert import_from(there, "jsonl", tmp_path / "out", mapping=MAPPING).troubles == ()
        assert _texts(there) == _texts(memory)
        # What was written from memories of that system is the same again.
        export_to(there, "jsonl", tmp_path / "again", mapping=MAPPING)
        with Memory(tmp_path / "third.db") as third:
            import_from(third, "jsonl", tmp_path / "again", mapping=MAPPING)
            assert _texts(third) == _texts(there)
            assert {record.id for record in third.list()} == {record.id for record in there.list()}


def test_fields_are_written_where_the_mapping_says(memory, tmp_path):
    export_to(memory, "jsonl", tmp_path / "out.jsonl", mapping=MAPPING, scope="/team")
    (line,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert line.pop("uid")
    assert line == {
        "body": "Ada is on call for billing", "user": {"id": "/team"}, "labels": ["on call", "billing"],
        "ts": "2026-03-21T14:02:00+00:00", "info": {}, "weight": 0.5, "type": "memory", "about": "Ada", "pin": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"text": "."}, "only metadata can be the whole item"),
        ({"tags": "labels.0"}, "a place in a list"),
        ({"text": "a", "scope": "a.b"}, "one place for text and scope"),
        ({"vector": "v"}, "names the field 'vector'"),
    ],
)
def test_a_mapping_that_cannot_be_written_is_refused(memory, tmp_path, mapping, message):
    with pytest.raises(InvalidInput, match=message):
        export_to(memory, "jsonl", tmp_path / "out.jsonl", mapping=mapping)
    assert not (tmp_path / "out.jsonl").exists()


def test_the_store_itself_is_left_alone(memory, tmp_path):
    with pytest.raises(InvalidInput, match="is the store itself"):
        export_to(memory, "jsonl", tmp_path / "here.db", mapping=MAPPING)
    with pytest.raises(InvalidInput, match="use one of"):
        export_to(memory, "nothing", tmp_path / "out")
