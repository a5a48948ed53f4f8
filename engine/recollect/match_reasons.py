"""Why a hit is among the hits, in one word for each signal that matters.

A new signal that is to be named gets a reason here: its share of the score, or a condition of its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from recollect.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.profiles import Profile


MATCH_REASONS = (
    "semantic",
    "keyword",
    "rerank",
    "speaker",
    "date",
    "session",
    "link",
    "recency",
    "importance",
    "change",
    "step",
    "standing",
)
"""Every reason, in the order in which a hit names them."""
_BIT_OF = {name: 1 << bit for bit, name in enumerate(MATCH_REASONS)}
CHANGE_BIT, STANDING_BIT = _BIT_OF["change"], _BIT_OF["standing"]
# A signal is named when it makes up at least this share of the score before recency and importance.
_NAMED_SHARE = 0.1


def reason_bits(signals: NDArray[np.float64], best_bm25: NDArray[np.float64], profile: Profile) -> NDArray[np.int64]:
    """The reasons of hits but for importance, as bits: signals float64 (signals, hits), the best BM25 of each's query.

    In a weighted sum the relevance has to have its share of the sum too.
    """
    at = kernels.SIGNALS
    weights = profile.vector_weight + profile.keyword_weight
    cosine, rerank, linked = signals[at.cosine], signals[at.rerank], signals[at.linked]
    keyword = profile.keyword_weight / weights * signals[at.bm25] / np.where(best_bm25 > 0, best_bm25, 1.0)
    if profile.keyword_fallback:  # BM25 is all that a record without a vector has
        keyword = np.where(cosine == 0, np.maximum(keyword, signals[at.fused] - rerank), keyword)
    shares = {
        "semantic": profile.vector_weight / weights * np.maximum(cosine, 0.0),
        "keyword": keyword,
        "rerank": np.maximum(rerank, 0.0),
        "session": np.maximum(signals[at.spread_gain] - linked, 0.0),
        "link": linked,
    }
    every = np.array(list(shares.values()))
    named = (every > 0) & (every >= _NAMED_SHARE * every.sum(axis=0))
    aging = profile.decay != "none"
    if profile.composition == "weighted_sum":
        total = profile.semantic_weight + profile.recency_weight + profile.importance_weight
        relevance = profile.semantic_weight / total * np.minimum(np.maximum(signals[at.spread], 0.0), 1.0)
        named &= (relevance > 0) & (relevance >= _NAMED_SHARE * signals[at.score])
        aging = aging and profile.recency_weight > 0
    bits: NDArray[np.int64] = np.array([_BIT_OF[name] for name in shares]) @ named
    for name, weight in (("speaker", profile.speaker_weight), ("date", profile.date_weight)):
        if weight > 0:
            bits += _BIT_OF[name] * (signals[getattr(at, name)] > 0)
    return bits + _BIT_OF["recency"] * (signals[at.decay] > 0.5) if aging else bits


def reasons_of(bits: int, importance: float, profile: Profile) -> tuple[str, ...]:
    """The names of the reasons, with the record's importance."""
    if profile.importance_weight > 0 and importance > 0.5:
        bits |= _BIT_OF["importance"]
    return _names(bits)


@lru_cache(maxsize=1 << len(MATCH_REASONS))
def _names(bits: int) -> tuple[str, ...]:
    return tuple(name for bit, name in enumerate(MATCH_REASONS) if bits >> bit & 1)
