"""Whether two runs over the same questions differ by more than chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from recollect.reports import Comparison, Figures

# The recall of many hits says what a prompt gets, the reciprocal rank what comes first.
COMPARED = ("recall", "mrr")
_RESAMPLES = 10_000
_SEED = 0
_INTERVAL = (0.025, 0.975)


def compare(first: Mapping[str, Figures], second: Mapping[str, Figures]) -> tuple[Comparison, ...]:
    """The second run against the first, by question id; questions that only one of them counted are left out."""
    both = [name for name in first if name in second]
    if not both:
        return ()
    return tuple(_compare(figure, both, first, second) for figure in COMPARED)


def _compare(
    figure: str, both: Sequence[str], first: Mapping[str, Figures], second: Mapping[str, Figures]
) -> Comparison:
    differences = {name: getattr(second[name], figure) - getattr(first[name], figure) for name in both}
    better = tuple(name for name, difference in differences.items() if difference > 0)
    worse = tuple(name for name, difference in differences.items() if difference < 0)
    low, high = bootstrap_interval([*differences.values()])
    return Comparison(
        figure=figure,
        difference=math.fsum(differences.values()) / len(both),
        low=low,
        high=high,
        better=better,
        worse=worse,
        equal=len(both) - len(better) - len(worse),
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
