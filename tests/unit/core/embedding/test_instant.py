"""The embedder without a network: its files, its words, its vectors, and a store that moves to it and back."""

from __future__ import annotations

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import recallite_models
from recallite import Memory, Settings
from recallite.embedding import DocumentEmbedder, load
from recallite.embedding.instant import InstantEmbedder
from recallite.embedding.tokens import TokenIds, WordIds
from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput
from tests.raising import raises

tokenizers = pytest.importorskip("tokenizers")
FOLDER = recallite_models.path(recallite_models.INSTANT).parent
TOKENIZER = recallite_models.path().with_name("tokenizer.json")
SOURCE = Path(__file__).read_text("utf-8")
WORDS = [word for word in SOURCE.split() if "[SEP]" not in word and "[CLS]" not in word]
GOLDEN = json.loads(Path(__file__).with_name("golden_instant.json").read_text("utf-8"))
ODD = [
    "", " ", "\u200b", "🫠", "あ" * 2000, "x" * 5000, "مرحبا", "don't e-mail foo_bar", "İstanbul ΣΑΣ", "a\x1cb c\x85d",
    "cafe\u0301 nai\u0308ve", "我们上周迁移了数据库", "naïve CAFÉ — “quoted”…", "हिन्दी",
    "\ufffdtab\tnew\r\nline", "x" * 101 + " y",
]  # fmt: skip


@pytest.fixture(scope="module")
def embedder() -> InstantEmbedder:
    found = load("instant")
    assert isinstance(found, InstantEmbedder)
    return found


@pytest.fixture
def model_copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "instant"))


def texts(count: int, seed: int = 7) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, size=random.integers(1, 60))) for _ in range(count)]


def test_vectors_begin_as_they_did(embedder: InstantEmbedder) -> None:
    vectors = embedder.embed(list(GOLDEN))
    np.testing.assert_allclose(vectors[:, :16], list(GOLDEN.values()), atol=2e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(GOLDEN), 384))


def test_like_texts_are_near(embedder: InstantEmbedder) -> None:
    one, other, far = embedder.embed(
        ["The new movie is awesome", "The new movie is so great", "A man is playing guitar"]
    )
    assert one @ other > 0.6 > 0.2 > one @ far


@pytest.mark.parametrize("text", ODD)
def test_words_have_the_tokens_of_the_whole_text(text: str) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(TOKENIZER))
    words = WordIds(tokenizer)
    wanted = TokenIds(tokenizer).encode([text])[0].tolist()
    assert words.ids(text) == wanted
    assert words.ids(text) == wanted, "remembered"


def test_words_of_many_texts_have_the_tokens_of_the_texts(embedder: InstantEmbedder) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(TOKENIZER))
    words, whole = WordIds(tokenizer), TokenIds(tokenizer)
    many = texts(300)
    assert [words.ids(text) for text in many] == [ids.tolist() for ids in whole.encode(many)]
    assert embedder.count_tokens(many[:5]) == [len(words.ids(text)) for text in many[:5]]


def test_the_name_of_a_special_token_is_text() -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(TOKENIZER))
    assert [tokenizer.id_to_token(token) for token in WordIds(tokenizer).ids("[SEP] a")] == ["[", "sep", "]", "a"]


def test_remembered_words_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recallite.embedding.tokens._CACHED_WORDS", 100)
    words = WordIds(tokenizers.Tokenizer.from_file(str(TOKENIZER)))
    for number in range(1000):
        words.ids(f"word{number} {'x' * 40}{number}")
        assert len(words.words) <= 100


def test_a_vector_does_not_depend_on_its_batch(embedder: InstantEmbedder) -> None:
    batch = texts(700)
    together = embedder.embed(batch)
    alone = np.concatenate([embedder.embed([text]) for text in batch[::50]])
    np.testing.assert_array_equal(together[::50], alone)
    np.testing.assert_array_equal(together, embedder.embed(batch[::-1])[::-1])


@pytest.mark.parametrize("text", ["", " ", "\u200b"])
def test_a_text_without_a_token_has_the_vector_of_an_unknown_one(embedder: InstantEmbedder, text: str) -> None:
    unknown = embedder.embed(["🫠"])[0]
    np.testing.assert_array_equal(embedder.embed(["a cat", text])[1], unknown)
    np.testing.assert_array_equal(embedder.embed_documents([text], [None]).vectors[0], unknown)


def test_every_token_that_a_text_can_have_has_a_vector(embedder: InstantEmbedder) -> None:
    pytest.importorskip("onnx")
    from benchmarks.training.distil import produced

    vocabulary = tokenizers.Tokenizer.from_file(str(TOKENIZER)).get_vocab(with_added_tokens=True)
    used = produced(vocabulary)
    np.testing.assert_array_equal(embedder._table.scales > 0, used)
    assert not used[vocabulary["[CLS]"]]
    assert used[vocabulary["["]]


def test_embed_documents_puts_the_context_before_the_text(embedder: InstantEmbedder) -> None:
    assert isinstance(embedder, DocumentEmbedder)
    embedded = embedder.embed_documents(["I adopted a cat", "I adopted a cat"], ["Alice", None])
    assert embedded.owners.tolist() == [0, 1]
    np.testing.assert_array_equal(embedded.vectors, embedder.embed(["Alice: I adopted a cat", "I adopted a cat"]))


def test_long_documents_have_parts_that_begin_with_the_context(embedder: InstantEmbedder) -> None:
    told: list[tuple[int, int]] = []
    long = " ".join(["apple"] * 150 + ["banana"] * 150)
    embedded = embedder.embed_documents(
        ["short", long, "end"], ["title " * 5000, None, None], lambda *at: told.append(at)
    )
    assert embedded.owners.tolist() == [0, 1, 1, 1, 2]
    np.testing.assert_array_equal(embedded.vectors[0], embedder.embed(["title " * 32 + "short"])[0])
    np.testing.assert_allclose(embedded.vectors[[1, 3]], embedder.embed(["apple", "banana"]), atol=1e-6)
    assert told == [(3, 3)]


def test_no_texts_give_no_rows_and_contexts_must_match(embedder: InstantEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)
    embedded = embedder.embed_documents([], [])
    assert (embedded.vectors.shape, embedded.owners.shape) == ((0, 384), (0,))
    with pytest.raises(InvalidInput, match="2 texts with 1 contexts"):
        embedder.embed_documents(["a", "b"], [None])


def test_a_lone_surrogate_is_an_embedder_error(embedder: InstantEmbedder) -> None:
    with pytest.raises(EmbedderError, match="tokenizer failed"):
        embedder.embed(["lone \ud800 surrogate"])


def test_many_threads_get_the_same_vectors() -> None:
    embedder, batch = InstantEmbedder(FOLDER, TOKENIZER), texts(200, seed=8)
    expected = embedder.embed(batch)
    embedder._table.words.words.clear()
    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(embedder.embed, [batch] * 16):
            np.testing.assert_array_equal(vectors, expected)


def test_the_files_match_their_manifest_and_fit(embedder: InstantEmbedder) -> None:
    pytest.importorskip("onnx")
    from benchmarks.training.distil import manifest

    stated = json.loads((FOLDER / "manifest.json").read_text("utf-8"))
    assert manifest(FOLDER, TOKENIZER, recallite_models.DEFAULT) == stated
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 12_000_000
    assert "Apache License" in (FOLDER / "LICENSE").read_text("utf-8")
    assert "sentence-transformers/all-MiniLM-L6-v2" in (FOLDER / "NOTICE").read_text("utf-8")
    assert load("Instant").fingerprint == embedder.fingerprint != load().fingerprint


@pytest.mark.parametrize("name", ["codes.npy", "scales.npy"])
def test_a_changed_byte_is_refused(model_copy: Path, name: str) -> None:
    content = bytearray((model_copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (model_copy / name).write_bytes(content)
    with raises(EmbedderError, "invalid_model", match=f"{name} is not what its manifest says"):
        InstantEmbedder(model_copy, TOKENIZER)
    os.truncate(model_copy / name, 1000)
    with raises(EmbedderError, "invalid_model", match=rf"{name} has 1,000 bytes"):
        InstantEmbedder(model_copy, TOKENIZER)
    (model_copy / name).unlink()
    with raises(EmbedderError, "invalid_model", match=f"{name} is absent"):
        InstantEmbedder(model_copy, TOKENIZER)


def test_another_tokenizer_and_a_foreign_manifest_are_refused(model_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with raises(EmbedderError, "invalid_model", match="is not what its manifest says"):
        InstantEmbedder(model_copy, tmp_path / "tokenizer.json")
    (model_copy / "manifest.json").write_text("{}", "utf-8")
    with raises(EmbedderError, "invalid_model", match="cannot be understood"):
        InstantEmbedder(model_copy, TOKENIZER)
    (model_copy / "manifest.json").unlink()
    with raises(EmbedderError, "invalid_model", match=r"manifest\.json"):
        InstantEmbedder(model_copy, TOKENIZER)


def test_without_tokenizers_the_remedy_is_named(model_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with raises(EmbedderError, "missing", match="cannot embed without tokenizers: pip install"):
        InstantEmbedder(model_copy, TOKENIZER)


def test_a_store_moves_from_the_default_to_instant_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "moved.db"
    with Memory(path) as memory:
        cat = memory.remember("Our cat sleeps on the keyboard")
        memory.remember("The invoice of March has been paid")
    monkeypatch.setenv("RECALLITE_EMBEDDER", "instant")
    with Memory(path) as memory:
        with pytest.raises(EmbedderMismatch, match="instant"):
            memory.recall("a kitten")
        assert memory.store.reembed() == 2
        assert memory.recall("a kitten", mode="vector", limit=1)[0].id == cat.id
        assert memory.store.stats().embedder == "instant"
    with Memory(path, embedder="instant") as memory:
        assert memory.recall("a kitten", mode="vector", limit=1)[0].id == cat.id
    with Memory(path, settings=Settings(embedder="default")) as memory:
        assert memory.store.reembed() == 2
        assert memory.recall("a kitten", mode="vector", limit=1)[0].id == cat.id


@pytest.mark.slow
def test_the_build_reproduces_the_committed_files_but_for_last_bits(tmp_path: Path) -> None:
    for name in ("onnx", "safetensors"):
        pytest.importorskip(name)
    weights = os.environ.get("RECALLITE_TEST_WEIGHTS")
    if weights is None:
        pytest.skip("set RECALLITE_TEST_WEIGHTS to a folder with model.safetensors and tokenizer.json")
    from benchmarks.training.distil import build

    build(Path(weights), tmp_path, recallite_models.DEFAULT)
    codes, committed = (np.load(folder / "codes.npy").astype(np.int16) for folder in (tmp_path, FOLDER))
    difference = np.abs(codes - committed)
    assert difference.max() <= 1
    assert (difference > 0).mean() < 1e-3
    np.testing.assert_allclose(np.load(tmp_path / "scales.npy"), np.load(FOLDER / "scales.npy"), rtol=1e-4)


def test_codes_of_tokens_are_signs_of_their_vectors(embedder: InstantEmbedder) -> None:
    batch = ["The horse, and its house! A horse", "and so on...", "", "zebra " * 300]
    embedded, codes = embedder.embed_document_tokens(batch, [None, "Ada", None, None])
    plain = embedder.embed_documents(batch, [None, "Ada", None, None])
    assert embedded.vectors.tobytes() == plain.vectors.tobytes()
    assert embedded.owners.tolist() == plain.owners.tolist() == [0, 1, 2, 3, 3, 3]
    assert [len(code) // 16 for code in codes] == [2, 1, 0, 1, 0, 0]
    queries = ["Ada  and her horse's house", "", "horse " * 1000]
    vectors, tokens = embedder.embed_query_tokens(queries)
    assert vectors.tobytes() == embedder.embed(queries).tobytes()
    assert tokens[0].places.tolist() == [0, 5, 9, 13, 18, 19, 21]
    assert [len(each.codes) for each in tokens] == [7, 0, 256]
    horse, house = (np.frombuffer(codes[0], "<u8").reshape(2, 2)[place] for place in (0, 1))
    assert tokens[0].codes[3].tolist() == tokens[2].codes[5].tolist() == horse.tolist()
    assert tokens[0].codes[6].tolist() == house.tolist()
    assert tokens[0].width == 128


def test_reranking_by_words_of_their_own() -> None:
    with Memory(":memory:", settings=Settings(embedder="instant")) as memory:
        ids = memory.remember_many(["the striped zebra", "a grey elephant", "zebra crossing ahead", "a striped shirt"])
        hits = memory.recall("striped zebra")
        assert hits[0].id == ids[0]
        assert hits[0].signals["rerank"] > 0
        assert memory.store.stats().token_codes == 4
