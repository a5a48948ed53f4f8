"""An embedder that fails loses nothing; another embedder's vectors are never mixed in; reembed can be resumed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.embedding import Embedded
from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput
from recallite.model.records import NewRecord
from recallite.remember import pending
from tests.limits import LAST_RESORT_SECONDS
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, Foreign, WordEmbedder, raw, state, unit

FAILURES = ["raises", "NaN", "zero", "shape", "rows"]


@pytest.mark.parametrize("fail", FAILURES)
def test_a_memory_whose_embedding_failed_is_kept_found_by_keyword_and_embedded_later(path, fail):
    embedder = WordEmbedder()
    with Memory(path, embedder=embedder) as memory:
        embedder.fail = fail
        stored = memory.remember("the striped zebra")
        many = memory.remember_many(["a tall giraffe", "a grey elephant"])
        assert stored.embedding_state == "pending"
        assert memory.store.stats().pending == 3
        hits = memory.recall("zebra")
        assert [hit.id for hit in hits] == [stored.id]
        assert memory.store.verify().problems == ()
        embedder.fail = None
        memory.remember("the embedder is back")
        assert memory.store.stats().pending == 0
        assert {memory.get(each).embedding_state for each in [stored.id, *many]} == {"embedded"}
        found = memory.recall("tall giraffe", mode="vector", limit=1)[0]
        assert (found.id, found.signals["cosine"] > 0.7) == (many[0], True)


@pytest.mark.parametrize("fail", FAILURES)
def test_a_query_that_cannot_be_embedded_falls_back_to_words_and_says_so(fail):
    embedder = WordEmbedder()
    with Memory(":memory:", embedder=embedder) as memory:
        stored = memory.remember("the striped zebra")
        memory.remember("something else")
        embedder.fail = fail
        hits = memory.recall("zebra")
        assert [hit.id for hit in hits] == [stored.id]
        assert any("meaning was not searched" in gap for gap in hits.evidence_gaps)
        with pytest.raises(EmbedderError):
            memory.recall("another zebra", mode="vector")


@pytest.mark.parametrize("fail", FAILURES)
def test_an_update_whose_embedding_failed_is_kept(fail):
    embedder = WordEmbedder()
    with Memory(":memory:", embedder=embedder) as memory:
        stored = memory.remember("the first text")
        embedder.fail = fail
        changed = memory.update(stored.id, text="the second wording")
        assert (changed.text, changed.embedding_state) == ("the second wording", "pending")
        assert [hit.text for hit in memory.recall("wording")] == ["the second wording"]
        embedder.fail = None
        memory.store.rebuild()
        assert memory.get(stored.id).embedding_state == "embedded"
        assert [version.text for version in memory.history(stored.id)] == ["the first text", "the second wording"]


def test_what_waits_is_embedded_after_a_recall_but_not_by_another_embedder(path):
    embedder = WordEmbedder()
    with Memory(path, embedder=embedder) as memory:
        memory.remember("embedded at once")
        embedder.fail = "raises"
        memory.remember_many([f"waiting number{number}" for number in range(10)])
    for other, waiting in (("none", 10), ("instant", 10), (WordEmbedder(), 0)):
        with Memory(path, embedder=other) as memory:
            memory.recall("waiting number7", mode="keyword")
            assert memory._engine.embedding.wait(LAST_RESORT_SECONDS)
            assert memory.store.stats().pending == waiting


def test_what_waits_is_embedded_when_the_file_is_opened_with_a_working_embedder(path):
    embedder = WordEmbedder()
    with Memory(path, embedder=embedder) as memory:
        memory.remember("embedded at once")
        embedder.fail = "raises"
        memory.remember_many([f"waiting number{number}" for number in range(10)])
    with Memory(path, embedder=WordEmbedder()) as memory:
        memory.remember("one more")
        assert memory.store.stats().pending == 0
        assert memory.recall("waiting number7", mode="vector", limit=1)[0].text == "waiting number7"


class Misfit(WordEmbedder):
    """Embeds documents itself, and gets something wrong."""

    def __init__(self, wrong: str) -> None:
        super().__init__()
        self.wrong = wrong

    def embed_documents(self, texts, contexts, on_progress=None):
        vectors = self.embed(list(texts))
        owners = np.arange(len(texts), dtype=np.int64)
        match self.wrong:
            case "width":
                vectors = np.hstack([vectors, vectors[:, :1]])
            case "none":
                vectors, owners = vectors[:0], owners[:0]
            case "owners":
                owners = owners + 5
            case "disorder":
                owners = owners[::-1]
            case "lengths":
                owners = np.append(owners, len(texts) - 1)
            case "NaN":
                vectors[0, 0] = np.nan
            case "dtype":
                vectors = vectors.astype(np.float64)
            case "list":
                return [vectors]
            case "raises":
                raise OSError("no such device")
        return Embedded(vectors, owners)


@pytest.mark.parametrize("wrong", ["width", "none", "owners", "disorder", "lengths", "NaN", "list", "raises"])
def test_what_an_embedder_returns_is_checked_before_it_is_stored(path, wrong):
    with Memory(path, embedder=Misfit(wrong)) as memory:
        ids = memory.remember_many(["the zebra", "the giraffe"])
        assert memory.store.stats().vectors == 0
        assert memory.store.verify().problems == ()
        assert [hit.id for hit in memory.recall("giraffe", mode="keyword")] == [ids[1]]


def test_float64_from_an_embedder_is_taken(path):
    with Memory(path, embedder=Misfit("dtype")) as memory:
        memory.remember("the zebra")
        assert memory.store.verify().problems == ()
        assert memory.store.stats().vectors == 1


def test_a_base_exception_of_the_embedder_stores_nothing(path):
    class Interrupted(WordEmbedder):
        def embed(self, texts):
            raise KeyboardInterrupt

    with Memory(path, embedder=Interrupted()) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.remember("x")
        assert memory.count() == 0


def test_no_transaction_is_open_while_embedding(path):
    """Another process could not write for as long as a slow model takes."""

    class Watching(WordEmbedder):
        memory: Memory | None = None

        def embed(self, texts):
            if self.memory is not None:
                with Memory(path, settings=Settings(embedder="none", busy_timeout_ms=0)) as other:
                    other.link(*self.linked)
            return super().embed(texts)

    embedder = Watching()
    with Memory(path, embedder=embedder) as memory:
        embedder.linked = tuple(memory.remember_many(["one", "two"]))
        embedder.memory = memory
        memory.remember("three")
        memory.remember_many(["four", "five"])
        memory.update(embedder.linked[0], text="changed")
        memory.recall("an unseen query")
        assert memory.count() == 5


@pytest.mark.parametrize("other", [WordEmbedder("other"), WordEmbedder("words", 24)], ids=lambda each: each.fingerprint)
def test_another_embedder_is_refused_by_name_with_the_remedy(path, other):
    with Memory(path, embedder=WordEmbedder()) as memory:
        stored = memory.remember("the zebra")
    with Memory(path, embedder=other) as memory:
        before = state(memory)
        for use in (
            lambda: memory.remember("x"),
            lambda: memory.remember_many(["x"]),
            lambda: memory.update(stored.id, text="x"),
            lambda: memory.recall("zebra"),
            lambda: memory.recall("zebra", mode="vector"),
        ):
            with pytest.raises(EmbedderMismatch) as raised:
                use()
            said = str(raised.value)
            assert all(part in said for part in ("words (16", f"{other.name} ({other.dimension}", "reembed")), said
        assert state(memory) == before
        assert [hit.id for hit in memory.recall("zebra", mode="keyword")] == [stored.id]
        assert memory.get(stored.id).text == "the zebra"


def test_given_vectors_keep_their_dimension(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember(NewRecord("one", vector=unit(1, 16)))
        before = state(memory)
        with pytest.raises(InvalidInput, match=r"\(24,\).*\(16,\)"):
            memory.remember(NewRecord("two", vector=unit(2, 24)))
        assert state(memory) == before
        memory.remember("no vector")
        assert memory.count() == 2


@pytest.mark.parametrize("at_once", [False, True])
def test_a_store_without_vectors_takes_given_ones_of_another_dimension(path, at_once):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("no vector")
        ids = [memory.remember(NewRecord(f"flat {n}", vector=unit(n, 16))).id for n in range(2)]
        memory.update(ids[0], text="changed")
        memory.forget(ids[0])
        deep = NewRecord("deep", vector=unit(2, 24))
        with pytest.raises(InvalidInput, match=r"\(24,\).*\(16,\)"):
            memory.remember(deep)
        memory.forget(ids[1])
        if at_once:
            memory.remember_many([deep, NewRecord("deeper", vector=unit(3, 24))])
        else:
            memory.remember(deep)
        assert memory.recall("", vector=unit(2, 24), mode="vector")[0].text == "deep"
        assert memory.store.stats().dimension == 24
        with pytest.raises(InvalidInput, match=r"\(16,\).*\(24,\)"):
            memory.remember(NewRecord("flat", vector=unit(1, 16)))
        assert memory.store.verify().problems == ()


def test_reembed_moves_to_another_embedder(path):
    with Memory(path, embedder=WordEmbedder()) as memory:
        ids = memory.remember_many([f"word{number} common" for number in range(20)])
        memory.update(ids[0], text="changed common")
        memory.link(ids[0], ids[1])
    told = []
    with Memory(path, embedder=WordEmbedder("other", 24)) as memory:
        assert memory.store.reembed(on_progress=lambda done, total: told.append((done, total))) == 21
        assert told[-1] == (21, 21)
        figures = memory.store.stats()
        assert (figures.embedder, figures.dimension, figures.vectors, figures.pending) == ("other", 24, 21, 0)
        assert memory.recall("word7", mode="vector", limit=1)[0].id == ids[7]
        assert memory.store.verify().problems == ()
        assert memory.store.reembed() == 0
        memory.remember("written after")
        assert len(memory.history(ids[0])) == 2


def test_vectors_that_an_interrupted_reembed_has_left_harm_nothing_and_go_with_the_next(path, monkeypatch):
    with Memory(path, embedder=WordEmbedder("old")) as memory:
        memory.remember_many([f"Jar {number} of plums" for number in range(20)])
    with Memory(path, embedder=WordEmbedder("new")) as memory:
        with monkeypatch.context() as interrupted:
            interrupted.setattr(pending, "_drop_others", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                memory.store.reembed()
        assert memory.recall("Jar 7 of plums")[0].text == "Jar 7 of plums"
        memory.remember("Jar 20 of plums")
        assert memory.store.verify().problems == ()
        assert memory.store.reembed() == 0
    with raw(path) as file:
        assert file.execute("SELECT name, active FROM embedder").fetchall() == [("new", 1)]


def test_reembed_gives_vectors_to_what_was_stored_without(path):
    with Memory(path, settings=PLAIN) as memory:
        ids = memory.remember_many(["the zebra", "the giraffe"])
    with Memory(path, embedder=WordEmbedder()) as memory:
        assert memory.store.reembed() == 2
        assert memory.recall("the zebra", mode="vector", limit=1)[0].id == ids[0]


def test_reembed_without_an_embedder_is_refused(memory):
    memory.remember("x")
    with raises(EmbedderError, "missing"):
        memory.store.reembed()


@pytest.mark.parametrize("dimension", [16, 24])
def test_a_recall_that_a_reembed_overtakes_never_mixes_two_models(path, dimension):
    """The query was embedded before the switch; its vector means nothing to the new index."""

    class Overtaken(WordEmbedder):
        armed = False

        def embed(self, texts):
            if self.armed:
                self.armed = False
                with Memory(path, embedder=WordEmbedder("other", dimension)) as mover:
                    mover.store.reembed()
            return super().embed(texts)

    embedder = Overtaken()
    with Memory(path, embedder=embedder) as memory:
        memory.remember_many(["the zebra", "the giraffe"])
        embedder.armed = True
        with pytest.raises(EmbedderMismatch, match="other"):
            memory.recall("zebra")
    with Memory(path, embedder=WordEmbedder("other", dimension)) as memory:
        assert memory.store.verify().problems == ()


@pytest.mark.parametrize("dimension", [16, 24])
def test_a_write_that_a_reembed_overtakes_is_refused_whole(path, dimension):
    class Overtaken(WordEmbedder):
        armed = False

        def embed(self, texts):
            if self.armed:
                self.armed = False
                with Memory(path, embedder=WordEmbedder("other", dimension)) as mover:
                    mover.store.reembed()
            return super().embed(texts)

    embedder = Overtaken()
    with Memory(path, embedder=embedder) as memory:
        stored = memory.remember("the zebra")
        for write in (
            lambda: memory.remember("the giraffe"),
            lambda: memory.update(stored.id, text="the giraffe"),
        ):
            embedder.armed = True
            with pytest.raises(EmbedderMismatch):
                write()
            assert (memory.count(), memory.get(stored.id).text) == (1, "the zebra")
            with Memory(path, embedder=embedder) as back:
                embedder.armed = False
                back.store.reembed()


@pytest.mark.parametrize(
    "embedder", [3, "no-such-model", Foreign(), WordEmbedder, {"name": "x"}], ids=lambda each: repr(each)[:30]
)
def test_what_is_no_embedder_is_refused(embedder):
    with pytest.raises((InvalidInput, EmbedderError)), Memory(":memory:", embedder=embedder) as memory:
        memory._engine.embedder.get()


def test_the_bundled_model_finds_meaning_without_a_shared_word(embedded):
    embedded.remember_many(
        ["We migrated from PostgreSQL to MySQL last week", "The cat sleeps on the sofa", "Lunch is at noon"]
    )
    best = embedded.recall("Which DBMS is in use?", limit=1)[0]
    assert best.text.startswith("We migrated")
    assert "semantic" in best.match_reasons


def test_context_is_searched_but_is_not_part_of_the_text(embedded):
    stored = embedded.remember("I love hiking in the Alps", context="Caroline")
    embedded.remember("I love hiking in the Alps", context="Melanie")
    best = embedded.recall("What does Caroline love?", limit=1)[0]
    assert (best.id, best.text, best.context) == (stored.id, "I love hiking in the Alps", "Caroline")


@pytest.mark.parametrize("name", ["defualt", "models/bge", "acme/embed-1", "text_embedding"])
def test_an_unknown_embedder_is_refused_when_the_memory_is_opened_and_no_file_is_made(path, name, monkeypatch):
    with pytest.raises(InvalidInput, match=r"is not known: use one of default, none, .*instant.*folder.*ollama.*HTTP"):
        Memory(path, embedder=name)
    monkeypatch.setenv("RECALLITE_EMBEDDER", name)
    with pytest.raises(InvalidInput, match="is not known"):
        Memory(path)
    assert not Path(path).exists()
