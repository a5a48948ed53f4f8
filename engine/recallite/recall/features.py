"""Features of candidates: the input of what was learned, the ranking and the confidence.

A feature describes a candidate by its signals, alone or beside the best of its query: `recallite_kernels.signals` has
the definition. None describes the query alone, a place in a source, or an age: a forest that had them fell apart on
data that it had not seen. To add a feature, name it there and in `FEATURES`, and train again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recallite.recall.candidates import Candidates, rank_parameters
from recallite.recall.query_evidence import unknown_mass
from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from recallite.index.query_batch import QueryBatch
    from recallite.model.profiles import Profile
    from recallite.recall.query import Words


FEATURES = {
    "cosine": "semantic",
    "cosine_gap": "semantic",
    "bm25": "keyword",
    "bm25_share": "keyword",
    "coverage": "keyword",
    "speaker": "speaker",
    "speaker_gap": "speaker",
    "rerank": "rerank",
    "rerank_gap": "rerank",
    "fused": "score",
    "fused_gap": "score",
    "gain": "session",
    "gain_gap": "session",
    "linked": "link",
    "spread": "score",
    "spread_gap": "score",
}
"""The match reason that each feature is part of, "score" for several; more of a feature speaks for a candidate."""
_NO_TREES = kernels.Forest(np.empty((0, 1), np.uint8), np.empty((0, 1)), np.empty((0, 2)))


def rank_by_forest(
    batch: QueryBatch,
    candidates: Candidates,
    words: Sequence[Words],
    profile: Profile,
    depth: int,
    forest: kernels.Forest = _NO_TREES,
) -> kernels.Reordered:
    """The features of the best `depth` candidates of each query, and their order by a forest that was checked."""
    return kernels.rank_by_forest(
        np.ascontiguousarray(candidates.signals), candidates.offsets, candidates.rows, candidates.order,
        batch.word_slices, unknown_mass(batch, words), forest, rank_parameters(profile, 0), depth, checked=True,
    )  # fmt: skip
