"""The chance that a later statement replaces an earlier one, by a fit on pairs of statements.

A logistic regression and a forest of small trees weigh the evidence; the mean of their logits counts. Alone, either
found fewer pairs at the same precision. `recallite_models.training.changes` makes the file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import accumulate
from math import exp, fsum, inf, log
from pathlib import Path
from typing import NamedTuple

import msgspec

from recallite.text.statements.evidence import CHANGING, evidence_of, other_label
from recallite.text.statements.statement import Statement
from recallite.text.statements.traits import cues_of, traits_of
from recallite.text.statements.verdict import Verdict
from recallite.text.statements.wording import wording_logit

FILE = Path(__file__).with_name("likelihood.json")
DEPTH = 3
_INNER = 2**DEPTH - 1


class Fitted(msgspec.Struct):
    """What was fitted.

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
    """`least`: the mean logit of the lower threshold; `most`: how much each tree and those after it can add."""

    threshold: float
    threshold_uncued: float
    least: float
    weights: dict[str, float]
    bias: float
    trees: list[tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...]]]
    most: list[float]
    wording: dict[str, float]
    wording_bias: float


@cache
def _model() -> _Model:
    fitted = msgspec.json.decode(FILE.read_bytes(), type=Fitted)
    names = fitted.features
    trees = [
        (tuple(names[place] for place in places), tuple(thresholds), tuple(leaves))
        for places, thresholds, leaves in fitted.trees
    ]
    weights = dict(zip(names, fitted.weights, strict=True))
    most = list(accumulate(max(leaves) for _, _, leaves in reversed(trees)))[::-1]
    lower = min(fitted.threshold, fitted.threshold_uncued)
    return _Model(
        fitted.threshold, fitted.threshold_uncued, log(lower / (1.0 - lower)), weights, fitted.bias + fitted.base,
        trees, most, fitted.wording, fitted.wording_bias,
    )  # fmt: skip


class Chance(NamedTuple):
    """The chance that a statement is replaced, and whether it is high enough to count on."""

    value: float
    sure: bool


_NONE = Chance(0.0, False)


def is_cued(new: Statement, old: Statement) -> bool:
    """Whether the newer statement has a word of change, or one is negated and the other is not."""
    return new.negated != old.negated or not cues_of(new).isdisjoint(CHANGING)


def is_known(new: Statement, old: Statement) -> bool:
    """Whether two statements are like those of the fit: one short one, and one that may say more."""
    if not (new.replacing and old.replaceable):
        return False
    if any(clause.relation == "die" and "in" in dict(clause.chunks) for clause in new.clauses):
        return False  # "the author died in Portland" tells of a life; it is no news
    one, two = traits_of(new), traits_of(old)
    return bool(two.weights) and bool(one.weights) and not other_label(one, two)


def chance_replaced(
    new: Statement, old: Statement, rules: Verdict, cosine: Callable[[], float | None] | float | None
) -> Chance | None:
    """The chance that `new` replaces all that `old` says; None where the fit knows nothing of such.

    It is 0 where the rules find nothing and it cannot reach the threshold.

    `rules`: what the rules say of the two; `cosine`: of their vectors, where both have one, or what gives it.
    """
    # Most pairs end here, so this comes first.
    cued = bool(old.words and new.words) and is_cued(new, old)
    if rules.outcome != "supersedes" and not cued:
        return _NONE  # of 2,077 such pairs 265 were superseded; the fit could not tell which
    if not is_known(new, old):
        return None
    model = _model()
    one, two = traits_of(new), traits_of(old)
    wording = wording_logit(model.wording, model.wording_bias, one, two)
    found = evidence_of(new, old, rules, cosine() if callable(cosine) else cosine)
    found["wording"] = wording
    weights = model.weights
    logit = model.bias + fsum(value * weights.get(name, 0.0) for name, value in found.items())
    least = 2 * model.least if rules.outcome != "supersedes" else -inf
    get = found.get
    for (names, thresholds, leaves), most in zip(model.trees, model.most, strict=True):
        if logit + most < least:
            return _NONE
        node = 0
        while node < _INNER:
            node = 2 * node + (2 if get(names[node], 0.0) > thresholds[node] else 1)
        logit += leaves[node - _INNER]
    chance = 1.0 / (1.0 + exp(-0.5 * logit))
    return Chance(chance, chance >= (model.threshold if cued else model.threshold_uncued))
