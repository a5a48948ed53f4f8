"""The bundled embedders, as the entry points of the group `recallite.embedders` name them."""

from __future__ import annotations

from recallite.embedding.load import model_path
from recallite.embedding.protocol import Embedder


def recallite_minilm(*, queries_first: bool = False) -> Embedder:
    """The default model: all-MiniLM-L6-v2, its last layers trained further."""
    return _onnx("recallite-minilm", queries_first)


def all_minilm(*, queries_first: bool = False) -> Embedder:
    """The original all-MiniLM-L6-v2."""
    return _onnx("all-MiniLM-L6-v2", queries_first)


def instant(*, queries_first: bool = False) -> Embedder:
    """The static model, a stored vector for each token. It loads the same way whether or not queries come first."""
    from recallite.embedding.instant import InstantEmbedder

    return InstantEmbedder(model_path("instant").parent, model_path(None).with_name("tokenizer.json"))


def _onnx(name: str, queries_first: bool) -> Embedder:
    from recallite.embedding.onnx import OnnxEmbedder

    return OnnxEmbedder(model_path(name), queries_first=queries_first)
