"""Confidence: the chance that a record answers the query, in [0, 1] and comparable across queries.

It is the logistic function of a weighted sum of the evidence (`evidence.py`). The weights were fitted on questions
whose answers are known, in stores that hold them and in stores that do not, by `recallite_models.training.confidence`.
There are weights for each set of signals that a query may have, so that a confidence means the same with token codes,
without them, by keyword alone and by vector alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from recallite.recall.candidates import SIGNALS, Candidates, rank_parameters
from recallite.recall.query_evidence import said_in, weigh
from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.index.query_batch import QueryBatch
    from recallite.model.profiles import Profile
    from recallite.recall.query import Words


FILE = Path(__file__).with_suffix(".json")
"""The weights, by embedder and set of signals, and how they were made."""
SIGNAL_SETS = ("tokens", "vectors", "meaning", "words")
"""Words with vectors and token codes; words with vectors; vectors alone; words alone."""


class Calibration(NamedTuple):
    """The weight of each kind of evidence and, as the last, the bias: float64 (evidence + 1,), by set of signals.

    `embedders` has those of each embedder; any other has those of the first.
    """

    embedders: dict[str, dict[str, NDArray[np.float64]]]
    words: NDArray[np.float64]

    def weights(self, embedder: str | None, signals: str) -> NDArray[np.float64]:
        """Those of an embedder, by name, and one of `SIGNAL_SETS`."""
        if signals == "words":
            return self.words
        own = self.embedders.get(embedder or "") or next(iter(self.embedders.values()))
        return own.get(signals, own["vectors"])


class _Fitted(msgspec.Struct):
    """The file of weights, by name of the evidence; "bias" has the bias."""

    embedders: dict[str, dict[str, dict[str, float]]]
    words: dict[str, float]


@cache
def load_calibration() -> Calibration:
    """The calibration that ships."""
    fitted = msgspec.json.decode(FILE.read_bytes(), type=_Fitted)

    def in_order(weights: dict[str, float]) -> NDArray[np.float64]:
        return np.array([weights.get(name, 0.0) for name in (*kernels.EVIDENCE._fields, "bias")])

    return Calibration(
        {
            name: {signals: in_order(weights) for signals, weights in own.items()}
            for name, own in fitted.embedders.items()
        },
        in_order(fitted.words),
    )


class Assessment(NamedTuple):
    """What is said of chosen candidates.

    Their confidence by answer and by query, which differ where sub-queries share an answer: there the best counts; by
    known word whether any of them contains it; and the bits of their match reasons, None where they share an answer.
    """

    by_answer: list[NDArray[np.float64]]
    by_query: list[NDArray[np.float64]]
    met: NDArray[np.bool_]
    reasons: NDArray[np.int64] | None


class Judge:
    """Weighs records as answers to the queries of a batch.

    `candidates` are those of each query: every one is weighed beside the others. A decomposed question and its
    sub-queries have the same candidates and `shared` answer.
    """

    def __init__(
        self,
        batch: QueryBatch,
        words: Sequence[Words],
        candidates: Candidates,
        embedder: str | None,
        profile: Profile,
        *,
        shared: bool,
    ) -> None:
        self._batch, self._words, self._candidates = batch, words, candidates
        self._parameters, self._shared = rank_parameters(profile, 0), shared
        self._said = said_in(batch, words)
        self._ranks: dict[int, NDArray[np.float64]] = {}
        calibration = load_calibration()
        chosen = [calibration.weights(embedder, self._signals(query)) for query in range(len(words))]
        self._weights = chosen[0][None] if len(chosen) == 1 else np.array(chosen)
        self._by_words = calibration.words

    def _signals(self, query: int) -> str:
        if not self._batch.has_vectors:
            return "words"
        if not self._words[query].every:
            return "meaning"
        start, stop = self._candidates.offsets[query : query + 2].tolist()
        return "tokens" if self._candidates.signals[SIGNALS.similarity, start:stop].any() else "vectors"

    def assess(self, places: Sequence[NDArray[np.int64]]) -> Assessment:
        """What is said of the candidates at these places of each answer."""
        candidates = self._candidates
        every = [places[0]] * len(self._words) if self._shared else places
        offsets = np.array([0, *accumulate(map(len, every))], dtype=np.int64)
        at = candidates.places(every)
        found = self._weigh(
            offsets, candidates.rows[at], candidates.signals.take(at, axis=1), self._ranks_of(every)
        )  # fmt: skip
        by_query = [found.confidence[start:stop] for start, stop in pairwise(offsets.tolist())]
        by_answer = [np.max(by_query, axis=0)] if self._shared else by_query
        return Assessment(by_answer, by_query, found.met.view(np.bool_), None if self._shared else found.reasons)

    def of_records(self, measured: Candidates) -> list[NDArray[np.float64]]:
        """The confidence of records by query, which are weighed as candidates where they are some.

        `measured` has the same records for every query.
        """
        candidates = self._candidates
        signals = measured.signals.copy()
        ranks = np.empty(len(measured))
        for query, (start, stop) in enumerate(pairwise(measured.offsets.tolist())):
            first, end = candidates.offsets[query : query + 2].tolist()
            own, rows = candidates.rows[first:end], measured.rows[start:stop]
            place = np.minimum(np.searchsorted(own, rows), max(end - first - 1, 0))
            ranks[start:stop] = end - first
            if len(own):
                held = np.flatnonzero(own[place] == rows)
                signals[:, start + held] = candidates.signals[:, first + place[held]]
                ranks[start + held] = self._ranks_in(query)[place[held]]
        confidence = self._weigh(measured.offsets, measured.rows, signals, ranks).confidence
        return [confidence[start:stop] for start, stop in pairwise(measured.offsets.tolist())]

    def _ranks_in(self, query: int) -> NDArray[np.float64]:
        """How many candidates of a query score more than each of them."""
        if query not in self._ranks:
            start, stop = self._candidates.offsets[query : query + 2].tolist()
            self._ranks[query] = ranks = np.empty(stop - start)
            ranks[self._candidates.order[start:stop]] = np.arange(stop - start)
        return self._ranks[query]

    def _ranks_of(self, places: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """Those of the candidates at these places of each query."""
        ranks = [self._ranks_in(query)[own] for query, own in enumerate(places)]
        return ranks[0] if len(ranks) == 1 else np.concatenate(ranks)

    def _weigh(
        self,
        offsets: NDArray[np.int64],
        rows: NDArray[np.int64],
        signals: NDArray[np.float64],
        ranks: NDArray[np.float64],
    ) -> kernels.Assessed:
        """rows[offsets[i]:offsets[i + 1]] as answers to query i; by row, `ranks` says how many score more."""
        return weigh(
            self._batch, self._said, self._candidates, offsets, rows, signals, ranks, self._weights, self._by_words,
            self._parameters,
        )  # fmt: skip
