"""The evidence that a record answers a query, of which `confidence.py` makes a chance.

A record is weighed by its own signals and beside the best other candidate: a cosine of 0.5 says little where another
record has 0.6, and much where the next has 0.2. All of it is measured before fusion, so it is the same under every
profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.numerics import kernels
from recollect.recall.features import covered_share
from recollect.text.stopwords import STOP_TERMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.query_batch import QueryBatch
    from recollect.recall.candidates import Candidates
    from recollect.recall.query import Words


def measure_evidence(
    batch: QueryBatch,
    words: Sequence[Words],
    candidates: Candidates,
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    signals: NDArray[np.float64],
    ranks: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The evidence of rows[offsets[i]:offsets[i + 1]] for query i, float64 (evidence, rows): see `kernels.Evidence`.

    By row, `signals` are float64 (signals, rows) and `ranks` how many candidates score more; `candidates` are what they
    are weighed beside. The second tells for each known word of all queries whether any of its query's rows contains it.
    """
    coverage, met = covered_share(batch, offsets, rows, [each.unknown for each in words])
    # Stop words are in nearly every record: a match of them alone says nothing.
    said = [0.0 if STOP_TERMS.issuperset(each.every) else float(len(each.every)) for each in words]
    weighed = kernels.Weighed(
        offsets,
        np.ascontiguousarray(signals),
        coverage,
        batch.lengths(rows),
        ranks,
        np.array(said),
        float(batch.records),
    )
    return kernels.measure_evidence(np.ascontiguousarray(candidates.signals), candidates.offsets, weighed), met
