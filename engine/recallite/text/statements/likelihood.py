"""The chance that a later statement replaces an earlier one, by a fit on pairs of statements.

A logistic regression and a forest of small trees weigh the evidence; the mean of their logits counts. Alone, either
found fewer pairs at the same precision. `benchmarks.training.changes` makes the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import repeat
from math import exp, fsum
from operator import mul
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

import recallite_kernels as kernels
from recallite.text.statements.evidence import CHANGING, evidence_of, other_label
from recallite.text.statements.statement import Statement
from recallite.text.statements.traits import Traits, cues_of, traits_of
from recallite.text.statements.verdict import Verdict
from recallite_kernels import Forest

FILE = Path(__file__).with_name("likelihood.json")
DEPTH = 3


class Fitted(msgspec.Struct):
    """The fitted numbers.

    - threshold, threshold_uncued: the chance from which a statement counts as replaced, where the newer one tells of
      change, and where it does not and a rule finds it
    - features: the names of the evidence, in the order of `weights`
    - trees: each the feature of every inner node, their thresholds, and the values of the leaves
    - wording: the weight of each term of `wording_of`, and the bias of their sum
    """

    threshold: float
    threshold_uncued: float
    features: list[str]
    weights: list[float]
    bias: float
    base: float
    trees: list[tuple[list[int], list[float], list[float]]]
    wording: dict[str, float]
    wording_bias: float


class _Model(NamedTuple):
    """`weights` are in the order of `features`, which the forest numbers."""

    threshold: float
    threshold_uncued: float
    features: list[str]
    weights: list[float]
    bias: float
    forest: Forest
    wording: dict[str, float]
    wording_bias: float


@cache
def _model() -> _Model:
    fitted = msgspec.json.decode(FILE.read_bytes(), type=Fitted)
    places, thresholds, leaves = zip(*fitted.trees, strict=True)
    forest = Forest(np.array(places, np.uint8), np.array(thresholds, np.float64), np.array(leaves, np.float64))
    return _Model(
        fitted.threshold, fitted.threshold_uncued, fitted.features, fitted.weights, fitted.bias + fitted.base, forest,
        fitted.wording, fitted.wording_bias,
    )  # fmt: skip


class Chance(NamedTuple):
    """The chance that a statement is replaced, and whether it is high enough to count on."""

    value: float
    sure: bool


_OF_LIVES = frozenset(("die", "bear"))
_NONE = Chance(0.0, False)


def is_cued(new: Statement, old: Statement) -> bool:
    """Whether the newer statement has a word of change, or one is negated and the other is not."""
    return new.negated != old.negated or not cues_of(new).isdisjoint(CHANGING)


def is_known(new: Statement, old: Statement) -> bool:
    """Whether two statements are like those of the fit: one short one, and one that may say more."""
    if not (new.replacing and old.replaceable):
        return False
    if any(clause.relation in _OF_LIVES and "in" in dict(clause.chunks) for clause in new.clauses):
        return False  # "the author died in Portland" tells of a life; it is no news
    one, two = traits_of(new), traits_of(old)
    return bool(two.weights) and bool(one.weights) and not other_label(one, two)


class Ruled(NamedTuple):
    """A newer and an older statement, what the rules say of them, and the cosine of their vectors, if both have one."""

    new: Statement
    old: Statement
    rules: Verdict
    cosine: float | None


def chances_replaced(pairs: Sequence[Ruled]) -> list[Chance | None]:
    """The chance that each `new` replaces all that `old` says; None if the fit knows nothing of such.

    It is 0 if the rules find nothing and the newer one has no word of change: of 2,077 such pairs 265 were superseded,
    and the fit could not tell which.
    """
    chances: list[Chance | None] = []
    fitted, cues = [], []
    for pair in pairs:
        cued = bool(pair.old.words and pair.new.words) and is_cued(pair.new, pair.old)
        silent = pair.rules.outcome != "supersedes" and not cued
        if not silent and is_known(pair.new, pair.old):
            fitted.append(len(chances))
            cues.append(cued)
        chances.append(_NONE if silent else None)
    if not fitted:
        return chances
    model = _model()
    evidence = [_values(pairs[place], model) for place in fitted]
    leaves = kernels.forest_scores(np.array(evidence, np.float64).T.copy(), model.forest).tolist()
    for place, cued, values, of_forest in zip(fitted, cues, evidence, leaves, strict=True):
        logit = model.bias + fsum(map(mul, values, model.weights)) + of_forest
        chance = 1.0 / (1.0 + exp(-0.5 * logit))
        chances[place] = Chance(chance, chance >= (model.threshold if cued else model.threshold_uncued))
    return chances


def _values(pair: Ruled, model: _Model) -> list[float]:
    evidence = evidence_of(*pair)
    wording = wording_logit(model.wording, model.wording_bias, traits_of(pair.new), traits_of(pair.old))
    return list(map((evidence | {"wording": wording}).get, model.features, repeat(0.0)))


def wording_of(one: Traits, two: Traits) -> set[str]:
    """The terms of a newer and an older statement: "+" only of the newer one, "-" only of the older one, "=" of both.

    And pairs of neighbours of the newer one, in which each word that both have is "=": "sold =", "no longer".
    """
    known, ours = frozenset(two.order), frozenset(one.order)
    terms = set()
    before = "^"
    for key, term in zip(one.order, one.terms, strict=True):
        if key in known:
            terms.add("=" + term)
            term = "="
        else:
            terms.add("+" + term)
        terms.add(f"{before} {term}")
        before = term
    terms.add(f"{before} $")
    terms.update("-" + term for key, term in zip(two.order, two.terms, strict=True) if key not in ours)
    return terms


def wording_logit(weights: Mapping[str, float], bias: float, one: Traits, two: Traits) -> float:
    """The logit of the chance that the newer statement replaces the older one, by their words alone."""
    get = weights.get
    # Sorted, for a sum of floats depends on its order, and that of a set on the process.
    return bias + sum(sorted(get(term, 0.0) for term in wording_of(one, two)))
