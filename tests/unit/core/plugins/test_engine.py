"""`EngineHandle`: what a plug-in reads and writes a memory with."""

from __future__ import annotations

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.errors import Conflict, EmbedderError, NotFound
from recallite.model.records import NewRecord
from recallite.plugin import engine_of
from tests.raising import raises


class Letters:
    """Counts two letters of a text."""

    name, dimension, fingerprint = "letters", 2, "letters"

    def embed(self, texts):
        counts = np.array([[text.count("a") + 1, text.count("b") + 1] for text in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def lettered():
    with Memory(":memory:", embedder=Letters(), settings=Settings(token_codes=False)) as opened:
        yield opened


def test_embed_gives_the_unit_vectors_of_queries(lettered, memory):
    vectors = engine_of(lettered).embed(["ab", "aab"])
    assert (vectors.shape, vectors.dtype) == ((2, 2), np.float32)
    np.testing.assert_allclose(vectors, lettered.embed(["ab", "aab"]))
    assert engine_of(lettered).embed([]).shape == (0, 0)
    with raises(EmbedderError, "missing"):
        engine_of(memory).embed(["ab"])


def test_what_is_prepared_is_inserted_within_the_scope_and_found(lettered):
    engine = engine_of(lettered.scoped("/notes"))
    rows, identity = engine.prepare([NewRecord(text="aaa", id="one"), NewRecord(text="bbb", scope="/deep")])
    with engine.write() as writer:
        first, _ = engine.insert(writer, rows, identity)
        assert writer.records.get(first).text == "aaa"
    assert {each.text: each.scope for each in lettered.list()} == {"aaa": "/notes", "bbb": "/notes/deep"}
    assert lettered.recall("aaaa", mode="vector")[0].id == "one"
    assert lettered.store.verify().ok


def test_nothing_is_prepared_of_nothing(lettered):
    engine = engine_of(lettered)
    with engine.write() as writer:
        assert engine.insert(writer, *engine.prepare([])) == []


def test_a_write_that_raises_is_undone(lettered):
    engine = engine_of(lettered)
    prepared = engine.prepare([NewRecord(text="aaa")])

    def write():
        with engine.write() as writer:
            engine.insert(writer, *prepared)
            raise KeyError("no")

    with pytest.raises(KeyError):
        write()
    assert lettered.count() == 0


def test_an_id_that_is_taken_is_refused(lettered):
    engine = engine_of(lettered)
    lettered.remember("aaa", id="one")
    for items in ([NewRecord(text="b", id="one")], [NewRecord(text="b", id="two"), NewRecord(text="c", id="two")]):
        prepared = engine.prepare(items)
        with engine.write() as writer, raises(Conflict, "exists", match="is taken by another memory"):
            engine.insert(writer, *prepared)
    assert lettered.count() == 1


def test_a_row_stands_in_the_place_of_what_it_supersedes(lettered):
    engine = engine_of(lettered)
    lettered.remember("aaa", id="one")
    rows, identity = engine.prepare([NewRecord(text="bbb", supersedes=("one",))])
    with engine.write() as writer:
        engine.insert(writer, rows, identity)
    assert [each.text for each in lettered.list()] == ["bbb"]
    prepared = engine.prepare([NewRecord(text="ccc", supersedes=("nothing",))])
    with pytest.raises(NotFound), engine.write() as writer:
        engine.insert(writer, *prepared)


def test_index_is_that_of_the_commit_read(lettered):
    engine = engine_of(lettered)
    lettered.remember_many(["aaa", "bbb"])
    with engine.read() as reader, engine.index(reader) as index:
        assert index.describe()["records"] == len(reader.records.by_row_ids([1, 2])) == 2
