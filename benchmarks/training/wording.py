"""Fits the weight of each word of two statements for the chance that the newer one replaces the older one."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST_GROUPS = 5
_RIDGE = 4.0
_STEPS = 60
_PARTS = 4


class Wording(NamedTuple):
    """The weights of terms, and the bias of their sum."""

    weights: dict[str, float]
    bias: float

    def logits(self, terms: Sequence[set[str]]) -> NDArray[np.float64]:
        """The logit of each pair by its terms."""
        get = self.weights.get
        return np.array([self.bias + sum(sorted(get(term, 0.0) for term in words)) for words in terms])


def fit_wording(terms: Sequence[set[str]], groups: Sequence[str], truth: NDArray[np.bool_]) -> Wording:
    """Logistic regression on the terms that occur in at least five groups, with a ridge.

    Newton's steps with the bound of the curvature that holds everywhere (Böhning and Lindsay, 1988): one inversion.
    """
    seen = {(term, group) for words, group in zip(terms, groups, strict=True) for term in words}
    counts = Counter(term for term, _ in seen)
    names = sorted(term for term, count in counts.items() if count >= _LEAST_GROUPS)
    place = {name: at for at, name in enumerate(names)}
    design = np.zeros((len(terms), len(names) + 1))
    design[:, -1] = 1.0
    for row, words in enumerate(terms):
        design[row, [place[term] for term in words if term in place]] = 1.0
    penalty = np.append(np.full(len(names), _RIDGE), 1e-6)
    inverse = np.linalg.inv(0.25 * design.T @ design + np.diag(penalty))
    coefficients = np.zeros(len(names) + 1)
    for _ in range(_STEPS):
        chance = 1.0 / (1.0 + np.exp(-(design @ coefficients)))
        coefficients -= inverse @ (design.T @ (chance - truth) + penalty * coefficients)
    rounded = np.round(coefficients, 3)
    return Wording({name: float(rounded[at]) for name, at in place.items() if rounded[at]}, float(rounded[-1]))


def crossed_logits(terms: Sequence[set[str]], groups: Sequence[str], truth: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The logit of each pair by a fit on pairs of other groups."""
    parts = np.array([zlib.crc32(f"{group} part".encode()) % _PARTS for group in groups])
    logits = np.zeros(len(terms))
    for part in range(_PARTS):
        inside = parts == part
        fitted = fit_wording(_of(terms, ~inside), _of(groups, ~inside), truth[~inside])
        logits[inside] = fitted.logits(_of(terms, inside))
    return logits


def _of(some: Sequence, rows: NDArray[np.bool_]) -> list:  # type: ignore[type-arg]
    return [entry for entry, inside in zip(some, rows, strict=True) if inside]
