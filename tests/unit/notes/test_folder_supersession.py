"""Superseded memories in a folder of Markdown: marked for people, and superseded again after an import."""

from __future__ import annotations

import io
import json

import pytest
from msgspec import structs

from recallite import Memory, Settings
from recallite.model.records import NewRecord

PLAIN = Settings(embedder="none")
MARCH, JUNE = "2026-03-21T14:02:00Z", "2026-06-10T09:00:00Z"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "memories"


@pytest.fixture
def moved(memory):
    """An old fact and the one in its place."""
    old = memory.remember("Dana lives in Oslo", created_at=MARCH)
    return old, memory.remember(NewRecord("Dana lives in Bergen now", created_at=JUNE, supersedes=old.id))


def everything(memory):
    """Every memory, superseded or not, without what belongs to a store alone."""
    return {
        each.id: structs.replace(each, embedding_state="none", accessed_at=None, access_count=0)
        for each in memory.list(limit=None, include_superseded=True)
    }


def file_of(folder, record):
    (found,) = (file for file in folder.rglob("*.md") if f"\nid: {record.id}\n" in file.read_text())
    return found


def add(file, field):
    """Add a field to the front matter of a file."""
    file.write_text(file.read_text().replace("\nid:", f"\n{field}\nid:"))


def test_the_file_says_what_superseded_its_memory(memory, folder, moved):
    old, new = moved
    memory.transfer.export_folder(folder)
    assert f"superseded_by:\n- new: {new.id}\n  holds_from: 2026-06-10T09:00" in file_of(folder, old).read_text()
    assert "superseded_by" not in file_of(folder, new).read_text()


def test_supersessions_times_and_repetitions_come_back(memory, folder, moved, path):
    old, new = moved
    last = memory.remember("Dana lives in Bodø", created_at="2026-07-01T00:00:00Z")
    memory.supersede(new.id, last.id, reason="a --> b", strength=0.75, at="2026-08-01")
    first, second = memory.remember("We meet on the roof").id, memory.remember("We meet in the cellar").id
    memory.supersede(first, second)
    memory.restore(first)
    memory.remember(NewRecord("The room is booked", valid_from="2026-01-01", valid_until="2026-02-01"))
    memory.transfer.export_folder(folder)
    with Memory(path, settings=PLAIN) as other:
        done = other.transfer.import_folder(folder)
        assert (done.created, done.problems) == (6, ())
        assert everything(other) == everything(memory)
        for id in everything(memory):
            assert other.neighbors(id) == memory.neighbors(id)
            assert [each.id for each in other.history(id)] == [each.id for each in memory.history(id)]
        assert other.count() == memory.count() == 4
        assert other.list(valid_at="2026-04-01", where={"id": old.id})[0].text == "Dana lives in Oslo"
        again = other.transfer.import_folder(folder)
        assert (again.unchanged, again.problems) == (6, ())
        assert other.transfer.export_folder(folder).written == ()
        assert other.store.verify().ok


def test_what_was_undone_since_stays_undone(memory, folder, moved):
    old, _ = moved
    memory.transfer.export_folder(folder)
    memory.restore(old.id)
    assert memory.transfer.import_folder(folder).problems == ()
    assert memory.get(old.id).superseded_by == ()
    assert len(memory.transfer.export_folder(folder).written) == 1
    assert "known_until" in file_of(folder, old).read_text()


def test_a_person_may_supersede_in_the_file(memory, folder):
    old = memory.remember("Dana lives in Oslo", created_at=MARCH)
    new = memory.remember("Everything has moved north", created_at=JUNE)
    memory.transfer.export_folder(folder)
    add(file_of(folder, old), f"superseded_by: [{{new: {new.id}}}]")
    assert memory.transfer.import_folder(folder).problems == ()
    (found,) = memory.list(include_superseded=True, where={"id": old.id})
    assert (found.superseded_by, found.held_until) == ((new.id,), new.created_at)
    assert len(memory.transfer.export_folder(folder).written) == 1
    assert "holds_from: 2026-06-10" in file_of(folder, old).read_text()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ('{"new":"ID"}', "cannot supersede itself"),
        ('{"new":"nothing"}', "nothing"),
        ('{"new":"OTHER","holds_from":"some day"}', "holds_from"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_a_problem_of_its_section(memory, folder, wrong, reason):
    old = memory.remember("Dana lives in Oslo", created_at=MARCH)
    other = memory.remember("Everything has moved north", created_at=JUNE)
    memory.transfer.export_folder(folder)
    file = file_of(folder, old)
    entry = wrong.replace("ID", old.id).replace("OTHER", other.id)
    add(file, f"superseded_by: [{entry}]")
    (problem,) = memory.transfer.import_folder(folder).problems
    assert reason in problem.reason
    assert problem.path == file.name
    assert memory.get(old.id).superseded_by == ()
    assert memory.transfer.export_folder(folder).conflicts


def test_a_file_with_a_supersession_that_the_store_lacks_is_not_replaced(memory, folder, moved, path):
    memory.transfer.export_folder(folder)
    with Memory(path, settings=PLAIN) as other:
        other.transfer.import_folder(folder)
        (folder / ".recallite").rename(folder / ".manifests")
        old, new = moved
        with Memory(":memory:", settings=PLAIN) as third:
            for each in (old, new):
                third.transfer.import_(_lines(each))
            (conflict,) = third.transfer.export_folder(folder).conflicts
            assert conflict.path == file_of(folder, old).name


def _lines(record):
    return io.StringIO(json.dumps({
        "id": record.id, "text": record.text, "created_at": record.created_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
    }))  # fmt: skip
