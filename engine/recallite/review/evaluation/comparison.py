"""Whether two runs over the same questions differ by more than chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from recallite.model.reports import Comparison, Evaluation, Figures

# The recall of many hits says what a prompt gets, the reciprocal rank what comes first.
COMPARED = ("recall", "mrr")
_RESAMPLES = 10_000
_SEED = 0
_INTERVAL = (0.025, 0.975)


def compare(first: Evaluation, second: Evaluation) -> tuple[Comparison, ...]:
    """The second run against the first, over the questions of the same id and text that both counted."""
    asked = {(each.id, each.question): each.figures for each in second.results}
    pairs = {
        each.id: (each.figures, other)
        for each in first.results
        if each.figures is not None and (other := asked.get((each.id, each.question))) is not None
    }
    if not pairs:
        return ()
    return tuple(_compare(figure, pairs) for figure in COMPARED)


def _compare(figure: str, pairs: Mapping[str, tuple[Figures, Figures]]) -> Comparison:
    differences = {name: getattr(second, figure) - getattr(first, figure) for name, (first, second) in pairs.items()}
    better = tuple(name for name, difference in differences.items() if difference > 0)
    worse = tuple(name for name, difference in differences.items() if difference < 0)
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
    """The probability of a split at least as uneven, if either side of each were as likely: two-sided, exact."""
    number = better + worse
    tail = sum(math.comb(number, some) for some in range(min(better, worse) + 1))
    share: float = 2 * tail / 2**number
    return min(1.0, share)


def bootstrap_interval(differences: Sequence[float]) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the mean, from 10,000 resamples with a fixed seed.

    A resample is drawn as counts of the distinct differences, of which there are few.
    """
    import numpy as np

    values, counts = np.unique(np.array(differences, dtype=np.float64), return_counts=True)
    number = len(differences)
    # RandomState promises the same numbers in every version of NumPy.
    drawn = np.random.RandomState(_SEED).multinomial(number, counts / number, size=_RESAMPLES)
    low, high = np.quantile(drawn @ values / number, _INTERVAL)
    return float(low), float(high)
