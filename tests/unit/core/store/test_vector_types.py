"""Vectors kept as float16: half of the bytes, cosines that differ by less than 0.001, and never two types at once."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.derivation import derive
from recallite.errors import EmbedderMismatch
from recallite.model.records import NewRecord
from recallite.store.opening import open_store
from tests.unit.core.memory.support import PLAIN, raw, unit

HALF = Settings(embedder="none", vectors="float16")


def fill(path, settings, first=0, count=40):
    with Memory(path, settings=settings) as memory:
        return memory.remember_many(
            {"text": f"number {number}", "vector": unit(number, 64)} for number in range(first, first + count)
        )


def sizes(path):
    connection = raw(path)
    found = {size for (size,) in connection.execute("SELECT length(value) FROM vector")}
    connection.close()
    return found


def cosines(path, settings, asked):
    with Memory(path, settings=settings) as memory:
        return {hit.text: hit.signals["cosine"] for hit in memory.recall("", vector=asked, mode="vector", limit=40)}


def test_float16_takes_half_the_bytes_and_finds_the_same(path, tmp_path):
    whole = str(tmp_path / "whole.db")
    ids = fill(path, HALF)
    fill(whole, PLAIN)
    assert (sizes(path), sizes(whole)) == ({128}, {256})
    asked = unit(3, 64)
    half, exact = cosines(path, HALF, asked), cosines(whole, PLAIN, asked)
    assert half.keys() == exact.keys()
    assert max(half, key=half.get) == "number 3"
    assert max(abs(half[text] - exact[text]) for text in exact) < 5e-4
    with Memory(path, settings=HALF) as memory:
        assert (memory.store.stats().vector_type, memory.store.verify().problems) == ("float16", ())
        kept = np.array([unit(0, 64)]).astype(np.float16).astype(np.float32)
        assert np.array_equal(memory.vectors(ids[:1])[ids[0]], kept)
        assert memory.store.rebuild().ok


def test_versions_and_later_writes_are_kept_as_float16(path):
    ids = fill(path, HALF)
    with Memory(path, settings=HALF) as memory:
        memory.recall("", vector=unit(1, 64))
        memory.update(ids[3], text="changed", vector=unit(99, 64))
        assert memory.recall("", vector=unit(99, 64), limit=1)[0].text == "changed"
        assert memory.store.verify().ok
    assert sizes(path) == {128}


@pytest.mark.parametrize(("stored", "opened"), [(HALF, PLAIN), (PLAIN, HALF)])
def test_a_store_of_the_other_type_is_read_and_refuses_to_be_written(path, stored, opened):
    fill(path, stored)
    before = sizes(path)
    with Memory(path, settings=opened) as memory:
        assert memory.recall("", vector=unit(3, 64), limit=1)[0].text == "number 3"
        with pytest.raises(EmbedderMismatch, match=rf"vectors='{opened.vectors}'.*rebuild"):
            memory.remember(NewRecord("another", vector=unit(50, 64)))
        assert memory.count() == 40
    assert sizes(path) == before


@pytest.mark.parametrize(("stored", "opened", "size"), [(HALF, PLAIN, 256), (PLAIN, HALF, 128)])
def test_rebuild_converts(path, stored, opened, size):
    fill(path, stored)
    before = cosines(path, stored, unit(3, 64))
    with Memory(path, settings=opened) as memory:
        assert memory.store.rebuild().ok
        assert memory.store.stats().vector_type == opened.vectors
    assert sizes(path) == {size}
    fill(path, opened, first=40, count=5)
    after = cosines(path, opened, unit(3, 64))
    assert all(abs(before[text] - after[text]) < 5e-4 for text in before.keys() & after.keys())


@pytest.mark.parametrize("extension", [True, False])
def test_spoiled_float16_is_named(path, extension, monkeypatch):
    fill(path, HALF)
    connection = raw(path)
    connection.execute("UPDATE vector SET value = zeroblob(128) WHERE record_id = 3")
    connection.execute("UPDATE vector SET value = zeroblob(256) WHERE record_id = 4")
    connection.close()
    if not extension:
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    with Memory(path, settings=HALF) as memory:
        assert {problem.name: problem.examples for problem in memory.store.verify().problems} == {
            "vector that is not of unit length": ("record 3",), "vector of the wrong size": ("vector 4",),
        }  # fmt: skip
        assert len(memory.recall("", vector=unit(5, 64), mode="vector", limit=40)) > 30
        assert memory.store.rebuild().ok


@pytest.mark.parametrize("extension", [True, False])
def test_cosines_in_a_write_transaction_read_float16(path, extension, monkeypatch):
    fill(path, HALF, count=5)
    if not extension:
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    store = open_store(path, vector_type="float16", derive=derive)
    with store.atomic() as writer:
        embedder = writer.vectors.active_embedder()
        found = writer.vectors.cosines(embedder, unit(2, 64), [1, 2, 3])
    store.close()
    assert found == pytest.approx([float(unit(number, 64) @ unit(2, 64)) for number in (0, 1, 2)], abs=5e-4)
