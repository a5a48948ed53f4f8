"""The ONNX embedder: batches, parts, threads, forks, long texts."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import recallite_models
from recallite.embedding import onnx
from recallite.embedding.onnx import OnnxEmbedder
from recallite.embedding.protocol import OVERLAP_TOKENS, header
from recallite.embedding.tokens import PIECE_CHARS, TokenIds, code_width, pieces, token_codes
from recallite.errors import EmbedderError, InvalidInput
from tests.unit.core.embedding.token_vectors import token_vectors

WORDS = Path(__file__).with_name("test_onnx.py").read_text("utf-8").split()


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder(recallite_models.path())


def texts(count: int, seed: int = 7) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, size=random.integers(1, 60))) for _ in range(count)]


def test_rows_are_unit_float32(embedder: OnnxEmbedder) -> None:
    vectors = embedder.embed(texts(40))
    assert (vectors.dtype, vectors.shape) == (np.float32, (40, 384))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_vector_does_not_depend_on_its_batch(embedder: OnnxEmbedder) -> None:
    batch = texts(60)
    together = embedder.embed(batch)
    alone = np.concatenate([embedder.embed([text]) for text in batch])
    backwards = embedder.embed(batch[::-1])[::-1]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(together, backwards, atol=1e-5)


def test_no_texts_give_no_rows(embedder: OnnxEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)
    assert token_vectors(embedder, []) == []
    embedded = embedder.embed_documents([], [])
    assert embedded.vectors.shape == (0, 384)
    assert embedded.owners.shape == (0,)


@pytest.mark.parametrize("text", ["", " ", "\u200b", "🫠", "あ" * 2000, "x" * 5000, "مرحبا", "[CLS] [SEP] [PAD]"])
def test_odd_texts_have_finite_unit_vectors(embedder: OnnxEmbedder, text: str) -> None:
    vector = embedder.embed([text])[0]
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_embed_documents_puts_the_context_before_the_text(embedder: OnnxEmbedder) -> None:
    embedded = embedder.embed_documents(["I adopted a cat", "I adopted a cat"], ["Alice", None])
    assert embedded.owners.tolist() == [0, 1]
    plain = embedder.embed([header("Alice") + "I adopted a cat", "I adopted a cat"])
    np.testing.assert_allclose(embedded.vectors, plain, atol=1e-5)


def test_parts_cover_the_whole_text_and_overlap(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    def run(rows: list[NDArray[np.int64]], on_progress: object) -> NDArray[np.float32]:
        seen.extend(row.tolist() for row in rows)
        return np.ones((len(rows), embedder.dimension), np.float32)

    monkeypatch.setattr(embedder, "_run", run)
    text = " ".join(WORDS)
    owners = embedder.embed_documents(["short", text, "end"], [None, "A title", ""]).owners
    assert owners.tolist() == [0, *[1] * (len(owners) - 2), 2]

    ids = TokenIds(onnx.runtime(embedder._folder).tokenizer)
    head, whole = (row.tolist() for row in ids.encode([header("A title"), text]))
    parts = [row[len(ids.before) : -len(ids.after)] for row in seen[1:-1]]
    assert all(len(row) <= embedder.max_tokens for row in seen)
    assert all(part[: len(head)] == head for part in parts)
    bodies = [part[len(head) :] for part in parts]
    rebuilt, begin = list(bodies[0]), 0
    for body in bodies[1:]:
        begin = next(i for i in range(begin + 1, len(whole)) if whole[i : i + len(body)] == body)
        assert len(rebuilt) - begin >= OVERLAP_TOKENS
        rebuilt += body[len(rebuilt) - begin :]
    assert rebuilt == whole


def test_a_long_context_is_cut_to_a_quarter_of_the_window(embedder: OnnxEmbedder) -> None:
    context, text = "title " * 5000, " ".join(WORDS[:300])
    embedded = embedder.embed_documents([text], [context])
    tokens = embedder.count_tokens([text])[0]
    body = (embedder.max_tokens - 2) * 3 // 4
    assert len(embedded.owners) == -(-(tokens - 32) // (body - 31))


def test_contexts_must_match_the_texts(embedder: OnnxEmbedder) -> None:
    with pytest.raises(InvalidInput, match="2 texts with 1 contexts"):
        embedder.embed_documents(["a", "b"], [None])


def test_progress_is_told_in_the_callers_thread(embedder: OnnxEmbedder) -> None:
    told: list[tuple[int, int, int]] = []
    embedded = embedder.embed_documents(
        texts(50), [None] * 50, lambda done, total: told.append((done, total, threading.get_ident()))
    )
    assert told[-1][:2] == (len(embedded.owners), len(embedded.owners))
    assert told == sorted(told)
    assert {entry[2] for entry in told} == {threading.get_ident()}


def test_token_vectors_pool_to_the_sentence(embedder: OnnxEmbedder) -> None:
    batch = [*texts(9), "one"]
    counts = embedder.count_tokens(batch)
    vectors = token_vectors(embedder, batch)
    assert [matrix.shape for matrix in vectors] == [(min(n + 2, 256), 384) for n in counts]
    pooled = np.stack([matrix.mean(axis=0) for matrix in vectors])
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
    np.testing.assert_allclose(pooled, embedder.embed(batch), atol=1e-5)


def folded_signs(vectors: np.ndarray) -> bytes:
    folded = vectors[:, :128] + vectors[:, 128:256] + vectors[:, 256:]
    return np.packbits(folded > 0, axis=1, bitorder="little").tobytes()


def test_codes_of_documents_are_signs_of_the_telling_tokens_from_the_same_run(embedder: OnnxEmbedder) -> None:
    batch = ["The horse, and its house! A horse", "and so on...", "a", "x " * 700]
    contexts = [None, "Ada", None, None]
    embedded, codes = embedder.embed_document_tokens(batch, contexts)
    plain = embedder.embed_documents(batch, contexts)
    np.testing.assert_allclose(embedded.vectors, plain.vectors, atol=1e-5)
    assert embedded.owners.tolist() == plain.owners.tolist()
    tokens = token_vectors(embedder, [batch[0], "Ada: and so on...", "a"])
    # [CLS] the horse , and its house ! a horse [SEP]; [CLS] ada : and so on ...
    for code, vectors, telling in zip(codes[:3], tokens, ([2, 6], [1], []), strict=True):
        assert code == folded_signs(vectors[telling])
    # One token, in the first of four parts.
    assert [len(code) for code in codes[3:]] == [16, 0, 0, 0]


def test_a_long_text_has_codes_of_its_rarest_tokens(embedder: OnnxEmbedder) -> None:
    rare = "ointment parchment hexagonal scandinavian tractor"
    common = " ".join(f"year{number}" for number in range(1000, 1400))
    _, codes = embedder.embed_document_tokens([f"{common} {rare}", "the tractor is a tractor"], [None, None])
    assert sum(map(len, codes[:-1])) == 64 * 16
    assert len(codes[-2]) >= 5 * 16
    assert len(codes[-1]) == 16
    assert codes == embedder.embed_document_tokens([f"{common} {rare}", "the tractor is a tractor"], [None, None])[1]


def test_tokens_of_queries_say_where_they_begin(embedder: OnnxEmbedder) -> None:
    queries = ["Which  horse?", "", "é" * 3000 + " end", "🫠 Caroline's"]
    vectors, tokens = embedder.embed_query_tokens(queries)
    np.testing.assert_allclose(vectors, embedder.embed(queries), atol=1e-5)
    assert [each.places.tolist() for each in tokens][:2] == [[0, 7, 12], []]
    assert {each.width for each in tokens} == {128}
    for each, inner in zip(tokens, token_vectors(embedder, queries), strict=True):
        assert each.codes.shape == (len(each.places), 2)
        assert each.codes.tobytes() == folded_signs(inner[1:-1])
    assert queries[3][tokens[3].places[-1]] == "s"


@pytest.mark.parametrize("width", [1, 64, 100, 128, 200, 384, 1000])
def test_a_code_has_a_bit_for_each_sum_of_folded_components(width: int) -> None:
    vectors = np.random.default_rng(width).standard_normal((5, width)).astype(np.float32)
    bits = code_width(width)
    sums = np.stack([vectors[:, start::bits].sum(axis=1) for start in range(bits)], axis=1)
    words = -(-bits // 64)
    wanted = np.packbits(sums > 0, axis=1, bitorder="little")
    found = token_codes(vectors)
    assert found.shape == (5, words)
    assert found.view(np.uint8).reshape(5, -1)[:, : wanted.shape[1]].tolist() == wanted.tolist()


def test_long_texts_are_tokenised_in_pieces_that_make_no_difference(embedder: OnnxEmbedder) -> None:
    text = " ".join(WORDS * 40)
    assert len(text) > PIECE_CHARS
    tokenizer = onnx.runtime(embedder._folder).tokenizer
    whole = tokenizer.encode(text, add_special_tokens=False).ids
    ids = TokenIds(tokenizer)
    assert ids.encode([text])[0].tolist() == whole
    assert ids.encode([text], limit=100)[0].tolist() == whole[:100]


@pytest.mark.parametrize("text", ["x" * 1000, "ab cd " * 100, " " * 500, "a\n" * 99, ""])
def test_pieces_are_bounded_and_lossless(text: str) -> None:
    cut = list(pieces(text, 64))
    assert "".join(cut) == text
    assert all(len(piece) <= 64 for piece in cut)


def test_embed_reads_only_the_window_of_a_huge_text(embedder: OnnxEmbedder) -> None:
    huge = "word " * 2_000_000
    np.testing.assert_allclose(embedder.embed([huge]), embedder.embed(["word " * 300]), atol=1e-5)


def test_engines_share_one_session(embedder: OnnxEmbedder) -> None:
    other = OnnxEmbedder(recallite_models.path())
    assert onnx.runtime(other._folder) is onnx.runtime(embedder._folder)
    assert other.fingerprint == embedder.fingerprint


def test_many_threads_get_the_same_vectors(embedder: OnnxEmbedder) -> None:
    batch = texts(30)
    expected = embedder.embed(batch)
    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(embedder.embed, [batch] * 10):
            np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_a_failing_model_is_an_embedder_error(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def run(self, *_: object) -> None:
            raise RuntimeError("out of memory")

    monkeypatch.setitem(onnx.runtime(embedder._folder)._sessions, 1, Broken())
    with pytest.raises(EmbedderError, match="out of memory"):
        embedder.embed(texts(40))


def test_a_tokenizer_error_is_an_embedder_error(embedder: OnnxEmbedder) -> None:
    with pytest.raises(EmbedderError, match="tokenizer failed"):
        embedder.embed(["lone \ud800 surrogate"])
