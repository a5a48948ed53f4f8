"""Features of candidates: the input of what was learned, the ranking and the confidence.

A feature describes a candidate by its signals, alone or beside the best of its query. None describes the query alone,
a place in a source, or an age: a forest that had them fell apart on data that it had not seen. To add a feature, add a
line to `FEATURES`, and train again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.recall.candidates import SIGNALS, Candidates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.query_batch import QueryBatch
    from recollect.recall.query import Words


class Measured(NamedTuple):
    """What features are computed from, by candidate.

    - own: float64 (signals, candidates), in rows as `SIGNALS` names them
    - best: float64 (signals, candidates), the best of all candidates of the same query by each signal
    - coverage: float64, the share of the query's IDF mass that the record contains
    """

    own: NDArray[np.float64]
    best: NDArray[np.float64]
    coverage: NDArray[np.float64]


class Feature(NamedTuple):
    """A feature, more of which speaks for a candidate, and the match reason that it is part of, "score" for several."""

    reason: str
    values: Callable[[Measured], NDArray[np.float64]]


def _own(signal: int, reason: str) -> Feature:
    return Feature(reason, lambda each: each.own[signal])


def _gap(signal: int, reason: str) -> Feature:
    """The distance to the query's best, 0 or less."""
    return Feature(reason, lambda each: each.own[signal] - each.best[signal])


def _bm25_share(each: Measured) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = each.own[SIGNALS.bm25] / np.maximum(each.best[SIGNALS.bm25], 1e-9)
    return shares


FEATURES: dict[str, Feature] = {
    "cosine": _own(SIGNALS.cosine, "semantic"),
    "cosine_gap": _gap(SIGNALS.cosine, "semantic"),
    "bm25": _own(SIGNALS.bm25, "keyword"),
    "bm25_share": Feature("keyword", _bm25_share),
    "coverage": Feature("keyword", lambda each: each.coverage),
    "speaker": _own(SIGNALS.speaker, "speaker"),
    "speaker_gap": _gap(SIGNALS.speaker, "speaker"),
    "rerank": _own(SIGNALS.rerank, "rerank"),
    "rerank_gap": _gap(SIGNALS.rerank, "rerank"),
    "fused": _own(SIGNALS.fused, "score"),
    "fused_gap": _gap(SIGNALS.fused, "score"),
    "gain": _own(SIGNALS.spread_gain, "session"),
    "gain_gap": _gap(SIGNALS.spread_gain, "session"),
    "linked": _own(SIGNALS.linked, "link"),
    "spread": _own(SIGNALS.spread, "score"),
    "spread_gap": _gap(SIGNALS.spread, "score"),
}
"""Every feature by name, in the order of the rows of `measure_features`."""


def measure_features(
    batch: QueryBatch,
    candidates: Candidates,
    offsets: NDArray[np.int64],
    places: NDArray[np.int64],
    words: Sequence[Words],
) -> NDArray[np.float64]:
    """The features of some candidates, float64 (features, places).

    Query i has the candidates at places[offsets[i]:offsets[i + 1]], which count from the first candidate of all.
    """
    rows = candidates.rows[places]
    coverage = covered_share(batch, offsets, rows, [each.unknown for each in words])[0]
    every = Measured(candidates.signals[:, places], _best(candidates, offsets), coverage)
    values = np.empty((len(FEATURES), len(places)))
    for row, feature in zip(values, FEATURES.values(), strict=True):
        row[:] = feature.values(every)
    return values


def covered_share(
    batch: QueryBatch, offsets: NDArray[np.int64], rows: NDArray[np.int64], unknown_words: Sequence[Sequence[str]]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The share of its query's IDF mass that each row contains, and for each known word whether any row contains it.

    Query i asks for rows[offsets[i]:offsets[i + 1]]; unknown_words[i], its words that no record contains, count in the
    total.
    """
    covered, met = batch.coverage(offsets, rows)
    idf = batch.slices.idf
    masses = [
        float(idf[start:stop].sum(dtype=np.float64)) + sum(batch.unknown_idf(unknown))
        for (start, stop), unknown in zip(pairwise(batch.slices.word_offsets.tolist()), unknown_words, strict=True)
    ]
    mass = np.repeat(np.array(masses), np.diff(offsets))
    return np.divide(covered, mass, out=np.zeros(len(rows)), where=mass > 0), met


def _best(candidates: Candidates, offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The best of each query's candidates by each signal, float64 (signals, places); one query's is (signals, 1)."""
    signals = candidates.signals
    best: NDArray[np.float64]
    if len(offsets) == 2:
        best = signals.max(axis=1, initial=-np.inf, keepdims=True)
        return best
    # numpy's reduceat gives an empty run the value after it; no place is in such a run.
    starts = np.minimum(candidates.offsets[:-1], max(len(candidates) - 1, 0))
    best = np.maximum.reduceat(signals, starts, axis=1) if len(candidates) else np.zeros((len(signals), len(starts)))
    return np.repeat(best, np.diff(offsets), axis=1)
