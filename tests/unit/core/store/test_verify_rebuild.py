"""verify names every divergence it claims to find; rebuild mends it from the records."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.errors import StoreCorrupt
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from tests.unit.core.memory.support import PLAIN, raw, scored, unit

NAN = np.full(16, np.nan, dtype="<f4").tobytes()

DIVERGENCES = {
    "record without vector": "DELETE FROM vector WHERE record_id = 3",
    "row that refers to a missing one": (
        "PRAGMA foreign_keys = OFF; UPDATE vector SET record_id = 999 WHERE record_id = 3; "
        "UPDATE vector SET embedder_id = 9 WHERE record_id = 2; "
        "INSERT INTO record_terms SELECT 999, terms, counts FROM record_terms LIMIT 1"
    ),
    "more than one active embedder": (
        "INSERT INTO embedder (fingerprint, name, dimension, active) VALUES ('x:16', 'x', 16, 1)"
    ),
    "gap in a record's parts": "UPDATE vector SET part = 2 WHERE record_id = 3",
    "vector of the wrong size": "UPDATE vector SET value = x'0011' WHERE record_id = 3",
    "vector that is not of unit length": "UPDATE vector SET value = zeroblob(64) WHERE record_id = 3",
    "record without words": "DELETE FROM record_terms WHERE record_id = 3",
    "record whose words are not those of its text": (
        "UPDATE record_terms SET terms = (SELECT terms FROM record_terms WHERE record_id = 4) WHERE record_id = 3"
    ),
    "record whose text was changed outside Recallite": "UPDATE record SET text = 'edited by hand' WHERE id = 3",
    "a table is missing or broken": "DROP TABLE record_terms",
}


@pytest.fixture
def stored(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember_many(
            {"text": f"number{number} common words", "vector": unit(number), "source": "s", "position": number}
            for number in range(6)
        )
        assert memory.store.verify().problems == ()
    return path


def test_many_at_once_are_derived_as_one_by_one(path):
    with Memory(path, settings=PLAIN) as memory:
        items = [
            {
                "text": f"common words of record {number}", "vector": unit(number % 8), "importance": number / 130,
                "kind": ("memory", "episode")[number % 2], "scope": f"/team/{number % 3}",
                "tags": ("words", f"t{number % 5}")[: number % 3],
                **({"source": f"s{number % 7}", "position": number} if number % 4 else {}),
                **({"valid_from": "1960-05-04T10:00:00+00:00", "valid_until": "2030-01-01"} if number % 5 == 0 else {}),
                **({"created_at": "1950-01-01", "expires_at": "2199-01-01"} if number % 6 == 0 else {}),
            }
            for number in range(130)
        ]  # fmt: skip
        memory.remember_many(items)
        memory.remember(NewRecord(**items[1]))
        assert memory.store.verify().problems == ()


def diverge(path: str, statements: str) -> None:
    connection = raw(path)
    connection.execute(statements).fetchall()
    connection.close()


@pytest.mark.parametrize("name", DIVERGENCES)
def test_verify_names_it_and_rebuild_mends_it(stored, name):
    diverge(stored, DIVERGENCES[name])
    with Memory(stored, settings=PLAIN) as memory:
        found = memory.store.verify()
        assert name in [problem.name for problem in found.problems]
        assert not found.ok
        assert all(problem.count > 0 and problem.remedy for problem in found.problems)
        assert memory.store.verify() == found, "verify changes nothing"
        assert memory.store.rebuild().problems == ()
        assert len(memory.recall("common", limit=10)) == 6
        assert len(memory.recall("common", vector=unit(1), limit=10)) == 6


def test_a_healthy_store_has_no_problems(stored):
    with Memory(stored, settings=PLAIN) as memory:
        found = memory.store.verify()
        assert (found.records, found.vectors, found.problems, found.ok) == (6, 6, (), True)


def test_an_edited_text_is_found_by_its_new_words_after_rebuild(stored):
    diverge(stored, DIVERGENCES["record whose text was changed outside Recallite"])
    with Memory(stored, settings=PLAIN) as memory:
        memory.store.rebuild()
        assert [hit.text for hit in memory.recall("edited", mode="keyword")] == ["edited by hand"]
        assert "edited by hand" not in [hit.text for hit in memory.recall("number2", mode="keyword")]


def test_everything_derived_can_be_deleted_and_comes_back(stored):
    with Memory(stored, settings=PLAIN) as memory:
        ids = [record.id for record in memory.list()]
        memory.link(ids[0], ids[5])
        memory.update(ids[1], text="a changed text", vector=unit(50))
        before = scored(memory.recall("common changed", vector=unit(2), profile={"half_life_days": 0}))
        history = [(version.text, version.recorded_from, version.recorded_until) for version in memory.history(ids[1])]
    diverge(
        stored,
        "DROP TABLE record_terms; DROP TABLE term; DELETE FROM feed",
    )
    with Memory(stored, settings=PLAIN) as memory:
        assert not memory.store.verify().ok
        assert memory.store.rebuild().problems == ()
        assert scored(memory.recall("common changed", vector=unit(2), profile={"half_life_days": 0})) == before
        assert [(each.text, each.recorded_from, each.recorded_until) for each in memory.history(ids[1])] == history


def test_a_recall_in_another_handle_follows_a_rebuild(stored):
    with Memory(stored, settings=PLAIN) as reader, Memory(stored, settings=PLAIN) as mender:
        before = scored(reader.recall("number3 common", profile={"half_life_days": 0}))
        mender.store.rebuild()
        mender.remember("number3 again")
        after = scored(reader.recall("number3 common", limit=20, profile={"half_life_days": 0}))
        assert after == scored(mender.recall("number3 common", limit=20, profile={"half_life_days": 0}))
        assert {row_id for row_id, _ in before} <= {row_id for row_id, _ in after}


@pytest.mark.parametrize("value", ["x'0011'", "printf('%064d', 0)", f"x'{NAN.hex()}'"])
def test_a_damaged_vector_does_not_stop_recall(stored, value):
    diverge(stored, f"UPDATE vector SET value = {value} WHERE record_id = 3")
    with Memory(stored, settings=PLAIN) as memory:
        assert len(memory.recall("common", limit=10)) == 6
        assert memory.recall("", vector=unit(4), limit=1)[0].text.startswith("number4")
        assert len(memory.recall("", vector=unit(4), mode="vector", limit=10)) == 5
        assert not memory.store.verify().ok


UNSOUND = "vector that is not of unit length"
SPOILED = {
    "infinite": f"x'{np.full(16, np.inf, dtype='<f4').tobytes().hex()}'",
    "a text of the same length": "printf('%064d', 0)",
    "longer than 1": f"x'{(unit(3) * np.float32(1.001)).tobytes().hex()}'",
}


@pytest.mark.parametrize("extension", [True, False])
@pytest.mark.parametrize("spoiled", SPOILED)
def test_a_spoiled_vector_is_named_with_and_without_sqlite_vec(stored, spoiled, extension, monkeypatch):
    diverge(stored, f"UPDATE vector SET value = {SPOILED[spoiled]} WHERE record_id = 3")
    if not extension:
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    with Memory(stored, settings=PLAIN) as memory:
        assert (memory.store.stats().vector_extension is not None) == extension
        found = {problem.name: problem.examples for problem in memory.store.verify().problems}
        assert found == {UNSOUND: ("record 3",)}
        assert memory.store.rebuild().problems == ()


@pytest.mark.parametrize("extension", [True, False])
@pytest.mark.parametrize("value", ["x'0011'", "printf('%064d', 0)", f"x'{NAN.hex()}'"])
def test_a_write_passes_over_a_damaged_vector(stored, value, extension, monkeypatch):
    diverge(stored, f"UPDATE vector SET value = {value} WHERE record_id = 3")
    if not extension:
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    with Memory(stored, settings=Settings(embedder="none", write=WritePolicy(link_cosine=0.9))) as memory:
        memory.remember(NewRecord("something else", vector=unit(2)))
        assert memory.store.stats().links == 0
        memory.remember(NewRecord("another thing", vector=unit(4)))
        assert memory.store.stats().links == 1


def test_progress_is_told(stored):
    with Memory(stored, settings=PLAIN) as memory:
        told = []
        memory.store.rebuild(on_progress=lambda done, total: told.append((done, total)))
        assert told[-1] == (6, 6)


def test_verify_on_an_open_memory_is_clean_while_segments_of_words_merge(on_disk):
    session = on_disk.sessions.open("s")
    for step in range(6):
        for place in range(40):
            on_disk.remember(f"text {step} {place}")
            session.append("user", f"text {step} {place}")
        assert on_disk.store.verify().problems == ()


@pytest.mark.parametrize("column", ["terms", "counts"])
def test_words_of_another_type_are_a_problem_that_rebuild_mends(path, column):
    """A flipped bit made a number of them, and verify raised TypeError."""
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("the ship left")
        with memory._engine.atomic() as writer:
            writer.connection.execute(f"UPDATE record_terms SET {column} = 7")
        assert "record whose words are not those of its text" in {each.name for each in memory.store.verify().problems}
        assert memory.store.rebuild().ok


def test_an_export_names_a_record_whose_id_is_no_text(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("the ship left")
        with memory._engine.atomic() as writer:
            writer.connection.execute("UPDATE record SET public_id = x'00ff'")
        with pytest.raises(StoreCorrupt, match="public_id is not what was stored"):
            memory.transfer.export(io.StringIO(), format="jsonl")


def test_a_text_that_is_none_stops_a_rebuild_and_is_named(stored):
    diverge(stored, "UPDATE record SET text = x'ff' WHERE id = 3")
    with Memory(stored, settings=PLAIN) as memory:
        with pytest.raises(StoreCorrupt, match="record 3: text is not what was stored"):
            memory.store.rebuild()
        assert memory.count() > 1
