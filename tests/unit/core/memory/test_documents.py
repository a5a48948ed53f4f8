"""Documents: what is unchanged keeps its record and its vectors, what is new is embedded once."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from recallite import Memory
from recallite.errors import EmbedderError, InvalidInput
from recallite.remember import document_writing as writing
from recallite.remember.document_writing import (
    CachePolicy,
    NewChunk,
    NewDocument,
    delete_documents,
    write_documents,
)

T0 = 1_700_000_000_000_000


class Letters:
    """Counts the texts that it embeds; fails when told to."""

    name, fingerprint, dimension = "letters", "letters:1", 26

    def __init__(self):
        self.embedded = []
        self.failing = False

    def embed(self, texts):
        if self.failing:
            raise EmbedderError("down")
        self.embedded += texts
        counts = np.array([[text.count(chr(97 + i)) + 0.01 for i in range(26)] for text in texts], dtype=np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def document(source, *texts, context="Guide", created_at=T0, tags=(), **fields):
    return NewDocument(
        source=source,
        media_type="text/markdown",
        content_hash=hashlib.sha256("\n".join(texts).encode()).digest(),
        size_bytes=len("\n".join(texts)),
        chunks=[
            NewChunk(text=text, context=context, metadata={"path": source, "lines": [place + 1, place + 1]})
            for place, text in enumerate(texts)
        ],
        created_at=created_at,
        tags=tags,
        **fields,
    )


@pytest.fixture
def embedder():
    return Letters()


@pytest.fixture
def memory(embedder):
    with Memory(":memory:", embedder=embedder) as opened:
        yield opened


def write(memory, *stream, **options):
    return list(write_documents(memory._engine, stream, **options))


def stored(memory):
    with memory._engine.store.read() as reader:
        return {
            row.source: [(chunk.position, chunk.text) for chunk in reader.documents.chunks_of(row.source_id)]
            for row in reader.documents.in_scope("/")
        }


def test_unchanged_chunks_keep_their_records_and_are_not_embedded_again(memory, embedder):
    write(memory, document("a.md", "one cat", "two dogs", "three mice"))
    before = {record.text: record.id for record in memory.list(kinds=["chunk"])}
    embedder.embedded.clear()
    (written,) = write(memory, document("a.md", "four birds", "two dogs", "one cat"))
    after = {record.text: record.id for record in memory.list(kinds=["chunk"])}
    assert (written.chunks_created, written.chunks_kept, written.chunks_deleted) == (1, 2, 1)
    assert len(embedder.embedded) == 1
    assert "four birds" in embedder.embedded[0]
    assert (after["one cat"], after["two dogs"]) == (before["one cat"], before["two dogs"])
    assert stored(memory) == {"a.md": [(0, "four birds"), (1, "two dogs"), (2, "one cat")]}
    (hit,) = memory.recall("cat", limit=1)
    assert (hit.source.path, hit.source.lines, hit.source.position) == ("a.md", (3, 3), 2)
    assert memory.store.verify().ok


def test_equal_chunks_of_one_document_are_all_kept(memory):
    write(memory, document("a.md", "again", "again", "other"))
    (written,) = write(memory, document("a.md", "again", "again", "again"))
    assert (written.chunks_kept, written.chunks_created, written.chunks_deleted) == (2, 1, 1)
    assert stored(memory) == {"a.md": [(0, "again"), (1, "again"), (2, "again")]}


def test_another_context_makes_another_chunk(memory):
    write(memory, document("a.md", "one cat"))
    (written,) = write(memory, document("a.md", "one cat", context="Manual"))
    assert (written.chunks_created, written.chunks_deleted) == (1, 1)


def test_a_renamed_document_keeps_id_chunks_and_vectors(memory, embedder):
    (old,) = write(memory, document("a.md", "one cat", tags=("memory",)))
    embedder.embedded.clear()
    (new,) = write(memory, document("b.md", "one cat", tags=("notes",), renamed_from="a.md"))
    assert (new.id, new.chunks_kept, embedder.embedded) == (old.id, 1, [])
    (record,) = memory.list(kinds=["chunk"])
    assert (record.source, record.metadata["path"], record.tags) == ("b.md", "b.md", ("notes",))
    assert list(stored(memory)) == ["b.md"]


def test_a_document_without_chunks_is_kept_and_deleted(memory):
    (written,) = write(memory, document("empty.md"))
    assert (written.outcome, written.chunks_created) == ("created", 0)
    assert stored(memory) == {"empty.md": []}
    assert delete_documents(memory._engine, "/", ["empty.md", "missing.md"]) == 0
    assert stored(memory) == {}


def test_a_chunk_that_cannot_be_stored_fails_its_document_alone(memory):
    bad, good = write(memory, document("bad.md", "fine", "nul\x00"), document("good.md", "fine"))
    assert bad.outcome == "failed"
    assert "NUL" in bad.problem
    assert good.outcome == "created"
    assert list(stored(memory)) == ["good.md"]


def test_chunks_wait_for_an_embedder_that_is_down(memory, embedder):
    embedder.failing = True
    (written,) = write(memory, document("a.md", "one cat"))
    assert written.pending == 1
    assert [hit.text for hit in memory.recall("cat", mode="keyword")] == ["one cat"]
    embedder.failing = False
    assert memory.store.reembed() == 1
    assert memory.store.stats().pending == 0


def test_delete_leaves_nothing_behind(memory):
    write(memory, document("a.md", "one cat", "two dogs"), document("b.md", "three mice"))
    assert delete_documents(memory._engine, "/", ["a.md"]) == 2
    with memory._engine.store.read() as reader:
        left = reader.connection.execute(
            "SELECT (SELECT count(*) FROM record), (SELECT count(*) FROM vector), (SELECT count(*) FROM record_terms), "
            "(SELECT count(*) FROM source), (SELECT count(*) FROM document)"
        ).fetchone()
    assert left == (1, 1, 1, 1, 1)
    assert memory.store.verify().ok


def test_forgetting_a_scope_takes_its_documents_along(memory):
    write(memory, document("a.md", "one cat", scope="/x"), document("e.md", scope="/x/y"), document("b.md", "two dogs"))
    memory.forget(scope="/x")
    assert stored(memory) == {"b.md": [(0, "two dogs")]}


def test_a_document_whose_chunks_are_forgotten_goes_with_the_last(memory):
    write(memory, document("a.md", "one cat", "two dogs", chunking="1"), document("e.md", chunking="1"))
    first, second = memory.list(kinds=["chunk"], order="oldest")
    memory.forget(first.id)
    with memory._engine.store.read() as reader:
        row = reader.documents.find("/", "a.md")
    assert (row.chunks, row.chunking) == (1, "")  # cut anew when it is next read
    memory.forget(second.id)
    assert stored(memory) == {"e.md": []}
    assert memory.store.verify().ok


def test_the_cache_is_truly_least_recently_used(memory, embedder):
    policy = CachePolicy(max_entries=2)
    write(memory, document("a.md", "aaa"), cache=policy)
    write(memory, document("b.md", "bbb"), cache=policy)
    write(memory, document("c.md", "aaa"), cache=policy)  # uses what a.md made: now the newest
    write(memory, document("d.md", "ddd"), cache=policy)  # bbb was used the longest time ago, and goes
    embedder.embedded.clear()
    again = write(memory, document("e.md", "aaa"), document("f.md", "bbb"), cache=policy)
    assert [(each.embeddings_cached, each.embeddings_computed) for each in again] == [(1, 0), (0, 1)]
    assert len(embedder.embedded) == 1
    with memory._engine.store.read() as reader:
        assert reader.embedding_cache.count() == 2


def test_another_embedder_uses_no_vectors_of_the_first(tmp_path, embedder):
    path = tmp_path / "m.db"
    with Memory(path, embedder=embedder) as memory:
        write(memory, document("a.md", "aaa"), cache=CachePolicy())
    other = Letters()
    other.fingerprint = "letters:2"
    with Memory(path, embedder=other) as memory:
        memory.store.reembed()
        other.embedded.clear()
        (written,) = write(memory, document("b.md", "aaa"), cache=CachePolicy())
        assert (written.embeddings_cached, written.embeddings_computed, len(other.embedded)) == (0, 1, 1)


def test_vectors_of_a_stopped_document_are_in_the_cache(memory, embedder, monkeypatch):
    monkeypatch.setattr(writing, "EMBEDDED_TOGETHER", 2)
    original = embedder.embed

    def stops(texts):
        if any("ccc" in text for text in texts):
            raise KeyboardInterrupt
        return original(texts)

    embedder.embed = stops
    with pytest.raises(KeyboardInterrupt):
        write(memory, document("a.md", "aaa", "bbb", "ccc", "ddd"), cache=CachePolicy())
    assert stored(memory) == {}
    embedder.embed = original
    (written,) = write(memory, document("a.md", "aaa", "bbb", "ccc", "ddd"), cache=CachePolicy())
    assert (written.embeddings_cached, written.embeddings_computed) == (2, 2)


def test_two_writers_of_one_document_leave_one_of_the_two(tmp_path, embedder):
    path = tmp_path / "m.db"
    with Memory(path, embedder=embedder) as one, Memory(path, embedder=Letters()) as two:
        write(one, document("a.md", "one", "two"))
        original = embedder.embed

        def meanwhile(texts):
            # After `one` has compared and before it commits.
            embedder.embed = original
            write(two, document("a.md", "seven"))
            return original(texts)

        embedder.embed = meanwhile
        (written,) = write(one, document("a.md", "one", "two", "three"))
        assert written.chunks_created == 3
        assert stored(two) == {"a.md": [(0, "one"), (1, "two"), (2, "three")]}
        assert one.store.verify().ok


def test_that_a_file_was_read_and_found_the_same_is_noted_alone(memory):
    write(memory, document("a.md", "one", mtime_ns=1, inode=5))
    with memory._engine.store.read() as reader:
        row = reader.documents.find("/", "a.md")
    with memory._engine.atomic() as writer:
        writer.documents.note_read([(6, 77, row.id, row.content_hash)])
        writer.documents.note_read([(7, 88, row.id, b"of another content")])
    with memory._engine.store.read() as reader:
        assert reader.documents.find("/", "a.md") == row._replace(inode=6, read_at=77)


def test_vectors_are_kept_where_a_commit_is_tried_again(memory, monkeypatch):
    commit, tried = writing._commit, []

    def late(*arguments):
        tried.append(arguments)
        return None if len(tried) == 1 else commit(*arguments)

    monkeypatch.setattr(writing, "_commit", late)
    write(memory, document("a.md", "one cat"), document("b.md", "two dogs"))
    assert len(tried) == 3
    assert memory.store.stats().vectors == 2
    assert memory.store.verify().ok


def test_a_chunk_is_changed_through_its_document_alone(memory):
    write(memory, document("a.md", "one"))
    (record,) = memory.list(kinds=["chunk"])
    with pytest.raises(InvalidInput, match=r"chunk of 'a\.md'"):
        memory.update(record.id, text="two")
    memory.update(record.id, importance=0.9)
    assert memory.get(record.id).importance == 0.9


def test_the_views_are_read_by_hand(memory):
    write(memory, document("a.md", "one", "two", title="Guide", metadata={"author": "Ada"}))
    with memory._engine.store.read() as reader:
        assert reader.connection.execute("SELECT source, title, chunks, metadata FROM documents").fetchall() == [
            ("a.md", "Guide", 2, '{"author":"Ada"}')
        ]
        rows = reader.connection.execute("SELECT source, position, content, start_line FROM chunks ORDER BY position")
        assert rows.fetchall() == [("a.md", 0, "one", 1), ("a.md", 1, "two", 2)]
