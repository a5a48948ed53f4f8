"""The model's own token vectors, to compare pooled vectors and token codes with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recallite.embedding.onnx import OnnxEmbedder

__all__ = ["token_vectors"]


def token_vectors(embedder: OnnxEmbedder, texts: Sequence[str]) -> list[NDArray[np.float32]]:
    """Vectors of each text's tokens, float32 (tokens, width), with the special ones, not normalised."""
    rows = [
        embedder._ids.frame(ids)
        for ids in embedder._ids.encode(texts, limit=embedder.max_tokens - embedder._ids.specials)
    ]
    found: dict[int, NDArray[np.float32]] = {}
    embedder._run(rows, None, lambda place, tokens: found.update({place: tokens.copy()}))
    return [found[place] for place in range(len(rows))]
