"""The records that may be among the best by a weighted sum, found from SQL: ages and importances of all that are
visible, then sketches, then the codes of the few whose sketch is near enough. See `recollect_kernels.contenders`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from recollect.index.protocol import Summed
from recollect.index.vectors import farthest_sketch
from recollect.numerics import kernels
from recollect.store import cold, loading
from recollect.store.filters import Condition
from recollect.store.vectors import EmbedderRow

if TYPE_CHECKING:
    import apsw
    from numpy.typing import NDArray

__all__ = ["contenders"]

_DAY_US = 86_400_000_000.0
_ROUNDING = 1e-5
_STEPS = 100


def contenders(
    connection: apsw.Connection,
    embedder: EmbedderRow,
    vectors: Iterable[NDArray[np.float32]],
    condition: Condition,
    summed: Summed,
    near: Sequence[Sequence[int]],
) -> list[int]:
    """Row ids of the visible records with a vector that may be among the best for some query.

    `near` are records near each query's vector; the last of them that would be held gives the floor.
    """
    every = cold.ages(connection, condition)
    if not len(every.ids):
        return []
    ids, owners, sketches = loading.sketches(connection, embedder.id, embedder.dimension)
    places = np.minimum(np.searchsorted(every.ids, owners), len(every.ids) - 1)
    visible = every.ids[places] == owners
    ids, owners, sketches, places = ids[visible], owners[visible], sketches[visible], places[visible]
    rest, point, cosine_share = _rest(every, summed.choices)
    limits = np.array([farthest_sketch(embedder.dimension, step / _STEPS) for step in range(_STEPS + 1)])
    words = 1.0 - cosine_share
    found: list[int] = []
    for vector, known in zip(vectors, near, strict=True):
        reach = 0.5 * float(np.abs(vector.astype(np.float64)).sum())

        def cosines(
            at: NDArray[np.int64], sign: float, vector: NDArray[np.float32] = vector, reach: float = reach
        ) -> NDArray[np.float64]:
            """The least (-1) or the greatest (1) cosine of these vectors, by their codes."""
            block = loading.codes(connection, embedder.dimension, np.sort(ids[at]))
            order = np.searchsorted(block.ids, ids[at])
            scales = block.scales[order].astype(np.float64)
            dots: NDArray[np.float64] = (block.codes[order].astype(np.float32) @ vector) * scales
            bounds: NDArray[np.float64] = dots + sign * (reach * scales + _ROUNDING)
            return bounds

        seen = np.flatnonzero(np.isin(owners, list(known)))
        least = np.full(len(rest), -np.inf)
        fused = cosine_share * np.clip(cosines(seen, -1.0), 0.0, 1.0)
        np.maximum.at(least, places[seen], point * fused + rest[places[seen]])
        scores = np.sort(least[np.isfinite(least)])
        floor = scores[-summed.held] if len(scores) >= summed.held else -np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = ((floor - rest[places]) / point - words) / cosine_share if point > 0 else floor - rest[places]
        if point == 0:
            needed = np.where(needed <= _ROUNDING, -np.inf, np.inf)
        sure = needed <= _ROUNDING
        found += owners[sure].tolist()
        open_places = np.flatnonzero(~sure & (needed <= 1.0 + _ROUNDING))
        if not len(open_places):
            continue
        asked = kernels.sketch(vector[None, :])
        rows, distances = kernels.hamming_shortlist(asked, sketches, open_places, 0, len(open_places), len(open_places))
        steps = np.minimum((needed[rows[0]] * _STEPS).astype(np.int64), _STEPS)
        at = rows[0][distances[0] <= limits[steps]]
        found += owners[at[cosines(at, 1.0) >= needed[at]]].tolist()
    return list(dict.fromkeys(found))


def _rest(every: cold.Ages, choices: kernels.Choices) -> tuple[NDArray[np.float64], float, float]:
    """What recency and importance give each record, the similarity's share of the sum, and the cosine's of that."""
    total = choices.semantic_weight + choices.recency_weight + choices.importance_weight
    decay = np.ones(len(every.ids))
    if math.isfinite(choices.half_life_days):
        ages_days = (choices.clock - every.created_at) / _DAY_US
        form: Literal["exp", "half_life"] = "exp" if choices.exponential else "half_life"
        decay = kernels.decay(ages_days, choices.half_life_days, choices.decay_floor, form)
    rest = (choices.recency_weight * decay + choices.importance_weight * every.importance) / total
    return (
        rest,
        choices.semantic_weight / total,
        choices.vector_weight / (choices.vector_weight + choices.keyword_weight),
    )
