"""Maintenance of any store."""

from __future__ import annotations

import pytest

from recallite.derivation import derive
from recallite.errors import InvalidInput
from recallite.model.checks import is_address
from recallite.model.filters import Filter
from recallite.store.opening import open_store
from tests.unit.core.store.contract.support import EMBEDDER, KEY, NOW, row, vector


@pytest.fixture
def filled(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        writer.records.insert([row(str(n), f"number {n} of many", vectors=(vector(n),)) for n in range(20)], embedder)
    return store


def contents(store):
    with store.read() as reader:
        return list(reader.records.versions(Filter(), reader.vectors.active_embedder()))


def test_a_sound_store_verifies_before_and_after_a_rebuild(filled):
    told = []
    before = contents(filled)
    assert filled.verify().problems == ()
    filled.rebuild(lambda done, total: told.append((done, total)))
    assert told[-1] == (20, 20)
    assert filled.verify().problems == ()
    assert contents(filled) == before


def test_vacuum_drops_unused_words_and_changes_nothing_else(filled):
    with filled.atomic() as writer:
        (row_id,) = writer.records.insert([row("x", "xylophone")], None)
        writer.records.delete([row_id])
    before = contents(filled)
    filled.vacuum()
    assert contents(filled) == before
    with filled.read() as reader:
        assert reader.lexicon.lookup(["xylophon", "xylophone"]) == {}
    with filled.atomic() as writer:
        writer.records.insert([row("y", "xylophone")], None)
    assert filled.verify().problems == ()


def test_a_backup_is_the_same_store(filled, tmp_path):
    if is_address(filled.path):
        with pytest.raises(InvalidInput, match=r"pg_dump.* copy"):
            filled.backup(tmp_path / "copy.db")
        return
    copy = filled.backup(tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="exists"):
        filled.backup(tmp_path / "copy.db")
    other = open_store(copy, key=KEY if filled.encrypted else None, derive=derive)
    try:
        assert contents(other) == contents(filled)
    finally:
        other.close()


def test_counts_are_those_of_a_scope(filled):
    with filled.atomic() as writer:
        writer.records.insert([row("s", scope="/s", kind="fact")], None)
    whole, part = filled.stats("/"), filled.stats("/s")
    assert (whole["records"], whole["vectors"], whole["kinds"]) == (21, 20, {"note": 20, "fact": 1})
    assert (part["records"], part["vectors"], part["kinds"], part["terms"]) == (1, 0, {"fact": 1}, None)
    assert filled.size() == 21


def test_a_store_in_memory_has_no_key(store):
    if not store.in_memory:
        pytest.skip("keys of files are tested with the ciphers")
    with pytest.raises(InvalidInput, match="no file"):
        store.rekey(None)
    assert not store.encrypted
    assert store.snapshot_path is None
    with store.atomic() as writer:
        assert writer.records.count(Filter(), NOW) == 0
