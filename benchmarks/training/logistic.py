"""Logistic regression with bounds on the weights, in NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEPS = 100
_TOLERANCE = 1e-8


def fit_logistic(
    values: NDArray[np.float64],
    truth: NDArray[np.bool_],
    weights: NDArray[np.float64],
    directions: NDArray[np.int64],
    ridge: float = 1e-3,
) -> NDArray[np.float64]:
    """The weights of the columns of `values` and, as the last, the bias: float64 (columns + 1,).

    They minimise the log loss of the chance of `truth`, each row counted with its weight, plus `ridge` / 2 times the
    squared weights of standardised columns. A weight has the sign of its direction, or any where that is 0. Newton's
    method on the weights that no bound holds, with a halved step where the loss would rise.
    """
    mean, deviation = values.mean(axis=0), np.maximum(values.std(axis=0), 1e-9)
    design = np.hstack([(values - mean) / deviation, np.ones((len(values), 1))])
    share = weights / weights.sum()
    signs = np.append(directions, 0)
    penalty = np.append(np.full(len(mean), ridge), 0.0)
    weights_now = np.zeros(design.shape[1])

    def loss(at: NDArray[np.float64]) -> float:
        logits = design @ at
        return float(share @ (np.logaddexp(0.0, logits) - truth * logits) + 0.5 * (penalty * at) @ at)

    now = loss(weights_now)
    for _ in range(_STEPS):
        chance = 1.0 / (1.0 + np.exp(-(design @ weights_now)))
        gradient = design.T @ (share * (chance - truth)) + penalty * weights_now
        at_bound = (signs != 0) & (weights_now == 0) & (signs * gradient >= 0)
        free = np.flatnonzero(~at_bound)
        part = design[:, free]
        curvature = (part * (share * chance * (1 - chance))[:, None]).T @ part + np.diag(penalty[free] + 1e-12)
        step = np.zeros_like(weights_now)
        step[free] = np.linalg.solve(curvature, gradient[free])
        length = 1.0
        while length > 1e-6:
            tried = weights_now - length * step
            tried = np.where(signs * tried < 0, 0.0, tried)
            reached = loss(tried)
            if reached <= now:
                break
            length /= 2
        if now - reached < _TOLERANCE or length <= 1e-6:
            break
        weights_now, now = tried, reached
    scaled = weights_now[:-1] / deviation
    return np.append(scaled, weights_now[-1] - scaled @ mean)
