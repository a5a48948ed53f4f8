"""An embedder without a model's time: what it is asked for is computed before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.dataset import Dataset
from recallite.embedding import Embedded, load

__all__ = ["AtHand"]

_CODED = 2000


class AtHand:
    """The default model with the vectors of the data at hand, and the vectors and tokens of its questions.

    Line i has the token codes of line i mod 2,000: it would take minutes to embed them all. With `live` the model
    embeds questions when they are asked.
    """

    def __init__(self, data: Dataset) -> None:
        self._data, self._model, self.live = data, load(), False
        model: Any = self._model
        self.name, self.dimension, self.fingerprint = model.name, model.dimension, model.fingerprint
        vectors, tokens = model.embed_query_tokens(data.questions)
        self._asked = dict(zip(data.questions, zip(vectors, tokens, strict=True), strict=True))

    def embed(self, texts: Sequence[str]) -> Any:
        """Vectors of questions, float32 (n, dimension)."""
        return self.embed_query_tokens(texts)[0]

    def embed_query_tokens(self, texts: Sequence[str]) -> Any:
        """Vectors and tokens of questions."""
        if self.live or not self._asked.keys() >= set(texts):
            model: Any = self._model
            return model.embed_query_tokens(texts)
        found = [self._asked[text] for text in texts]
        return np.array([vector for vector, _ in found]), [tokens for _, tokens in found]

    def embed_document_tokens(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Any = None
    ) -> Any:
        """Vectors of lines, and codes of the lines that lend them theirs."""
        places = [self._places[text] for text in texts]
        codes = [self._codes[place % len(self._codes)] for place in places]
        return Embedded(self._data.vectors[places], np.arange(len(places), dtype=np.int64)), codes

    @cached_property
    def _places(self) -> dict[str, int]:
        return {line: place for place, line in enumerate(self._data.lines)}

    @cached_property
    def _codes(self) -> list[bytes]:
        model: Any = self._model
        lines = self._data.lines[:_CODED]
        embedded, codes = model.embed_document_tokens(lines, [None] * len(lines))
        return [codes[first] for first in np.searchsorted(embedded.owners, np.arange(len(lines))).tolist()]
