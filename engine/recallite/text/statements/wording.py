"""Wording: the words that two statements share, and those that only one has, as the fit weighs them one by one."""

from __future__ import annotations

from collections.abc import Mapping

from recallite.text.statements.traits import Traits


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
