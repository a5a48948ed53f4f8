"""Metrics and statistics by their definitions. Nothing here is the engine's."""

from __future__ import annotations

import math
from itertools import product


def figures(ranks, k):
    """(recall, hit, hit@1, reciprocal rank, nDCG) of a ranking as a list of k places."""
    places = [sum(rank == place for rank in ranks) for place in range(1, k + 1)]
    found = sum(places)
    first = next((place for place, number in enumerate(places, 1) if number), None)
    gain = sum(number / math.log2(place + 1) for place, number in enumerate(places, 1))
    best_order = sorted([1] * len(ranks) + [0] * k, reverse=True)[:k]
    ideal = sum(relevant / math.log2(place + 1) for place, relevant in enumerate(best_order, 1))
    return (
        found / len(ranks), float(found > 0), float(first == 1), 0.0 if first is None else 1 / first, gain / ideal,
    )  # fmt: skip


def sign_test(better, worse):
    """Of all outcomes of fair coins, the share that is at least as uneven."""
    number = better + worse
    outcomes = [sum(coins) for coins in product((0, 1), repeat=number)]
    uneven = abs(better - worse)
    return sum(abs(2 * heads - number) >= uneven for heads in outcomes) / len(outcomes)


def bootstrap_means(differences):
    """The mean of every resample, each as likely as the others, ascending."""
    return sorted(sum(drawn) / len(differences) for drawn in product(differences, repeat=len(differences)))
