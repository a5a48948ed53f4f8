"""Whether two stores with the same memories answer alike: texts of some memories are asked of both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from recallite.engine import Engine
from recallite.model.settings import Settings
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import Request, build_request
from recallite.system.messages import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recallite.model.records import Hits
    from recallite.store.protocol import Reader, Store
    from recallite.store.protocol.copying import CopiedRow

_TEXTS = 16
_TEXT_CHARS = 500
_KEYWORDS = 6
_HITS = 10
_SHOWN = 5
# Scores are sums of float32, in the order of each store.
_TOLERANCE = 1e-5


class Sample:
    """Texts of memories from all parts of a store; those with a vector are asked with it, so that nothing is embedded.

    `records` is how many rows the table `record` has, which are given to `take` in their order.
    """

    def __init__(self, records: int) -> None:
        # Twice as many as are asked: some are closed versions.
        self._step = max(1, records // (2 * _TEXTS))
        self._seen = 0
        self._ids: list[int] = []
        self.by_vector: list[tuple[str, NDArray[np.float32]]] = []
        self.by_words: list[str] = []

    def take(self, rows: Sequence[CopiedRow]) -> None:
        """Choose among the next rows."""
        self._ids += [rows[place][0] for place in range(-self._seen % self._step, len(rows), self._step)]
        self._seen += len(rows)

    def load(self, reader: Reader) -> None:
        """Read the texts that were chosen."""
        embedder = reader.vectors.active_embedder()
        asked = 0
        for record_id, record in zip(self._ids, reader.records.get_many(self._ids), strict=True):
            text = record.text[:_TEXT_CHARS].strip()
            if record.recorded_until is not None or not text or asked == _TEXTS:
                continue
            asked += 1
            self.by_words.append(" ".join(text.split()[:_KEYWORDS]))
            parts = {} if embedder is None else reader.vectors.values_of([record_id], embedder)
            if parts:
                self.by_vector.append((text, np.frombuffer(parts[record_id][0], dtype="<f4")))


def differences(source: Store, target: Store, sample: Sample, scope: str) -> tuple[int, list[str]]:
    """How many questions were asked of both stores, and to which they have other hits."""
    settings = Settings(embedder="none", candidates="memory", index_snapshot=False, compile_kernels=False)
    both = build_request(scope, settings.profile, limit=_HITS, count_access=False)
    words = build_request(scope, settings.profile, limit=_HITS, mode="keyword", count_access=False)
    asked = [text for text, _ in sample.by_vector] + sample.by_words
    # One after the other: each has its index in memory.
    found, copied = (_answers(store, settings, sample, both, words) for store in (source, target))
    other = [text for text, one, two in zip(asked, found, copied, strict=True) if not _alike(one, two)]
    return len(asked), [f"recall of {shown(text)} has other hits, or other scores" for text in other[:_SHOWN]]


def _answers(store: Store, settings: Settings, sample: Sample, both: Request, words: Request) -> list[Hits]:
    engine = Engine(store.path, None, settings, store=store)
    texts, vectors = [text for text, _ in sample.by_vector], [vector for _, vector in sample.by_vector]
    return [
        *(recall_queries(engine, texts, vectors, both) if texts else []),
        *(recall_queries(engine, sample.by_words, None, words) if sample.by_words else []),
    ]


def _alike(one: Hits, two: Hits) -> bool:
    return [hit.id for hit in one] == [hit.id for hit in two] and all(
        math.isclose(first.score, second.score, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
        for first, second in zip(one, two, strict=True)
    )
