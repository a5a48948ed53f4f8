"""Groups of points that lie together, and names of them from the words of their texts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recallite.text.stopwords import STOP_WORDS

_LEAST_POINTS, _MOST_CLUSTERS = 12, 10
_SAMPLE = 5_000
_ROUNDS = 20
_NAME_WORDS = 3
_WORD = re.compile(r"[^\W\d_]{3,}")


def clusters_of(points: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the cluster of each point (n, 2), found by k-means; the same points have the same clusters.

    -1 for all of fewer than 12 points. The centres are those of an even sample.
    """
    if len(points) < _LEAST_POINTS:
        return np.full(len(points), -1, dtype=np.int32)
    sample = points[:: -(-len(points) // _SAMPLE)]
    count = min(_MOST_CLUSTERS, round(math.sqrt(len(sample) / 3)))
    draw = np.random.default_rng(0)
    centres = sample[:1]
    while len(centres) < count:  # k-means++: what is far from all centres is a likely one
        weights = _squares(sample, centres).min(axis=1)
        if not (total := float(weights.sum())):
            break
        centres = np.vstack([centres, sample[draw.choice(len(sample), p=weights / total)]])
    for _ in range(_ROUNDS):
        nearest = _squares(sample, centres).argmin(axis=1)
        members = np.bincount(nearest, minlength=len(centres))[:, None]
        sums = np.stack([np.bincount(nearest, sample[:, axis], len(centres)) for axis in (0, 1)], axis=1)
        centres = np.where(members, sums / np.maximum(members, 1), centres)
    clusters: NDArray[np.int32] = _squares(points, centres).argmin(axis=1).astype(np.int32)
    return clusters


def cluster_names(texts: Sequence[str], clusters: NDArray[np.int32]) -> list[str]:
    """Return the three words that tell each cluster from the others: class TF-IDF (Grootendorst 2022).

    A text counts a word once; words of most clusters come last. A cluster without words has an empty name.
    """
    counts = [Counter[str]() for _ in range(int(clusters.max(initial=-1)) + 1)]
    for text, cluster in zip(texts, clusters.tolist(), strict=True):
        if cluster >= 0:
            counts[cluster].update(set(_WORD.findall(text.lower())) - STOP_WORDS)
    everywhere = sum(counts, Counter[str]())
    average = everywhere.total() / max(len(counts), 1)
    spread = Counter(word for words in counts for word in words)

    def rank(words: Counter[str], word: str) -> tuple[bool, float, str]:
        return 2 * spread[word] > len(counts), -words[word] * math.log1p(average / everywhere[word]), word

    return [", ".join(sorted(words, key=partial(rank, words))[:_NAME_WORDS]) for words in counts]


def _squares(points: NDArray[np.float32], centres: NDArray[np.floating]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = ((points[:, None].astype(np.float64) - centres[None]) ** 2).sum(axis=2)
    return squares
