"""The knowledge base: what is ingested is found with its place, once, and is gone when it is deleted."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime

import pytest

from recallite import AsyncMemory, Memory
from recallite.errors import (
    DocumentError,
    EmbedderError,
    InvalidInput,
    NotFound,
)
from recallite_documents import ingesting
from tests.raising import raises
from tests.unit.core.memory.support import WordEmbedder
from tests.unit.documents.test_fetching import serving

GUIDE = """---
category: handbook
title: The Guide
---
# Install

Run the installer, then restart the server.

## Proxies

Behind a proxy set the address of the gateway.

# Use

Ask it about penguins.
"""


class Counting(WordEmbedder):
    """Counts the texts that it embeds; fails when told to."""

    def __init__(self):
        super().__init__()
        self.embedded = []
        self.down = False

    def embed(self, texts):
        if self.down:
            raise EmbedderError("down")
        self.embedded += texts
        return super().embed(texts)


@pytest.fixture
def embedder():
    return Counting()


@pytest.fixture
def memory(embedder):
    with Memory(":memory:", embedder=embedder) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "docs"
    made.mkdir()
    (made / "guide.md").write_text(GUIDE)
    return made


def outcomes(ingested):
    return [(os.path.basename(each.source), each.outcome) for each in ingested.documents]


def reasons(ingested):
    return {os.path.basename(each.source): each.reason for each in ingested.skipped}


def texts(memory):
    return sorted(record.text for record in memory.list(kinds=["chunk"], limit=1000))


# ── ingest and search ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_passage_is_found_with_its_file_lines_title_and_headings(memory, folder):
    (document,) = memory.knowledge.ingest(folder / "guide.md", metadata={"version": "2.0"}).documents
    assert (document.outcome, document.title, document.pending) == ("created", "The Guide", 0)
    hit = memory.knowledge.search("address of the proxy gateway")[0]
    assert hit.text == "## Proxies\n\nBehind a proxy set the address of the gateway."
    assert hit.context == "The Guide > Install > Proxies"
    assert hit.source.path == (folder / "guide.md").as_posix()
    assert hit.source.lines == (9, 11)
    assert GUIDE.splitlines()[8] == "## Proxies"
    begin, end = hit.metadata["chars"]
    assert GUIDE[begin:end] == hit.text
    wanted = {"category": "handbook", "version": "2.0", "title": "The Guide", "headings": ["Install", "Proxies"],
              "document": document.id}  # fmt: skip
    assert wanted.items() <= hit.metadata.items()


def test_recall_finds_chunks_beside_memories(memory, folder):
    memory.remember("Penguins live in the south")
    memory.knowledge.ingest(folder)
    assert {hit.kind for hit in memory.recall("penguins", limit=10)} == {"memory", "chunk"}
    assert {hit.kind for hit in memory.knowledge.search("penguins", 10)} == {"chunk"}


def test_long_metadata_are_kept_once_and_not_with_each_chunk(memory, folder):
    """72 KB of Markdown became 150 MB with 100 KB of metadata."""
    note = {"long": "x" * 100_000, "team": "a"}
    for _ in range(2):  # new, and with other metadata
        (document,) = memory.knowledge.ingest(folder / "guide.md", metadata=note).documents
        assert memory.knowledge.get(document.id).metadata["long"] == note["long"]
        for hit in memory.knowledge.search("installer server", 10, where={"metadata.team": {"eq": note["team"]}}):
            assert "long" not in hit.metadata
        note = {"long": "y" * 100_000, "team": "b"}


def test_where_filters_by_the_metadata_of_documents(memory, folder):
    (folder / "other.md").write_text("# Install\n\nAnother installer for another server.\n")
    memory.knowledge.ingest(folder / "guide.md", metadata={"team": "a"})
    memory.knowledge.ingest(folder / "other.md", metadata={"team": "b"})
    hits = memory.knowledge.search("installer server", 10, where={"metadata.team": {"eq": "b"}})
    assert [hit.text for hit in hits] == ["# Install\n\nAnother installer for another server."]


def test_a_source_may_be_a_list_and_progress_is_told(memory, folder):
    told = []
    done = memory.knowledge.ingest(
        [folder / "guide.md", b"bytes of a text", str(folder / "absent.md")],
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert [each.outcome for each in done.documents] == ["created", "created"]
    assert reasons(done) == {"absent.md": "it is not there"}
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_a_document_by_url(memory):
    with serving() as site:
        site.pages["/a/guide.md"] = (200, {"Content-Type": "text/markdown"}, GUIDE.encode())
        url = f"{site.url}/a/guide.md"
        with raises(DocumentError, "refused", match="not a public address"):
            memory.knowledge.ingest(url)
        with raises(DocumentError, "unreadable") as raised:
            memory.knowledge.ingest(f"{site.url}/absent", allow_private_addresses=True)
        assert str(raised.value) == f"{site.url}/absent answered 404"
        (document,) = memory.knowledge.ingest(url, allow_private_addresses=True).documents
        assert memory.knowledge.get(url).metadata == {
            "category": "handbook", "title": "The Guide", "url": url, "content_type": "text/markdown",
        }  # fmt: skip
        site.pages["/a/guide.md"] = (200, {}, b"# Other\n\nwords")
        (again,) = memory.knowledge.ingest(url, allow_private_addresses=True).documents
        assert (again.id, again.outcome) == (document.id, "updated")


def test_long_metadata_stand_in_the_document_and_not_on_each_of_its_chunks(memory, folder):
    """1,500 headings under 60 KB of front matter made 90 MB of rows, and 150 MB with 100 KB of the caller's."""
    matter = "\n".join([f"key{n}: {'z' * 1_000}" for n in range(60)] + ["team: a"])
    headings = "".join(f"# {'long heading ' * 100}{n}\n\nx\n\n" for n in range(50))
    (folder / "guide.md").write_text(f"---\n{matter}\n---\n{headings}")
    (first,) = memory.knowledge.ingest(folder).documents
    memory.knowledge.ingest(folder, metadata={"big": "y" * 100_000, "version": 2})
    metadata = memory.knowledge.get(first.id).metadata
    assert (len(metadata), len(metadata["key7"]), len(metadata["big"])) == (63, 1_000, 100_000)
    hits = memory.knowledge.search("long heading", 100, where={"metadata.team": {"eq": "a"}})
    assert {hit.metadata["version"] for hit in hits} == {2}
    chunks = memory.list(kinds=["chunk"], limit=1000)
    assert len(chunks) == first.chunks >= 50
    assert max(len(str(chunk.metadata)) for chunk in chunks) < 5_000
    assert max(len(chunk.context) for chunk in chunks) <= 400


# ── what fails ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", ["stated_by", "cut", "read_file"])
def test_a_fault_nobody_foresaw_is_that_of_its_document_alone(memory, folder, monkeypatch, step):
    (folder / "other.md").write_text("about volcanoes")
    real = getattr(ingesting, step)

    def fail(first, *arguments, **options):
        if "gateway" in str(getattr(first, "text", "")) or getattr(first, "inner", "") == "guide.md":
            raise KeyError("zz")
        return real(first, *arguments, **options)

    monkeypatch.setattr(ingesting, step, fail)
    done = memory.knowledge.ingest(folder)
    assert (outcomes(done), reasons(done)) == (
        [("other.md", "created")], {"guide.md": "reading it failed: KeyError: 'zz'"},
    )  # fmt: skip
    assert [each.error for each in done.skipped] == ["unreadable"]
    with raises(DocumentError, "unreadable", match=r"guide\.md: reading it failed: KeyError: 'zz'"):
        memory.knowledge.ingest(folder / "guide.md")


def test_an_error_of_the_embedder_is_none_of_a_document(memory, folder, monkeypatch):
    def fail(*arguments, **options):
        raise EmbedderError("no tokens")

    monkeypatch.setattr(ingesting, "cut", fail)
    with pytest.raises(EmbedderError, match="no tokens"):
        memory.knowledge.ingest(folder)


def test_a_property_that_the_yaml_library_fails_on_is_its_text(memory, folder):
    (folder / "bad.md").write_text("---\na: !!timestamp zz\n---\nabout volcanoes")
    assert outcomes(memory.knowledge.ingest(folder)) == [("bad.md", "created"), ("guide.md", "created")]
    (hit, *_) = memory.knowledge.search("volcanoes")
    assert (hit.text, hit.metadata["a"]) == ("about volcanoes", "!!timestamp zz")


def test_a_server_that_states_what_is_no_charset_keeps_no_url_from_being_read(memory):
    with serving() as site:
        for place, charset in enumerate(("undefined", "a\0b", "utf-8")):
            data = f"Die Größe der Übertragung Nummer {place} wächst".encode("latin-1")
            site.pages[f"/{place}"] = (200, {"Content-Type": f"text/plain; charset={charset}"}, data)
        long = "http://" + "a" * 70 + ".com/"
        done = memory.knowledge.ingest(
            [long, *(f"{site.url}/{place}" for place in range(3))], allow_private_addresses=True
        )
    # The header with a NUL is refused by the client.
    assert outcomes(done) == [("0", "created"), ("2", "created")]
    assert [each.error for each in done.skipped] == ["unreadable", "unreadable"]


def test_a_password_is_text(memory):
    with pytest.raises(InvalidInput, match="password is not a str"):
        memory.knowledge.ingest(b"text", password=b"sesame")


# ── the same again ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_reeve_the_same_bytes_again_update_metadata_and_make_no_chunk(memory, folder, embedder):
    (first,) = memory.knowledge.ingest(folder / "guide.md", metadata={"version": "1.0"}).documents
    before = {record.text: record.id for record in memory.list(kinds=["chunk"])}
    embedder.embedded.clear()
    (same,) = memory.knowledge.ingest(folder / "guide.md").documents
    assert (same.outcome, same.id) == ("unchanged", first.id)
    (again,) = memory.knowledge.ingest(folder / "guide.md", metadata={"version": "2.0", "new": True}).documents
    assert (again.outcome, again.id, again.chunks_created, again.chunks_deleted) == ("updated", first.id, 0, 0)
    assert {record.text: record.id for record in memory.list(kinds=["chunk"])} == before
    assert embedder.embedded == []
    assert memory.knowledge.get(first.id).metadata["version"] == "2.0"
    (hit,) = memory.knowledge.search("penguins", 1, where={"metadata.version": {"eq": "2.0"}})
    assert (hit.metadata["new"], hit.metadata["category"], hit.source.lines) == (True, "handbook", (13, 15))


def test_reeve_the_same_bytes_elsewhere_are_a_duplicate(memory, folder):
    (folder / "copy.md").write_text(GUIDE)
    done = memory.knowledge.ingest(folder)
    assert outcomes(done) == [("copy.md", "created"), ("guide.md", "duplicate")]
    copy, guide = done.documents
    assert (guide.id, guide.duplicate_of) == (copy.id, copy.source)
    assert len(memory.knowledge.list()) == 1
    again = memory.knowledge.ingest(folder, metadata={"team": "a"})
    assert outcomes(again) == [("copy.md", "updated"), ("guide.md", "duplicate")]
    assert memory.store.verify().ok


def test_a_changed_document_replaces_its_chunks_and_keeps_those_it_still_has(memory, folder, embedder):
    (first,) = memory.knowledge.ingest(folder / "guide.md").documents
    embedder.embedded.clear()
    (folder / "guide.md").write_text(GUIDE.replace("penguins", "volcanoes"))
    (again,) = memory.knowledge.ingest(folder / "guide.md").documents
    assert (again.outcome, again.id, again.chunks_created, again.chunks_deleted) == ("updated", first.id, 1, 1)
    assert len(embedder.embedded) == 1
    assert not any("penguins" in text for text in texts(memory))
    assert memory.store.verify().ok


def test_a_moved_file_keeps_its_document(memory, folder, embedder):
    (first,) = memory.knowledge.ingest(folder).documents
    embedder.embedded.clear()
    (folder / "guide.md").rename(folder / "handbook.md")
    (moved,) = memory.knowledge.ingest(folder).documents
    assert (moved.id, moved.outcome, embedder.embedded) == (first.id, "updated", [])
    (document,) = memory.knowledge.list()
    assert document.source == (folder / "handbook.md").as_posix()
    assert memory.knowledge.search("penguins")[0].source.path == document.source


@pytest.mark.parametrize("kind", ["bytes", "file"])
def test_a_name_that_looks_like_a_path_is_no_file_that_is_gone(memory, folder, kind):
    source = folder / "guide.md" if kind == "file" else GUIDE.encode()
    (first,) = memory.knowledge.ingest(source, name="/docs/a.md").documents
    (again,) = memory.knowledge.ingest(source, name="/docs/b.md").documents
    assert (again.outcome, again.duplicate_of, again.id) == ("duplicate", "/docs/a.md", first.id)
    (copy,) = memory.knowledge.ingest(folder / "guide.md", metadata={"team": "a"}).documents
    assert (copy.outcome, copy.duplicate_of) == ("duplicate", "/docs/a.md")
    assert [(each.source, each.metadata["team"]) for each in memory.knowledge.list()] == [("/docs/a.md", "a")]
    (again,) = memory.knowledge.ingest(source, name="/docs/b.md").documents
    assert (again.outcome, again.duplicate_of) == ("duplicate", "/docs/a.md")


def test_a_file_whose_bytes_were_given_too_is_known_when_it_moves(memory, folder):
    (first,) = memory.knowledge.ingest(folder).documents
    memory.knowledge.ingest(GUIDE.encode(), name="copy.md", metadata={"team": "a"})
    (folder / "guide.md").rename(folder / "handbook.md")
    (moved,) = memory.knowledge.ingest(folder).documents
    assert (moved.id, moved.outcome) == (first.id, "updated")


def test_two_files_that_change_places_are_both_there(memory, folder):
    (folder / "b.md").write_text("# B\n\nabout volcanoes")
    memory.knowledge.ingest(folder)
    (folder / "guide.md").write_text("# B\n\nabout volcanoes")
    (folder / "b.md").write_text(GUIDE)
    memory.knowledge.ingest(folder)
    for query, name in (("penguins", "b.md"), ("volcanoes", "guide.md")):
        assert os.path.basename(memory.knowledge.search(query)[0].source.path) == name
    assert len(memory.knowledge.list()) == 2
    assert memory.store.verify().ok


def test_a_copy_outlives_the_change_of_the_first(memory, folder):
    (folder / "copy.md").write_text(GUIDE)
    memory.knowledge.ingest(folder)
    (folder / "copy.md").write_text("# Else\n\nnothing of it")
    done = memory.knowledge.ingest(folder)
    assert outcomes(done) == [("copy.md", "updated"), ("guide.md", "created")]
    assert os.path.basename(memory.knowledge.search("penguins")[0].source.path) == "guide.md"


def test_another_title_is_another_context(memory, folder):
    memory.knowledge.ingest(folder / "guide.md")
    (again,) = memory.knowledge.ingest(folder / "guide.md", title="Manual").documents
    assert (again.outcome, again.title) == ("updated", "Manual")
    assert memory.knowledge.search("penguins")[0].context == "Manual > Use"


# ── delete ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("by", ["id", "source", "relative"])
def test_delete_leaves_nothing(memory, folder, by, monkeypatch):
    monkeypatch.chdir(folder)
    (document,) = memory.knowledge.ingest("guide.md").documents
    deleted = memory.knowledge.delete({"id": document.id, "source": document.source, "relative": "guide.md"}[by])
    assert (deleted.id, deleted.chunks) == (document.id, document.chunks)
    assert memory.knowledge.list() == []
    assert memory.count(kinds=["chunk"]) == 0
    assert memory.knowledge.search("penguins") == []
    stats = memory.store.stats()
    assert (stats.vectors, stats.sources, stats.services["documents"]) == (0, 0, 0)
    assert memory.store.verify().ok
    with pytest.raises(NotFound, match="no document has the id or the source"):
        memory.knowledge.delete(document.id)


def test_a_scope_sees_its_own_documents_only(memory, folder):
    ada, eve = memory.scoped("/users/ada"), memory.scoped("/users/eve")
    (document,) = ada.knowledge.ingest(folder / "guide.md").documents
    assert ada.knowledge.get(document.id).scope == "/"
    assert memory.knowledge.get(document.id).scope == "/users/ada"
    assert (eve.knowledge.list(), eve.knowledge.search("penguins")) == ([], [])
    for id in (document.id, document.source):
        with pytest.raises(NotFound):
            eve.knowledge.delete(id)
    # The same bytes in another scope are no duplicate: nothing of the other may be known.
    (own,) = eve.knowledge.ingest(folder / "guide.md").documents
    assert (own.outcome, own.id != document.id) == ("created", True)
    assert eve.knowledge.search("penguins")[0].metadata["document"] == own.id
    assert ada.knowledge.delete(document.id).chunks == document.chunks
    assert len(memory.knowledge.list(scope="/users")) == 1


# ── what goes wrong ────────────────────────────────────────────────────────────────────────────────────────────────


def test_larger_documents_than_the_limits_allow(folder, memory):
    with raises(DocumentError, "too_large", match=r"max_bytes is 100"):
        memory.knowledge.ingest(folder / "guide.md", max_bytes=100)
    with raises(DocumentError, "too_large", match="limit is 100"):
        memory.knowledge.ingest(b"x" * 101, max_bytes=100)
    with raises(DocumentError, "too_large", match="longer than 50 char"):
        memory.knowledge.ingest(folder / "guide.md", max_chars=50)


def test_a_line_of_many_megabytes_is_cut_and_found(memory):
    long = b"word " * 400_000 + b"penguin"
    (document,) = memory.knowledge.ingest(long, name="long.txt").documents
    assert document.chunks > 100
    assert memory.knowledge.search("penguin", 1)[0].text.endswith("penguin")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"source": 7}, "give a path, a URL, bytes"),
        ({"source": [None]}, "give a path, a URL, bytes"),
        ({"source": "a\0b"}, "a path has no NUL"),
        ({"source": b"x", "metadata": [1]}, "metadata"),
        ({"source": b"x", "name": " "}, "name"),
        ({"source": b"x", "scope": "no"}, "scope"),
        ({"source": [b"x", b"y"], "name": "n"}, "for one document"),
        ({"source": b"x", "max_bytes": 0}, "max_bytes is 0"),
        ({"source": b"x", "max_chars": "many"}, "max_chars is 'many'"),
        ({"source": b"x", "memory_mb": -1}, "memory_mb is -1"),
        ({"source": b"x", "seconds": 0}, "seconds is 0"),
        ({"source": b"x", "seconds": float("inf")}, "seconds is inf"),
    ],
)
def test_wrong_arguments_are_named(memory, arguments, said):
    with pytest.raises(InvalidInput, match=said):
        memory.knowledge.ingest(**arguments)
    assert memory.knowledge.list() == []


def test_without_an_embedder_keywords_find_and_vectors_come_later(memory, folder, embedder):
    embedder.down = True
    (document,) = memory.knowledge.ingest(folder).documents
    assert document.pending == document.chunks
    assert memory.knowledge.search("penguins")[0].metadata["headings"] == ["Use"]
    embedder.down = False
    memory.remember("a write embeds what waits")
    assert memory.store.stats().pending == 0


def test_the_bundled_model_finds_a_passage_by_meaning(embedded, folder):
    embedded.knowledge.ingest(folder)
    assert embedded.knowledge.search("Which seabirds does it know?")[0].metadata["headings"] == ["Use"]


def test_a_passage_of_small_sections_is_cited_by_the_one_that_matches(memory):
    long = " ".join(f"Shifts of word {number} cost gas in the machine." for number in range(30))
    other = " ".join(f"Block {number} was mined by a pool of the valley." for number in range(60))
    text = f"# Shifts\n\n## Abstract\n\nNative opcodes.\n\n## Motivation\n\n{long}\n\n## Blocks\n\n{other}\n"
    memory.knowledge.ingest(text.encode(), name="eip.md")
    cited = {
        query: memory.knowledge.search(query, limit=1)[0].metadata["headings"]
        for query in ("Which native opcodes?", "What do shifts of word 7 cost?")
    }
    assert [*cited.values()] == [["Shifts", "Abstract"], ["Shifts", "Motivation"]]
    assert "## Shifts > Abstract (" in memory.knowledge.context("Which native opcodes?", limit=1)


def test_the_same_awaited(tmp_path, folder):
    async def use():
        async with AsyncMemory(tmp_path / "m.db", embedder="none") as memory:
            done = await memory.knowledge.ingest(folder)
            hits = await memory.knowledge.search("penguins")
            assert hits[0].metadata["document"] == done.documents[0].id
            assert "penguins" in await memory.knowledge.context("penguins")
            await memory.knowledge.delete(done.documents[0].id)
            assert await memory.knowledge.list() == []

    asyncio.run(use())


# ── out and in again ───────────────────────────────────────────────────────────────────────────────────────────────


def test_documents_survive_an_export(memory, folder, tmp_path):
    with open(folder / "notes.txt", "w") as file:
        file.write("notes of penguins")
    memory.scoped("/team").knowledge.ingest(folder, metadata={"version": "2.0"})
    memory.transfer.export(tmp_path / "all.jsonl")
    before = [(each.id, each.source, each.scope, each.metadata, each.chunks, each.created_at)
              for each in memory.knowledge.list()]  # fmt: skip
    with Memory(":memory:", embedder="none") as other:
        for _ in range(2):
            other.transfer.import_(tmp_path / "all.jsonl")
            after = [(each.id, each.source, each.scope, each.metadata, each.chunks, each.created_at)
                     for each in other.knowledge.list()]  # fmt: skip
            assert after == before
        assert other.knowledge.search("penguins")[0].metadata["document"] in {each[0] for each in before}
        assert outcomes(other.scoped("/team").knowledge.ingest(folder)) == [
            ("guide.md", "unchanged"), ("notes.txt", "unchanged"),
        ]  # fmt: skip
        other.knowledge.delete(before[0][0])
        assert len(other.knowledge.list()) == 1
        assert other.store.verify().ok


def test_an_export_of_a_choice_has_no_documents_without_their_chunks(memory, folder, tmp_path):
    memory.knowledge.ingest(folder)
    memory.remember("a memory")
    memory.transfer.export(tmp_path / "some.jsonl", kinds=["memory"])
    memory.transfer.export(tmp_path / "chosen.jsonl", where={"importance": {"gte": 0.9}})
    for name in ("some", "chosen"):
        assert '"document"' not in (tmp_path / f"{name}.jsonl").read_text()
    for fields in ({}, {"where": {}}, {"kinds": ["chunk"]}, {"where": {"kind": "chunk"}}):
        memory.transfer.export(tmp_path / "whole.jsonl", **fields)
        assert (tmp_path / "whole.jsonl").read_text().count('{"document":') == len(memory.knowledge.list())
    (tmp_path / "alone.jsonl").write_text(
        '{"document": {"id": "d", "source": "a", "content_hash": "' + "00" * 32 + '", "media_type": "m", '
        '"size_bytes": 1}}\n'
    )
    with Memory(":memory:", embedder="none") as other:
        other.transfer.import_(tmp_path / "alone.jsonl")
        assert other.knowledge.list() == []
        (tmp_path / "alone.jsonl").write_text((tmp_path / "alone.jsonl").read_text().replace("00" * 32, "zz"))
        with pytest.raises(InvalidInput, match="line 1: content_hash"):
            other.transfer.import_(tmp_path / "alone.jsonl")


def test_long_values_of_front_matter_are_not_copied_to_every_chunk(memory):
    text = f"---\nshort: yes please\nlong: {'x' * 3000}\n---\n# A\n\nwords\n"
    memory.knowledge.ingest(text.encode(), name="a.md")
    assert memory.knowledge.get("a.md").metadata == {"short": "yes please", "long": "x" * 3000}
    for chunk in memory.list(kinds=["chunk"]):
        assert (chunk.metadata["short"], "long" in chunk.metadata) == ("yes please", False)


def test_metadata_given_once_stay_when_the_bytes_change(memory, folder):
    (folder / "note.md").write_text("---\nauthor: Ada\n---\nWalnut desks cost 450 euros.")
    memory.knowledge.ingest(folder / "note.md", metadata={"category": "prices"})
    (folder / "note.md").write_text("Walnut desks cost 460 euros.")
    memory.knowledge.ingest(folder / "note.md", metadata={"year": 2026})
    (hit,) = memory.knowledge.search("walnut", where={"metadata.category": {"eq": "prices"}})
    assert (hit.metadata["year"], "460" in hit.text, "author" in hit.metadata) == (2026, True, False)


def test_a_file_that_is_gone_is_told_and_stays_until_it_is_deleted(memory, folder):
    (folder / "old.md").write_text("Old words.")
    memory.knowledge.ingest(folder)
    (folder / "old.md").unlink()
    report = memory.knowledge.ingest(folder)
    gone = [each for each in report.skipped if "is gone" in each.reason]
    assert [each.source for each in gone] == [(folder / "old.md").resolve().as_posix()]
    memory.knowledge.delete(gone[0].source)
    assert not any("is gone" in each.reason for each in memory.knowledge.ingest(folder).skipped)


@pytest.mark.parametrize("moment_s", [10_413_792_000, -3_000_000_000])
def test_a_file_of_any_time_is_ingested(memory, folder, moment_s):
    (folder / "far.md").write_text("Words of another century.")
    os.utime(folder / "far.md", (moment_s, moment_s))
    report = memory.knowledge.ingest(folder)
    assert any(each.source.endswith("far.md") and each.outcome == "created" for each in report.documents)
    assert memory.store.verify().ok


def test_what_only_front_matter_says_is_found(tmp_path):
    (tmp_path / "release.md").write_text("---\ndescription: How the shop reaches the Narvik cluster\n---\nRun make.\n")
    (tmp_path / "Ada.md").write_text("---\nworks at: Kiruna mine\nphone: 555-0199\n---\n")
    (tmp_path / "empty.md").write_text("---\ndraft:\n---\n")
    with Memory(":memory:", embedder="none") as memory:
        done = memory.knowledge.ingest(tmp_path)
        assert [(os.path.basename(each.source), each.reason) for each in done.skipped] == [
            ("empty.md", "it holds no text")
        ]
        (release,) = memory.knowledge.search("Narvik", limit=1)
        assert (release.text, release.source.lines) == ("Run make.", (4, 4))
        (ada,) = memory.knowledge.search("Kiruna", limit=1)
        assert (ada.text, ada.context, ada.source.lines) == ("works at: Kiruna mine; phone: 555-0199", "Ada", (2, 3))


_PAGE = "<html><head>{}</head><body><main><p>The ferry leaves at noon.</p></main></body></html>"


@pytest.mark.parametrize(
    ("data", "name", "day"),
    [("---\ndate: 9 July 2021\n---\nThe ferry leaves at noon.", "a.md", (2021, 7, 9)),
     (_PAGE.format('<meta property="article:published_time" content="2021-07-09T16:05:00Z">'), "a.html", (2021, 7, 9)),
     (_PAGE.format('<meta name="DC.date.issued" content="July 9, 2021">'), "a.html", (2021, 7, 9)),
     (_PAGE.format('<script type="application/ld+json">{"datePublished": "2021-07-09"}</script>'), "a.html",
      (2021, 7, 9)),
     ('<body><main><time class="entry-date" datetime="2021-07-09">Friday</time><p>The ferry leaves.</p></main></body>',
      "a.html", (2021, 7, 9)),
     ("The ferry leaves at noon.", "minutes 2021-07-09.txt", (2021, 7, 9))],
)  # fmt: skip
def test_a_document_carries_its_own_date(tmp_path, data, name, day):
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        done = memory.knowledge.ingest(data.encode(), name=name)
        assert done.documents[0].warnings == ()
        assert {chunk.created_at.date() for chunk in memory.list(kinds=["chunk"])} == {datetime(*day).date()}


def test_a_file_without_a_date_is_of_its_last_change(tmp_path):
    path = tmp_path / "ferry.txt"
    path.write_text("The ferry leaves at noon.")
    os.utime(path, (1_600_000_000, 1_600_000_000))
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.knowledge.ingest(path)
        assert memory.list(kinds=["chunk"])[0].created_at == datetime(2020, 9, 13, 12, 26, 40, tzinfo=UTC)


def test_a_date_of_a_document_that_names_no_day_is_a_warning():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        done = memory.knowledge.ingest(b"---\ndate: 02/07/2021\n---\nThe ferry leaves.", name="a.md")
        (warning,) = done.documents[0].warnings
        assert "it may be 2021-07-02 or 2021-02-07" in warning
