"""Indexing: what changed is found, only that is embedded, and the index says what the files say."""

from __future__ import annotations

import os
import shutil

import apsw
import pytest

import recallite_models
from recallite import Workspace, WorkspaceConfig
from recallite.errors import InvalidInput, StoreClosed, StoreError
from recallite.model.checks import now_us
from recallite.store.sql.services import Documents
from recallite_notes import indexing, opening
from recallite_notes.config import CacheConfig, EmbeddingConfig
from tests.raising import raises
from tests.unit.core.memory.support import WordEmbedder
from tests.unit.notes.support import (
    LONG_AGO_NS,
    chunk_ids,
    config,
    counts,
    dump,
    dump_afresh,
    index_all,
    settle,
    write,
)

SECTIONS = "# Trip\n\nWe leave at noon.\n\n## Food\n\nBread and cheese.\n\n## Beds\n\nTwo tents.\n"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "notes"


@pytest.fixture
def notes(folder):
    """Three files, a workspace on them, and an embedder that says what it was asked."""
    write(folder, "memory/trip.md", SECTIONS)
    write(folder, "memory/2026-03-21.md", "# Day\n\nWe met Ann.\n")
    write(folder, "README.md", "Nothing but a note.\n")
    with Workspace(folder, config(), embedder=WordEmbedder()) as workspace:
        yield workspace


def test_the_default_workspace_indexes_something(folder):
    """memweave's looks in a folder that nobody writes to."""
    write(folder, "note.md", "Hello there.")
    with Workspace(folder, embedder="none") as workspace:
        assert counts(workspace.index()) == (1, 1, 0, 0)
        assert [each.path for each in workspace.files()] == ["note.md"]


def test_a_folder_that_is_missing_is_made(folder):
    with Workspace(folder, embedder="none") as workspace:
        assert counts(workspace.index()) == (0, 0, 0, 0)
    assert (folder / ".recallite" / ".gitignore").read_text() == "*\n"


def test_chunks_have_their_headings_lines_and_place(notes, folder):
    notes.index()
    text = (folder / "memory/trip.md").read_text()
    chunks = [row for row in dump(notes)["chunks"] if row[0] == "memory/trip.md"]
    assert [(row[1], row[3], row[4]["headings"]) for row in chunks] == [
        (0, "Trip", ["Trip"]), (1, "Trip > Food", ["Trip", "Food"]), (2, "Trip > Beds", ["Trip", "Beds"]),
    ]  # fmt: skip
    for _, _, said, _, metadata, *_ in chunks:
        start, end = metadata["chars"]
        assert text[start:end] == said
        first, last = metadata["lines"]
        assert said.splitlines() == text.splitlines()[first - 1 : last]
        assert metadata["path"] == "memory/trip.md"
        assert metadata["title"] == "Trip"


def test_front_matter_becomes_metadata_and_title(notes, folder):
    write(folder, "fm.md", "---\ntitle: Plans\nowner: Ann\npath: not this\n---\n# Now\n\nGo.\n")
    notes.index()
    (row,) = [row for row in dump(notes)["chunks"] if row[0] == "fm.md"]
    assert row[3] == "Plans > Now (owner: Ann; path: not this)"
    assert {"title": "Plans", "owner": "Ann", "path": "fm.md"}.items() <= row[4].items()


def test_a_second_index_reads_nothing(notes, folder, monkeypatch):
    notes.index()
    # Files just written are looked at once more; from then on their stat is past doubt.
    for file in folder.rglob("*.md"):
        os.utime(file, ns=(LONG_AGO_NS, LONG_AGO_NS))
    monkeypatch.setattr("recallite_notes.indexing.now_us", lambda: now_us() + 10_000_000)
    notes.index()
    monkeypatch.setattr("recallite_notes.indexing.read_file", lambda file: pytest.fail(f"{file.path} was read"))
    asked = len(notes._index.spec.texts)
    result = notes.index()
    assert counts(result) == (3, 0, 0, 0)
    assert (result.files_skipped, result.chunks_created, result.problems) == (3, 0, ())
    assert len(notes._index.spec.texts) == asked


def test_one_changed_section_embeds_one_chunk(notes, folder):
    notes.index()
    before, asked = chunk_ids(notes), len(notes._index.spec.texts)
    write(folder, "memory/trip.md", SECTIONS.replace("cheese", "apples").replace("# Trip", "\n\n# Trip"))
    result = notes.index()
    assert (result.files_indexed, result.chunks_created, result.chunks_kept) == (1, 1, 2)
    assert (result.embeddings_computed, len(notes._index.spec.texts) - asked) == (1, 1)
    after = chunk_ids(notes)
    assert {place for place in before if before[place] == after[place]} == set(before) - {("memory/trip.md", 1)}


def test_a_renamed_file_keeps_ids_and_embeddings(notes, folder):
    notes.index()
    before, asked = chunk_ids(notes), len(notes._index.spec.texts)
    (folder / "memory/old").mkdir()
    (folder / "memory/trip.md").rename(folder / "memory/old/journey.md")
    result = notes.index()
    assert counts(result) == (3, 0, 0, 1)
    assert len(notes._index.spec.texts) == asked
    after = chunk_ids(notes)
    assert {after["memory/old/journey.md", each] for each in range(3)} == {
        before["memory/trip.md", each] for each in range(3)
    }
    assert ("memory/trip.md", 0) not in after


def test_a_renamed_folder_keeps_everything(notes, folder):
    notes.index()
    before, asked = chunk_ids(notes), len(notes._index.spec.texts)
    (folder / "memory").rename(folder / "Memory")
    assert notes.index().files_renamed == 2
    assert len(notes._index.spec.texts) == asked
    assert sorted(chunk_ids(notes).values()) == sorted(before.values())


def test_two_files_that_change_places_say_what_they_say(notes, folder, tmp_path):
    notes.index()
    (folder / "memory/trip.md").rename(folder / "swap")
    (folder / "README.md").rename(folder / "memory/trip.md")
    (folder / "swap").rename(folder / "README.md")
    notes.index()
    assert dump(notes) == dump_afresh(folder, tmp_path, WordEmbedder())


def test_a_copy_of_a_file_is_a_file_of_its_own(notes, folder):
    notes.index()
    write(folder, "copy.md", SECTIONS)
    result = notes.index()
    assert (result.files_renamed, result.chunks_created, result.embeddings_cached) == (0, 3, 3)


def test_deleted_files_leave_nothing_behind(notes, folder, tmp_path):
    """memweave keeps the vectors of deleted chunks."""
    notes.index()
    (folder / "memory/trip.md").unlink()
    assert counts(notes.index()) == (2, 0, 1, 0)
    assert dump(notes) == dump_afresh(folder, tmp_path, WordEmbedder())


def test_an_emptied_file_has_no_chunks(notes, folder):
    notes.index()
    write(folder, "README.md", "")
    assert notes.index().files_indexed == 1
    assert {each.path: each.chunks for each in notes.files()}["README.md"] == 0


def test_an_edit_of_the_same_size_that_keeps_the_time_is_seen(notes, folder, monkeypatch):
    file = folder / "README.md"
    os.utime(file, ns=(LONG_AGO_NS, LONG_AGO_NS))
    notes.index()
    file.write_text("Nothing but a vote.\n")
    os.utime(file, ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert counts(notes.index()) == (3, 1, 0, 0)


def test_a_file_that_is_touched_keeps_its_chunks_and_takes_the_new_time(notes, folder, tmp_path):
    notes.index()
    asked = len(notes._index.spec.texts)
    os.utime(folder / "README.md", ns=(LONG_AGO_NS, LONG_AGO_NS))
    result = notes.index()
    assert (result.files_indexed, result.chunks_created, len(notes._index.spec.texts)) == (0, 0, asked)
    assert dump(notes) == dump_afresh(folder, tmp_path, WordEmbedder())
    assert {each.path: each.mtime for each in notes.files()}["README.md"] == LONG_AGO_NS / 1e9


def test_other_sizes_of_chunks_cut_again(folder, tmp_path):
    write(folder, "long.md", "\n\n".join(f"Paragraph {each} of a long text." for each in range(60)))
    index_all(folder, chunking={"tokens": 400})
    result = index_all(folder, chunking={"tokens": 50, "overlap": 0})
    assert result.files_indexed == 1
    with Workspace(folder, config(chunking={"tokens": 50, "overlap": 0}), embedder="none") as workspace:
        assert dump(workspace) == dump_afresh(folder, tmp_path, "none", chunking={"tokens": 50, "overlap": 0})


def test_force_reads_everything_and_keeps_what_says_the_same(notes):
    notes.index()
    before, asked = chunk_ids(notes), len(notes._index.spec.texts)
    result = notes.index(force=True)
    assert (result.files_indexed, result.files_skipped) == (3, 0)
    assert (chunk_ids(notes), len(notes._index.spec.texts)) == (before, asked)


def test_a_file_is_as_much_work_in_a_large_folder_as_in_a_small_one(folder, monkeypatch):
    """Indexing slows quadratically in memweave: 4,000 files take 93 s."""
    monkeypatch.setattr("recallite_notes.indexing._RACY_NS", 0)

    def steps_for_more(workspace, name):
        for each in range(40):
            write(folder, f"{name}{each}.md", f"# Note {each}\n\nText {each} of {name}.\n")
        steps = []

        def count(told):
            if "'main'." not in told["sql"]:  # FTS5's own statements count on from the time the file was opened
                steps.append(told["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

        writer = workspace._index.engine().store._writer.connection
        writer.trace_v2(apsw.SQLITE_TRACE_PROFILE, count)
        workspace.index()
        writer.trace_v2(0, None)
        return sum(steps)

    with Workspace(folder, config(), embedder="none") as workspace:
        steps_for_more(workspace, "first")
        few = steps_for_more(workspace, "few")
        for each in range(600):
            write(folder, f"memory/more{each}.md", f"# Note {each}\n\nText {each} of many.\n")
        workspace.index()
        many = steps_for_more(workspace, "many")
    assert few > 10_000
    assert many < 1.3 * few


def test_progress_counts_the_files_to_read(notes, folder):
    told = []
    notes.index(on_progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_later_file_is_found_by_add_alone(notes, folder):
    notes.index()
    file = write(folder, "memory/new.md", "# New\n\nSomething new.\n")
    write(folder, "memory/other.md", "Not this.")
    for path in (file, "memory/new.md"):
        assert notes.add(path).files_scanned == 1
    assert "memory/new.md" in [each.path for each in notes.files()]
    assert "memory/other.md" not in [each.path for each in notes.files()]
    assert notes.add(file).files_indexed == 0
    assert notes.add(file, force=True).files_indexed == 1


# ── the embedder ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("back", ["the same", "reopened"])
def test_text_indexed_while_the_embedder_is_down_is_embedded_later(folder, tmp_path, back):
    """memweave never embeds it."""
    write(folder, "memory/trip.md", SECTIONS)
    embedder = WordEmbedder()
    embedder.fail = "raises"
    with Workspace(folder, config(), embedder=embedder) as workspace:
        result = workspace.index()
        assert (result.files_indexed, result.chunks_created, result.pending) == (1, 3, 3)
        assert "the embedder is down" in result.embedder_problem
        status = workspace.status()
        assert status.pending == 3
        if back == "the same":
            embedder.fail = None
            result = workspace.index()
            assert (result.embeddings_computed, result.pending, result.embedder_problem) == (3, 0, None)
    embedder.fail = None
    with Workspace(folder, config(), embedder=embedder) as workspace:
        workspace._config = WorkspaceConfig.from_dict({**workspace._config.to_dict(), "sync": {}})
        workspace._sync_if_due()
        assert workspace.status().pending == 0
        assert dump(workspace) == dump_afresh(folder, tmp_path, WordEmbedder())


class Flaky(WordEmbedder):
    """Counts how often it is asked; `refuse` says which requests fail."""

    def __init__(self, refuse):
        super().__init__("flaky")
        self.asked = 0
        self.refuse = refuse

    def embed(self, texts):
        self.asked += 1
        if self.refuse(texts):
            raise RuntimeError("the embedder is down")
        return super().embed(texts)


def test_an_embedder_that_is_down_is_not_asked_for_every_batch(folder):
    """An endpoint that does not answer lets each request wait for its time-out."""
    for each in range(300):
        write(folder, f"n{each}.md", f"Text number {each}.")
    embedder = Flaky(lambda texts: True)
    with Workspace(folder, config(), embedder=embedder) as workspace:
        result = workspace.index()
        assert (result.files_indexed, result.pending, embedder.asked) == (300, 300, 2)
        assert "the embedder is down" in result.embedder_problem
        workspace.index()
        assert embedder.asked == 4  # for what waits, and for a plain word


def test_searches_do_not_each_wait_for_an_embedder_that_takes_long_to_fail(folder, monkeypatch):
    write(folder, "a.md", "A text.")
    embedder = Flaky(lambda texts: True)
    with Workspace(folder, embedder=embedder) as workspace:
        workspace.index()
        for _ in range(3):
            workspace._sync_if_due()
        asked = embedder.asked  # it fails at once: there is no reason not to ask
        assert asked > 3
        monkeypatch.setattr("recallite_notes.workspace._LONG_SECONDS", 0.0)
        monkeypatch.setattr("recallite_notes.workspace._PATIENCE", 1e9)
        for _ in range(3):
            workspace._sync_if_due()
        assert embedder.asked <= asked + 2
        embedder.refuse = lambda texts: False
        assert workspace.index().pending == 0


def test_a_text_that_the_embedder_refuses_keeps_others_from_nothing(folder):
    for each in range(300):
        write(folder, f"n{each:03}.md", f"Text number {each}.")
    embedder = Flaky(lambda texts: any(f"number {each}." in text for text in texts for each in (0, 150, 151)))
    with Workspace(folder, config(), embedder=embedder) as workspace:
        workspace.index()
        result = workspace.index()
        assert result.pending == 3
        assert "the embedder is down" in result.embedder_problem
        asked = embedder.asked
        workspace.index()
        assert embedder.asked <= asked + 8
        embedder.refuse = lambda texts: False
        result = workspace.index()
        assert (result.pending, result.embeddings_computed, result.embedder_problem) == (0, 3, None)


def test_a_model_folder_that_is_missing_leaves_keywords(folder, tmp_path):
    write(folder, "memory/trip.md", SECTIONS)
    missing = str(tmp_path / "no" / "model")
    result = index_all(folder, missing)
    assert (result.chunks_created, result.pending) == (3, 3)
    assert "is no folder" in result.embedder_problem
    with Workspace(folder, config(), embedder=missing) as workspace:
        status = workspace.status()
    assert (status.search_mode, status.pending, status.vector_available) == ("fts-only", 3, False)
    assert "is no folder" in status.embedder_problem
    bundled = recallite_models.path().with_suffix(".onnx")
    shutil.copytree(bundled.parent, missing)
    shutil.copy(bundled, f"{missing}/model.onnx")
    result = index_all(folder, missing)
    assert (result.pending, result.embeddings_computed, result.embedder_problem) == (0, 3, None)


def test_a_swapped_embedder_never_uses_the_old_ones_vectors(folder, tmp_path):
    """memweave goes on with the old vectors."""
    write(folder, "memory/trip.md", SECTIONS)
    index_all(folder, WordEmbedder())
    other = WordEmbedder("other", 24)
    result = index_all(folder, other)
    assert (result.embeddings_computed, result.pending, len(other.texts)) == (3, 0, 3)
    with Workspace(folder, config(), embedder=other) as workspace:
        assert dump(workspace) == dump_afresh(folder, tmp_path, other)


def test_a_swapped_embedder_is_noticed_though_no_file_changed(folder):
    """Under the same name, and by the handle that is open."""
    write(folder, "memory/trip.md", SECTIONS)
    embedder = WordEmbedder()
    with Workspace(folder, config(), embedder=embedder) as workspace:
        workspace.index()
    again = WordEmbedder()
    again.fingerprint = "words, trained anew"
    with Workspace(folder, config(), embedder=again) as workspace:
        result = workspace.index()
        assert (result.embeddings_computed, result.pending) == (3, 0)
        again.fingerprint = "and once more"
        assert workspace.index().embeddings_computed == 3


def test_a_swapped_embedder_that_fails_leaves_everything_found_by_keyword(folder):
    write(folder, "memory/trip.md", SECTIONS)
    index_all(folder, WordEmbedder())
    other = WordEmbedder("other")
    other.fail = "raises"
    write(folder, "memory/new.md", "A new thing.")
    result = index_all(folder, other)
    assert (result.files_indexed, result.chunks_kept, result.pending) == (1, 3, 4)


def test_a_run_that_is_stopped_loses_no_vectors(folder):
    """A cancelled re-index of memweave has lost all vectors."""
    for each in range(200):
        write(folder, f"memory/n{each}.md", f"# Note {each}\n\nText number {each} says so.\n")
    embedder = WordEmbedder()

    class Stop(Exception):
        pass

    def stop(done, total):
        if done >= 130:
            raise Stop

    with Workspace(folder, config(), embedder=embedder) as workspace:
        with pytest.raises(Stop):
            workspace.index(on_progress=stop)
        asked = len(embedder.texts)
        assert len(workspace.files()) >= 129
        workspace.index()
        assert len(embedder.texts) == 200 <= asked + 100
        with pytest.raises(Stop):
            workspace.index(force=True, on_progress=stop)
        workspace.index()
        assert len(embedder.texts) == 200
        assert workspace.status().pending == 0


def test_the_embedding_cache_is_bounded_and_truly_least_recently_used(folder):
    embedder = WordEmbedder()
    cached = config(cache={"max_entries": 4})
    for each in range(4):
        write(folder, f"n{each}.md", f"Text number {each}.")
    with Workspace(folder, cached, embedder=embedder) as workspace:
        workspace.index()
        (folder / "n0.md").unlink()
        workspace.index()
        write(folder, "again.md", "Text number 0.")  # used now: the least recently used is n1's
        assert workspace.index().embeddings_cached == 1
        write(folder, "more.md", "Another text.")
        workspace.index()
        assert workspace.status().cache_entries == 4
        (folder / "n1.md").unlink()
        (folder / "again.md").unlink()
        workspace.index()
        write(folder, "zero.md", "Text number 0.")
        write(folder, "one.md", "Text number 1.")
        result = workspace.index()
        assert (result.embeddings_cached, result.embeddings_computed) == (1, 1)


def test_without_a_cache_nothing_is_kept(folder):
    write(folder, "a.md", "A text.")
    with Workspace(folder, config(cache={"enabled": False}), embedder=WordEmbedder()) as workspace:
        workspace.index()
        assert workspace.status().cache_entries == 0


def test_keyword_strategy_embeds_nothing_and_waits_for_nothing(folder):
    write(folder, "a.md", "A text.")
    with Workspace(folder, config(query={"strategy": "keyword"})) as workspace:
        result = workspace.index()
        status = workspace.status()
    assert (result.embeddings_computed, result.pending) == (0, 0)
    assert (status.search_mode, status.provider, status.pending) == ("fts-only", "none", 0)


def test_vectors_come_once_they_are_wanted(folder, tmp_path):
    write(folder, "a.md", "A text.")
    index_all(folder, "none")
    assert index_all(folder, WordEmbedder()).embeddings_computed == 1
    with Workspace(folder, config(), embedder=WordEmbedder()) as workspace:
        assert dump(workspace) == dump_afresh(folder, tmp_path, WordEmbedder())


def test_the_bundled_model_embeds_by_default(folder, monkeypatch):
    monkeypatch.delenv("RECALLITE_EMBEDDER", raising=False)
    monkeypatch.delenv("EMBEDDING_PROVIDER", raising=False)
    write(folder, "a.md", "The cat sat on the mat.")
    with Workspace(folder) as workspace:
        assert workspace.index().embeddings_computed == 1
        status = workspace.status()
    assert (status.search_mode, status.provider, status.model) == ("hybrid", "local", "recallite-minilm")


def test_models_over_http_are_named_as_in_the_seed(folder, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("EMBEDDING_API_KEY", raising=False)

    def spec(**fields):
        with Workspace(folder, WorkspaceConfig(embedding=EmbeddingConfig(**fields))) as workspace:
            return workspace._index.spec

    ollama = spec(model="ollama/nomic-embed-text", api_base="http://localhost:11434", batch_size=7, timeout=5.0)
    assert (ollama.base_url, ollama.model) == ("http://localhost:11434/v1", "nomic-embed-text")
    assert (ollama.batch_size, ollama.timeout_seconds, ollama.api_key) == (7, 5.0, None)
    openai = spec(model="text-embedding-3-small", api_key="sk-1")
    assert (openai.base_url, openai.model) == ("https://api.openai.com/v1", "text-embedding-3-small")
    own = spec(model="BAAI/bge-small-en", api_base="http://10.0.0.1/v1")
    assert (own.base_url, own.model) == ("http://10.0.0.1/v1", "BAAI/bge-small-en")
    assert spec(model="instant") == "instant"
    with pytest.raises(InvalidInput, match="there is no key"):
        spec(model="text-embedding-3-small")
    with pytest.raises(InvalidInput, match="is not known: use one of default"):
        spec(model="acme/voyage-3")


# ── the index file ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_deleted_index_is_made_afresh(notes, folder):
    notes.index()
    said = dump(notes)
    for each in (folder / ".recallite").iterdir():
        each.unlink()
    assert counts(notes.index()) == (3, 3, 0, 0)
    assert dump(notes) == said
    notes.close()
    for each in (folder / ".recallite").iterdir():
        each.unlink()
    (folder / ".recallite").rmdir()
    assert index_all(folder).files_indexed == 3


@pytest.mark.parametrize("damage", ["garbage", "empty", "half", "a page"])
def test_a_damaged_index_is_made_afresh(folder, damage):
    for each in range(40):
        write(folder, f"n{each}.md", f"# Note {each}\n\n" + "Some text of a note. " * 40)
    index_all(folder, WordEmbedder())
    file = folder / ".recallite" / "index.db"
    data = bytearray(file.read_bytes())
    match damage:
        case "garbage":
            file.write_bytes(b"not a database at all, " * 500)
        case "empty":
            file.write_bytes(b"")
        case "half":
            file.write_bytes(data[: len(data) // 2])
        case "a page":
            for page in range(1, len(data) // 4096):
                data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
            file.write_bytes(data)
    result = index_all(folder, WordEmbedder())
    assert (result.files_indexed, result.pending) == (40, 0)
    with Workspace(folder, config(), embedder=WordEmbedder()) as workspace:
        assert len(dump(workspace)["chunks"]) == 40


def test_an_index_that_vanishes_with_its_folder_is_made_afresh_while_open(notes, folder):
    notes.index()
    said = dump(notes)
    shutil.rmtree(folder / ".recallite")
    assert len(notes.search("cheese", min_score=0.0)) == 0
    assert notes.index().files_indexed == 3
    assert dump(notes) == said


def test_an_index_that_is_damaged_while_open_is_made_afresh(folder):
    for each in range(40):
        write(folder, f"n{each}.md", f"# Note {each}\n\n" + "Some text of a note. " * 40)
    with Workspace(folder, config(), embedder=WordEmbedder()) as workspace:
        workspace.index()
        said = dump(workspace)
        connection = workspace._index.engine().store._writer.connection
        connection.pragma("writable_schema", True)
        with workspace._index.engine().store.atomic() as writer:
            writer.connection.execute("UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'document'")
        connection.pragma("writable_schema", False)
        connection.pragma("schema_version", 999)
        write(folder, "new.md", "New.")
        assert workspace.index().files_indexed in (1, 41)
        (folder / "new.md").unlink()
        workspace.index()
        assert dump(workspace) == said


def test_a_folder_that_cannot_be_written_names_the_way_out(folder, tmp_path, monkeypatch):
    write(folder, "a.md", "A text.")

    def refuse(path, mode):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as denied:
        denied.setattr(opening, "open", refuse, raising=False)
        with raises(StoreError, "read_only", match="db_path"):
            Workspace(folder, config(), embedder="none")
    with Workspace(folder, config(db_path=str(tmp_path / "elsewhere" / "i.db")), embedder="none") as workspace:
        assert workspace.index().files_indexed == 1
    assert not (tmp_path / "elsewhere" / ".gitignore").exists()


def test_another_programs_file_is_not_deleted(folder, tmp_path):
    write(folder, "a.md", "A text.")
    foreign = tmp_path / "letters.db"
    foreign.write_text("a letter, not an index " * 100)
    with (
        Workspace(folder, config(db_path=str(foreign)), embedder="none") as workspace,
        pytest.raises(Exception) as said,
    ):
        workspace.index()
    assert type(said.value).__name__ == "NotADatabase"
    assert foreign.read_text().startswith("a letter")


def test_a_closed_workspace_says_so(notes):
    notes.index()
    notes.close()
    notes.close()
    for verb in (notes.index, notes.files, notes.status, notes.start_watching):
        with pytest.raises(StoreClosed, match="was closed"):
            verb()


def test_status_says_whether_files_changed(notes, folder):
    assert notes.status().dirty
    notes.index()
    assert not notes.status().dirty
    write(folder, "memory/new.md", "New.")
    assert notes.status().dirty
    notes.index()
    status = notes.status()
    assert (status.files, status.chunks, status.dirty, status.watcher_active) == (4, 6, False, False)
    assert (status.provider, status.model, status.cache_entries) == ("custom", "words", 6)
    (folder / "memory/new.md").unlink()
    assert notes.status().dirty


def test_files_tell_labels_and_what_is_evergreen(notes):
    notes.index()
    assert [(each.path, each.source, each.is_evergreen, each.chunks) for each in notes.files()] == [
        ("README.md", "external", False, 1),
        ("memory/2026-03-21.md", "memory", False, 1),
        ("memory/trip.md", "memory", True, 3),
    ]
    assert all(len(each.hash) == 64 and each.size for each in notes.files())


def test_a_configuration_may_stand_alone_and_stays_where_it_was(folder, tmp_path, monkeypatch):
    write(folder, "a.md", "A text.")
    monkeypatch.chdir(tmp_path)
    with Workspace(
        WorkspaceConfig(workspace_dir="notes", cache=CacheConfig(enabled=False)), embedder="none"
    ) as workspace:
        monkeypatch.chdir("/")
        assert workspace.index().files_indexed == 1
        assert workspace.folder == folder
    with pytest.raises(InvalidInput, match="two configurations"):
        Workspace(WorkspaceConfig(), WorkspaceConfig())
    with pytest.raises(InvalidInput, match="is a file"):
        Workspace(folder / "a.md")


def test_an_equal_look_at_settled_files_reads_nothing_of_the_index(folder, monkeypatch):
    """Until files, the index or how they are cut change: then everything is compared again."""
    for name in ("alpha", "bravo"):
        write(folder, f"{name[0]}.md", f"Text {name}.")
    settle(folder)
    # Else files are past doubt two seconds after a change.
    monkeypatch.setattr("recallite_notes.indexing._RACY_NS", -(10**10))
    compared = []
    find_many = Documents.find_many
    monkeypatch.setattr(Documents, "find_many", lambda *given: compared.append(1) or find_many(*given))

    def compares(workspace):
        compared.clear()
        result = workspace.index()
        assert result.files_scanned == len(list(folder.glob("*.md")))
        return len(compared)

    with Workspace(folder, config(), embedder="none") as workspace:
        assert [compares(workspace) for _ in range(2)] == [1, 1]  # the first run changed the index
        assert [compares(workspace) for _ in range(3)] == [0, 0, 0]
        write(folder, "c.md", "Text c.")
        assert compares(workspace) == 1
        assert len(workspace.files()) == 3
        (folder / "c.md").unlink()
        assert compares(workspace) == 1
        assert [compares(workspace) for _ in range(2)] == [1, 0]
        (folder / "a.md").write_text("Text gamma.")
        os.utime(folder / "a.md", ns=(LONG_AGO_NS, LONG_AGO_NS))  # the same size and time
        assert compares(workspace) == 1
        (folder / "a.md").write_text("Text gamma delta.")
        workspace.index()
        assert len(workspace.search("delta", min_score=0.0)) == 1
        assert [compares(workspace) for _ in range(2)] == [1, 0]
        with Workspace(folder, config(), embedder="none") as other:
            other._with_engine(lambda engine: indexing.delete_documents(engine, "/", ["b.md"]), writing=True)
        assert compares(workspace) == 1  # another process has changed the index
        assert len(workspace.search("bravo", min_score=0.0)) == 1
        shutil.rmtree(folder / ".recallite")
        assert compares(workspace) == 1
        assert len(workspace.files()) == 2


def test_settled_files_need_no_second_reading(notes, folder):
    settle(folder)
    notes.index()
    assert notes.index().files_skipped == 3
