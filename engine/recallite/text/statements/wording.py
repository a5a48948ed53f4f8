"""Which words two statements share, and which only one of them has, as the fit weighs them one by one."""

from __future__ import annotations

from collections.abc import Mapping

from recallite.text.statements.traits import Traits


def wording_of(one: Traits, two: Traits) -> set[str]:
    """The terms of a newer and an older statement: "+" only of the newer one, "-" only of the older one, "=" of both.

    And pairs of neighbours of the newer one, in which each word that both have is "=": "sold =", "no longer".
    """
    known, own = frozenset(two.order), frozenset(one.order)
    found = set()
    before = "^"
    for key, term in zip(one.order, one.terms, strict=True):
        if key in known:
            found.add("=" + term)
            term = "="
        else:
            found.add("+" + term)
        found.add(f"{before} {term}")
        before = term
    found.add(f"{before} $")
    found.update("-" + term for key, term in zip(two.order, two.terms, strict=True) if key not in own)
    return found


def wording_logit(weights: Mapping[str, float], bias: float, one: Traits, two: Traits) -> float:
    """The logit of the chance that the newer statement replaces the older one, by their words alone."""
    get = weights.get
    # Sorted, for a sum of floats depends on its order, and that of a set on the process.
    return bias + sum(sorted(get(term, 0.0) for term in wording_of(one, two)))
