"""Embedders that another package registers by a name."""

from __future__ import annotations

import numpy as np
import pytest

from recallite.embedding.handle import EmbedderHandle
from recallite.errors import InvalidInput

TEXT = "Embeddings unbelievably tokenised."


class Plain:
    name, dimension, fingerprint = "plain", 2, "plain"

    def embed(self, texts):
        return np.ones((len(texts), 2), np.float32)


class Own(Plain):
    def token_starts(self, texts):
        return [np.arange(0, len(text), 2) for text in texts]


def starts(spec):
    (found,) = EmbedderHandle(spec, query_cache_size=1).token_starts([TEXT])
    return found.tolist()


def test_its_own_tokens_are_used(install):
    install("acme", "embedders", "acme", f"{__name__}:Own")
    assert starts("acme") == starts("ACME") == list(range(0, len(TEXT), 2))


def test_without_its_tokenizer_a_token_has_four_characters(install, tmp_path, monkeypatch):
    (tmp_path / "acme").mkdir()  # a folder of the same name is not its model
    monkeypatch.chdir(tmp_path)
    install("acme", "embedders", "acme", f"{__name__}:Plain")
    assert starts("acme") == list(range(0, len(TEXT), 4))
    assert starts("acme") != starts("none")


def test_one_that_cannot_be_imported_says_why(install):
    install("acme", "embedders", "acme", "odd_package:IT")
    with pytest.raises(InvalidInput, match="the embedder 'acme' of acme"):
        starts("acme")
