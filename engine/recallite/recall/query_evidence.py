"""The evidence that records answer a query, and what `confidence.py` and `hits.py` say of it.

A record is weighed by its own signals and beside the best other candidate: a cosine of 0.5 says little where another
record has 0.6, and much where the next has 0.2. All of it is measured before fusion, so it is the same under every
profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.system.numerics import kernels
from recallite.text.stopwords import STOP_TERMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.index.query_batch import QueryBatch
    from recallite.recall.candidates import Candidates
    from recallite.recall.query import Words


class Said(NamedTuple):
    """By query, float64: how many of its words count, and the summed IDF of those that no record contains."""

    words: NDArray[np.float64]
    unknown: NDArray[np.float64]


def said_in(batch: QueryBatch, words: Sequence[Words]) -> Said:
    """What the queries say."""
    # Stop words are in nearly every record: a match of them alone says nothing.
    counts = [0.0 if STOP_TERMS.issuperset(each.every) else float(len(each.every)) for each in words]
    return Said(np.array(counts), unknown_mass(batch, words))


def unknown_mass(batch: QueryBatch, words: Sequence[Words]) -> NDArray[np.float64]:
    """The summed IDF of each query's words that no record contains, float64 (queries,)."""
    return np.array([sum(batch.unknown_idf(each.unknown)) if each.unknown else 0.0 for each in words])


def weigh(
    batch: QueryBatch,
    said: Said,
    candidates: Candidates,
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    signals: NDArray[np.float64],
    ranks: NDArray[np.float64],
    weights: NDArray[np.float64],
    word_weights: NDArray[np.float64],
    parameters: kernels.RankParameters,
) -> kernels.Assessed:
    """rows[offsets[i]:offsets[i + 1]] as answers to query i.

    By row, `signals` are float64 (signals, rows) and `ranks` how many candidates score more; `candidates` are what they
    are weighed beside.
    """
    weighed = kernels.Weighed(
        offsets,
        rows,
        np.ascontiguousarray(signals),
        batch.lengths(rows),
        ranks,
        said.words,
        said.unknown,
        float(batch.records),
    )
    return kernels.assess(
        np.ascontiguousarray(candidates.signals), candidates.offsets, weighed, batch.word_slices, weights, word_weights,
        parameters, checked=True,
    )  # fmt: skip
