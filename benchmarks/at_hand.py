"""An embedder without a model's time: it has computed what it will be asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.dataset import Dataset

__all__ = ["AtHand"]

_CODED = 2000


class AtHand:
    """The default model of `engine` with the vectors of a data set at hand, and the vectors and tokens of questions.

    Line i has the token codes of line i mod 2,000: it would take minutes to embed them all. With `live` the model
    embeds questions when they are asked.
    """

    def __init__(self, data: Dataset, questions: Sequence[str] | None = None, engine: str = "recallite") -> None:
        # By name, because an older commit has another engine: see `benchmarks.compare`.
        embedding = import_module(f"{engine}.embedding")
        self._data, self._model, self._embedded, self.live = data, embedding.load(), embedding.Embedded, False
        model: Any = self._model
        self.name, self.dimension, self.fingerprint = model.name, model.dimension, model.fingerprint
        queries = data.questions if questions is None else questions
        vectors, tokens = model.embed_query_tokens(queries)
        self._asked = dict(zip(queries, zip(vectors, tokens, strict=True), strict=True))

    def embed(self, texts: Sequence[str]) -> Any:
        """Vectors of questions, float32 (n, dimension)."""
        return self.embed_query_tokens(texts)[0]

    def embed_query_tokens(self, texts: Sequence[str]) -> Any:
        """Vectors and tokens of questions."""
        if self.live or not self._asked.keys() >= set(texts):
            return self._model.embed_query_tokens(texts)
        embedded = [self._asked[text] for text in texts]
        return np.array([vector for vector, _ in embedded]), [tokens for _, tokens in embedded]

    def embed_document_tokens(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Any = None
    ) -> Any:
        """Vectors of lines, and codes of the lines that lend them theirs."""
        places = [self._places[text] for text in texts]
        codes = [self._codes[place % len(self._codes)] for place in places]
        return self._embedded(self._data.vectors[places], np.arange(len(places), dtype=np.int64)), codes

    @cached_property
    def _places(self) -> dict[str, int]:
        return {line: place for place, line in enumerate(self._data.lines)}

    @cached_property
    def _codes(self) -> list[bytes]:
        lines = self._data.lines[:_CODED]
        embedded, codes = self._model.embed_document_tokens(lines, [None] * len(lines))
        return [codes[first] for first in np.searchsorted(embedded.owners, np.arange(len(lines))).tolist()]
