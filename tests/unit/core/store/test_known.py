"""What a writer knows from one transaction to the next, and that it reads again what anybody else may have changed."""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np
import pytest

from recallite import Memory
from recallite.errors import EmbedderMismatch, InvalidInput
from recallite.model.records import NewRecord
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, WordEmbedder, unit

MOST_STATEMENTS = 15
# 12 pages of 4 KiB.
MOST_WAL_BYTES = 48 * 1024


def statements_of(memory, write):
    """The statements that a write runs on the writer and on readers, but for those of the index."""
    store, seen = memory._engine.store, []
    connections = [store._writer.connection, *(each.connection for each in store._idle)]
    for connection in connections:
        connection.exec_trace = lambda _, sql, __: seen.append(sql) or True
    write()
    for connection in connections:
        connection.exec_trace = None
    return seen


def test_a_write_after_another_runs_few_statements(on_disk):
    on_disk.remember(NewRecord("the first apple", vector=unit(0)))
    on_disk.remember(NewRecord("the second apple", vector=unit(1)))
    seen = statements_of(on_disk, lambda: on_disk.remember(NewRecord("the third apple", vector=unit(2))))
    assert len(seen) <= MOST_STATEMENTS, seen
    assert not [sql for sql in seen if "FROM embedder" in sql or "lexicon_epoch" in sql or "FROM scope" in sql]


def test_a_write_leaves_few_bytes_in_the_wal(on_disk, path):
    names = ("Ada", "Bob", "Chloe", "Dmitri", "Esra", "Farid", "Greta")
    things = ("tea", "jazz", "chess", "rain", "trams", "moss", "salt")
    for each in range(47):
        if each == 7:
            on_disk.recall("Who likes tea?", vector=unit(each, 384))
            began = os.path.getsize(f"{path}-wal")
        text = f"{names[each % 7]} likes {things[(each + each // 7) % 7]}"
        on_disk.remember(NewRecord(text, vector=unit(each, 384)))
    assert (os.path.getsize(f"{path}-wal") - began) / 40 <= MOST_WAL_BYTES


def test_a_row_id_is_given_once(path):
    """Also after its record is gone, and to whoever writes next."""
    ids = []

    def written(memory):
        gone = memory.remember("apple")
        with memory._engine.store.read() as reader:
            ids.append(reader.records.find_ids([gone.id], "/")[gone.id])
        memory.forget(gone.id)

    for _ in range(2):
        with Memory(path, settings=PLAIN) as one, Memory(path, settings=PLAIN) as other:
            written(one)
            written(other)
            with suppress(ZeroDivisionError), one.transaction():
                written(one)
                raise ZeroDivisionError
            written(one)
    assert ids == sorted({*ids})


def test_a_scope_that_another_store_dropped_is_looked_up_again(path):
    """Its number may be that of another scope by now."""
    with Memory(path, settings=PLAIN) as one, Memory(path, settings=PLAIN) as other:
        one.remember("kept apple")
        first = one.remember("apple", scope="/x").id
        assert other.forget(first, receipt=True).receipt.complete
        other.remember("pear", scope="/y")
        again = one.remember("cherry", scope="/x").id
        assert one.get(again).scope == "/x"
        assert [each.text for each in one.list(scope="/y")] == ["pear"]
        assert [each.text for each in other.list(scope="/x")] == ["cherry"]
        assert one.store.verify().ok


def test_a_scope_of_a_write_that_was_undone_is_looked_up_again(path):
    with Memory(path, settings=PLAIN) as one, Memory(path, settings=PLAIN) as other:
        one.remember("kept apple")
        with suppress(ZeroDivisionError), one.transaction():
            one.remember("apple", scope="/x")
            raise ZeroDivisionError
        other.remember("pear", scope="/y")
        assert one.get(one.remember("cherry", scope="/x").id).scope == "/x"
        with one.transaction():
            with suppress(ZeroDivisionError), one._engine.atomic() as writer:
                writer.scopes.intern({"/z"})
                raise ZeroDivisionError
            one.remember("plum", scope="/w")
            one.remember("fig", scope="/z")
        assert {each.text: each.scope for each in one.list()} == {
            "kept apple": "/", "pear": "/y", "cherry": "/x", "plum": "/w", "fig": "/z",
        }  # fmt: skip
        assert one.store.verify().ok


def test_an_embedder_that_another_store_moved_to_takes_the_next_write(path):
    moved = WordEmbedder("moved", dimension=8)
    with Memory(path, settings=PLAIN) as one:
        one.remember(NewRecord("apple", vector=unit(0, 16)))
        with Memory(path, embedder=moved) as other:
            other.store.reembed()
        written = one.remember(NewRecord("pear", vector=unit(1, 8)))
        assert one.recall("", vector=unit(1, 8), mode="vector", limit=1)[0].id == written.id
        with raises(InvalidInput, "vector"):
            one.remember(NewRecord("cherry", vector=unit(2, 16)))
        assert one.count() == 2
        assert one.store.verify().ok


def test_an_embedder_that_another_store_left_is_refused(path):
    first, second = WordEmbedder("first"), WordEmbedder("second")
    with Memory(path, embedder=first) as one:
        one.remember("apple")
        with Memory(path, embedder=second) as other:
            other.store.reembed()
        with pytest.raises(EmbedderMismatch, match="holds vectors of second"):
            one.remember("pear")
        assert one.count() == 1


def test_words_that_another_store_dropped_are_numbered_again(path):
    with Memory(path, settings=PLAIN) as one, Memory(path, settings=PLAIN) as other:
        one.remember("kept apple")
        gone = one.remember("zanzibar").id
        other.forget(gone)
        other.store.vacuum()
        other.remember("yokohama")
        again = one.remember("zanzibar").id
        for memory in (one, other):
            assert [hit.id for hit in memory.recall("zanzibar", mode="keyword")] == [again]
        assert one.store.verify().ok


def test_row_ids_follow_one_another_over_writes_of_two_stores(path):
    with Memory(path, settings=PLAIN) as one, Memory(path, settings=PLAIN) as other:
        for number in range(3):
            one.remember(NewRecord(f"apple {number}", vector=unit(2 * number)))
            other.remember_many([{"text": f"pear {number} {each}", "vector": unit(each)} for each in range(2)])
        with one._engine.store.read() as reader:
            rows = reader.connection.execute("SELECT id, record_id FROM vector").fetchall()
        assert np.array_equal(np.array(rows), np.repeat(np.arange(1, 10)[:, None], 2, axis=1))


def test_what_a_store_itself_changes_is_known_too(path):
    """The word that it dropped, the scope whose number it gave to another, the embedder that it moved to."""
    with Memory(path, embedder=WordEmbedder("first")) as memory:
        memory.remember("kept apple")
    with Memory(path, embedder=WordEmbedder("second")) as memory:
        with memory._engine.atomic() as writer:
            assert writer.vectors.active_embedder().name == "first"
        memory.store.reembed()
        memory.forget(memory.remember("zanzibar", scope="/x").id, receipt=True)
        memory.store.vacuum()
        memory.remember("yokohama", scope="/y")
        assert memory.get(memory.remember("zanzibar", scope="/x").id).scope == "/x"
        assert len(memory.recall("zanzibar", mode="keyword")) == 1
        assert memory.store.verify().ok


def test_which_authorities_there_are_is_looked_up_once_for_a_batch(on_disk, monkeypatch):
    """A server is asked each time, so that a batch of strangers must not ask for each of its texts."""
    writer, calls = on_disk._engine.store._writer, []
    monkeypatch.setattr(writer, "known", lambda key, read: calls.append(key) or read())
    counts = []
    for count in (2, 40):
        calls.clear()
        texts = [f"The port of host {count}-{number} is {number}" for number in range(count)]
        on_disk.remember_many([NewRecord(text, source="https://example.org") for text in texts])
        counts.append(calls.count("lower ranks"))
    assert counts[0] == counts[1]
