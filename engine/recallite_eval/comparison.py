"""Whether two runs over the same questions differ by more than chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from recallite.model.evaluations import Comparison, Evaluation, Figures

# The recall of many hits says what a prompt gets, the reciprocal rank what comes first.
COMPARED = ("recall", "mrr")
_RESAMPLES = 10_000
_SEED = 0
_INTERVAL = (0.025, 0.975)


def compare(first: Evaluation, second: Evaluation) -> tuple[Comparison, ...]:
    """Compare the second run with the first, over the questions of the same id and text that both counted."""
    second_figures = {(result.id, result.question): result.figures for result in second.results}
    pairs = {
        result.id: (result.figures, figures)
        for result in first.results
        if result.figures is not None and (figures := second_figures.get((result.id, result.question))) is not None
    }
    if not pairs:
        return ()
    return tuple(_compare(figure, pairs) for figure in COMPARED)


def _compare(figure: str, pairs: Mapping[str, tuple[Figures, Figures]]) -> Comparison:
    differences = {name: getattr(second, figure) - getattr(first, figure) for name, (first, second) in pairs.items()}
    better, worse = (tuple(name for name, d in differences.items() if sign * d > 0) for sign in (1, -1))
    low, high = bootstrap_interval([*differences.values()])
    return Comparison(
        figure=figure,
        difference=math.fsum(differences.values()) / len(pairs),
        low=low,
        high=high,
        better=better,
        worse=worse,
        equal=len(pairs) - len(better) - len(worse),
        p=sign_test(len(better), len(worse)),
    )


def sign_test(better: int, worse: int) -> float:
    """Return the probability of a split at least as uneven if both sides were equally likely: two-sided, exact."""
    total = better + worse
    tail = splits = 1
    for count in range(min(better, worse)):
        splits = splits * (total - count) // (count + 1)  # the binomial coefficient of count + 1
        tail += splits
    return min(1.0, float(2 * tail / 2**total))


def bootstrap_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the mean, from 10,000 resamples with a fixed seed.

    A resample is drawn as counts of the distinct differences, of which there are few.
    """
    import numpy as np

    values, counts = np.unique(np.array(differences, dtype=np.float64), return_counts=True)
    total = len(differences)
    # RandomState promises the same numbers in every version of NumPy.
    drawn = np.random.RandomState(_SEED).multinomial(total, counts / total, size=_RESAMPLES)
    low, high = np.quantile(drawn @ values / total, _INTERVAL)
    return float(low), float(high)
