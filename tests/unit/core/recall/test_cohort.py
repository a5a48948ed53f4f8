"""Embedders that no weights were fitted for: their hits are compared with the cohort."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from recallite import Memory, Settings
from recallite.embedding import load
from recallite.embedding.cohort import FILE, measured, sentences
from recallite.errors import EmbedderError
from recallite.system.numerics import products

FACTS = [
    "The printer takes toner XR-20", "My sister moves to Leeds in May", "The wifi password is on the fridge",
    "Grandpa is deaf in his left ear", "We pay the rent on the third", "The dog gets dry food in the morning",
]  # fmt: skip
ASKED = {"Where is my sister going?": 1, "When is the rent due?": 4, "What does the dog eat?": 5}
UNRELATED = ["Who painted the ceiling of the Sistine Chapel?", "How many moons does Jupiter have?"]


class Turned:
    """all-MiniLM-L6-v2 in other coordinates and as many components as wanted, crowded towards one direction.

    As of e5 and its kin, any two of its texts have a high cosine.
    """

    def __init__(self, dimension: int, crowding: float = 0.0) -> None:
        self._embedder = load("all-minilm-l6-v2")
        random = np.random.default_rng(dimension).standard_normal((max(dimension, 384), 384))
        self._turned = np.linalg.qr(random)[0].T.astype(np.float32)
        self._crowding = np.zeros(dimension, np.float32)
        self._crowding[0] = crowding
        self.name, self.dimension, self.fingerprint = f"turned {crowding}", dimension, f"turned:{dimension}:{crowding}"
        self.asked = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += len(texts)
        rows = self._embedder.embed(texts) @ self._turned + self._crowding
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


class Noise:
    """Vectors that say nothing of their texts."""

    name, dimension, fingerprint = "noise", 64, "noise:64"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [np.random.default_rng(zlib.crc32(text.encode())).standard_normal(64) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


class Few(Noise):
    """Fails for the texts of the cohort."""

    name = fingerprint = "few"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if set(texts) & set(sentences()[0]):
            raise EmbedderError("not these texts", "text_refused")
        return super().embed(texts)


def test_every_question_of_the_cohort_has_an_answer_and_no_other_has_the_same():
    asked, told, prompts = sentences()
    lines = [line.split("\t") for line in FILE.read_text("utf-8").splitlines()]
    pairs = [line for line in lines if len(line) == 3]
    assert len(set(asked)) == len(set(told)) == len(pairs)
    assert len(set(prompts)) == len(prompts) == sum(len(line) - 1 for line in lines[len(pairs) :])
    languages = [language for language, _, _ in pairs]
    assert languages == sorted(languages, key=languages.index)  # those of a language are together
    assert {line[0] for line in lines[len(pairs) :]} <= set(languages)


@pytest.mark.parametrize("prompt", ["leave that as it was", "ok, do it once more", "why does this stop?"])
def test_a_prompt_that_points_at_what_is_at_hand_is_less_sure_of_each_text(prompt):
    embedder = load("all-minilm-l6-v2")
    asked, told, prompts = (embedder.embed(texts) for texts in sentences())
    question, texts = embedder.embed([prompt])[0], embedder.embed(FACTS)
    pointing = measured(asked, told, prompts)
    assert (pointing.normalised(question, texts) < measured(asked, told, asked).normalised(question, texts) - 1).all()


@pytest.mark.parametrize(("texts", "others", "dimension"), [(31, 381, 384), (8, 85, 384), (1, 9, 40_000), (0, 3, 4)])
def test_products_by_blocks_are_the_products(texts, others, dimension):
    random = np.random.default_rng(0)
    left, right = (random.normal(size=(rows, dimension)).astype(np.float32) for rows in (texts, others))
    assert np.allclose(products(left, right), left @ right.T, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(("dimension", "crowding"), [(384, 0.0), (384, 1.5), (3072, 1.5)])
def test_confidence_does_not_depend_on_coordinates_or_on_how_crowded_vectors_are(dimension, crowding):
    with Memory(":memory:", embedder=Turned(dimension, crowding)) as memory:
        ids = memory.remember_many(FACTS)
        for question, place in ASKED.items():
            assert [hit.id for hit in memory.recall(question, relevant=True)][:1] == [ids[place]], question
        for question in UNRELATED:
            assert memory.recall(question, relevant=True) == [], question
            assert memory.recall(question).evidence_gaps


def test_questions_are_recalled_alike_alone_and_together():
    questions = [*ASKED, *UNRELATED]
    with Memory(":memory:", embedder=Turned(384, 1.5)) as memory:
        memory.remember_many(FACTS)
        together = memory.recall_many(questions, limit=3)
        for question, hits in zip(questions, together, strict=True):
            alone = memory.recall(question, limit=3)
            assert [hit.id for hit in alone] == [hit.id for hit in hits]
            assert [hit.confidence for hit in alone] == pytest.approx([hit.confidence for hit in hits])


def test_vectors_that_say_nothing_do_not_count():
    with Memory(":memory:", embedder=Noise()) as memory:
        memory.remember_many(FACTS)
        hits = memory.recall("toner for the printer")
        assert hits[0].text == FACTS[0]
        assert all(abs(hit.signals["cosine"]) < 0.01 for hit in hits)
        assert any("recall is by keywords" in note for note in memory.store.stats().notes)
        # Who asks for vectors gets them.
        assert memory.recall("toner", mode="vector")[0].signals["cosine"] > 0


def test_the_cohort_is_embedded_once_and_kept_in_the_store(tmp_path):
    path, first, second = tmp_path / "a.db", Turned(384), Turned(384)
    with Memory(path, embedder=first) as memory:
        memory.remember_many(FACTS)
        memory.recall("toner")
        assert first.asked > 2 * len(sentences()[0])
        asked = first.asked
        memory.recall("rent")
        assert first.asked == asked + 1
        confidence = memory.recall("When is the rent due?")[0].confidence
    with Memory(path, embedder=second) as memory:
        assert memory.recall("When is the rent due?")[0].confidence == pytest.approx(confidence)
        assert second.asked == 1


def test_an_embedder_that_fails_for_the_cohort_still_finds(caplog):
    with Memory(":memory:", embedder=Few()) as memory:
        memory.remember_many(FACTS)
        assert memory.recall("toner for the printer")[0].text == FACTS[0]
        assert memory.recall("toner for the printer")[0].text == FACTS[0]
    assert sum("embeds no cohort" in message for message in caplog.messages) == 1


def test_the_default_model_has_no_cohort():
    with Memory(":memory:") as memory:
        memory.remember_many(FACTS)
        memory.recall("toner")
        assert memory._engine.embedder.cohort is None
        assert not any("bundled" in note for note in memory.store.stats().notes)


def test_a_scale_brings_answers_to_where_the_default_model_has_them():
    questions, answers = np.eye(8, dtype=np.float32), np.eye(8, dtype=np.float32)
    crowded = [rows + 3 for rows in (questions, answers)]
    crowded = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in crowded]
    cohort = measured(*crowded, crowded[0])
    products = cohort.searched(crowded[0]) @ crowded[1].T
    far = products[~np.eye(8, dtype=bool)]
    assert np.diag(products).mean() - far.mean() == pytest.approx(0.5, abs=0.01)
    assert far.mean() == pytest.approx(0.1, abs=0.1)
    assert cohort.separates


def test_prefixes_go_before_queries_and_documents():
    class Seen(Noise):
        def __init__(self) -> None:
            self.texts: list[str] = []

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            self.texts += texts
            return super().embed(texts)

    seen = Seen()
    settings = Settings(query_prefix="query: ", document_prefix="passage: ")
    with Memory(":memory:", embedder=seen, settings=settings) as memory:
        memory.remember("The dog sleeps in the kitchen", context="Ada")
        memory.recall("Where does the dog sleep?")
        assert "passage: Ada: The dog sleeps in the kitchen" in seen.texts
        assert "query: Where does the dog sleep?" in seen.texts
        assert memory._engine.embedder.identity().fingerprint == "noise:64:prefix=query: |passage: "
