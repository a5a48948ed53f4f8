"""Where tokens begin: the measure of chunks, the same whether or not a model can be loaded."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tokenizers import Tokenizer

import recallite_models
from recallite.embedding import tokens
from recallite.embedding.handle import EmbedderHandle
from recallite.errors import EmbedderError

TEXTS = [
    "",
    "Hello, world! It's 3.14 — naïve café, embeddings unbelievably tokenised.",
    "数据库 is 今天天气很好。\r\n\tTabs\u2028and \x0b\x0cbreaks \x00 nul 🙂👩‍👩‍👧 é",
    "| a | `b_c` |\n|---|---|\n<!-- x --> [CLS] [SEP]ed",
    "word " * 9_000,
]


def starts(spec, texts):
    return EmbedderHandle(spec, query_cache_size=1).token_starts(texts)


@pytest.fixture(scope="module")
def tokenizer():
    loaded = Tokenizer.from_file(str(recallite_models.path().with_name("tokenizer.json")))
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def test_starts_are_those_of_the_models_tokenizer(tokenizer):
    for text, found in zip(TEXTS[:3] + TEXTS[4:], starts("default", TEXTS[:3] + TEXTS[4:]), strict=True):
        expected = [begin for begin, _ in tokenizer.encode(text, add_special_tokens=False).offsets]
        assert found.tolist() == expected


def test_a_model_that_is_not_there_changes_nothing():
    for spec in ("none", "instant", "default"):
        for one, other in zip(starts(spec, TEXTS), starts(None, TEXTS), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("text", ["A" * 50_000, "ab+/" * 10_000, "é" * 5_000, " " * 50_000, "\u200b" * 50_000])
def test_no_stretch_without_a_token_is_long(text):
    """WordPiece makes one token of a word of more than 100 characters: a chunk would have no bound in characters."""
    for spec in ("none", "instant"):
        (found,) = starts(spec, [text])
        assert np.diff([0, *found, len(text)]).max() <= 256


def test_an_embedders_own_tokens_are_used():
    class Own:
        name, dimension, fingerprint = "own", 2, "own"

        def embed(self, texts):
            return np.ones((len(texts), 2), np.float32)

        def token_starts(self, texts):
            return [np.arange(0, len(text), 2) for text in texts]

    assert [row.tolist() for row in starts(Own(), ["abcde", ""])] == [[0, 2, 4], []]


def test_an_embedder_that_fails_is_named():
    class Own:
        def token_starts(self, texts):
            raise ValueError("out of order")

    with pytest.raises(EmbedderError, match="out of order"):
        starts(Own(), ["a"])


def test_a_folder_has_its_own_tokenizer(tmp_path, tokenizer):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for one, other in zip(starts(tmp_path, TEXTS[:3]), starts("none", TEXTS[:3]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_folder_that_is_not_there_hinders_no_reading(tmp_path):
    for one, other in zip(starts(tmp_path / "absent", TEXTS), starts("none", TEXTS), strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_a_tokenizer_a_token_has_four_characters_or_one_of_chinese(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    tokens._of_tokenizer.cache_clear()
    try:
        assert starts("none", ["abcdefghij", "汉字汉字", ""])[1].tolist() == [0, 1, 2, 3]
        assert len(starts("none", ["abcdefghij"])[0]) == 3
    finally:
        tokens._of_tokenizer.cache_clear()
