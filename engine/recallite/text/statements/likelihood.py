"""The chance that a later statement replaces an earlier one, by a fit on pairs of statements.

The evidence is of words of change, what both have, and the rules. Each kind has a name; what is absent counts 0. A
logistic regression and a forest of small trees weigh it; the mean of their logits counts. Alone, either found fewer
pairs at the same precision. `benchmarks.training.changes` makes the file.
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

from recallite.system.numerics import kernels
from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.lexicon import SEVERAL
from recallite.text.statements.statement import Statement, Verdict
from recallite.text.statements.traits import Traits, content_of, cues_of, traits_of
from recallite.text.statements.value_changes import shared_ends
from recallite_kernels import Forest

CHANGING = frozenset(("stopped", "ended", "changed", "shifted", "corrected", "done", "again", "now", "instead"))
_FORMS = ("plan", "perfect", "unreal", "sourced", "corrected", "yet", "definite", "command")
_UNSURE = 0.85


def evidence_of(new: Statement, old: Statement, rules: Verdict, cosine: float | None) -> dict[str, float]:
    """The evidence that `new` replaces `old`, by name. `rules`: their verdict; `cosine`: of the vectors, if known."""
    one, two = traits_of(new), traits_of(old)
    evidence: dict[str, float] = {}
    cues = cues_of(new)
    for name in cues:
        evidence["new " + name] = 1.0
    for name in cues_of(old):
        evidence["old " + name] = 1.0
    if "again" in cues and one.past:
        evidence["again, past"] = 1.0
    if "then" in cues and one.past:
        evidence["then, past"] = 1.0
    _words(evidence, one, two, float(not cues.isdisjoint(CHANGING)))
    _persons(evidence, one, two)
    _values(evidence, one, two)
    _form(evidence, new, old, one, two)
    if new.clauses and old.clauses:
        _clauses(evidence, new, old.clauses[0], one, two)
    evidence["rules " + rules.outcome] = rules.confidence if rules.outcome == "supersedes" else 1.0
    if rules.outcome == "supersedes":
        evidence["rule " + rules.reason] = 1.0
    elif rules.outcome == "independent" and rules.confidence < _UNSURE:
        evidence["rules says more"] = 1.0
    if cosine is None:
        evidence["no cosine"] = 1.0
    else:
        evidence["cosine"], evidence["cosine squared"] = cosine, cosine * cosine
        evidence["changing cosine"] = cosine * evidence["changing"]
        evidence["cosine, few shared"] = cosine * (evidence["covered"] < 0.34)
    return evidence


def _words(evidence: dict[str, float], one: Traits, two: Traits, changing: float) -> None:
    """Weigh the words of the older one that the newer one has, rare words counting more."""
    ours, theirs = one.weights, two.weights
    shared = [weight for key, weight in theirs.items() if key in ours]
    common, rarest = fsum(shared), max(shared, default=0.0)
    covered = common / two.total if two.total else 0.0
    covering = common / one.total if one.total else 0.0
    evidence["covered"], evidence["covering"] = covered, covering
    evidence["rarest"], evidence["common"] = rarest / 10.0, min(common, 40.0) / 20.0
    evidence["none shared"] = float(not shared)
    evidence["changing"] = changing
    evidence["changing covered"], evidence["changing covering"] = changing * covered, changing * covering
    evidence["changing rarest"] = changing * rarest / 10.0
    mine, his = fsum(one.known_heads.values()), fsum(two.known_heads.values())
    if mine:
        known = fsum(weight for key, weight in one.known_heads.items() if key in theirs)
        evidence["head new"], evidence["head known"] = float(not known), known / mine
    if his:
        retained = fsum(weight for key, weight in two.known_heads.items() if key in ours)
        evidence["head kept"], evidence["head lost"] = retained / his, float(not retained)
        evidence["head same"] = fsum(weight for key, weight in two.known_heads.items() if key in one.known_heads) / his
    stated = {key: weight for key, weight in theirs.items() if key not in two.known_heads}
    total = fsum(stated.values())
    if total > 1:
        evidence["said kept"] = fsum(weight for key, weight in stated.items() if key in ours) / total
    evidence["said is head"] = float(not stated.keys().isdisjoint(one.known_heads))
    evidence["head first"], evidence["old head first"] = float(not mine and one.first), float(not his and two.first)
    begin, end = shared_ends(one.order, two.order)
    prefix, suffix = begin / max(len(two.order), 1), end / max(len(two.order), 1)
    evidence["prefix"], evidence["suffix"], evidence["ends"] = prefix, suffix, min(prefix + suffix, 1.0)


def _persons(evidence: dict[str, float], one: Traits, two: Traits) -> None:
    ours, theirs = bool(one.headed - two.persons), bool(two.headed - one.persons)
    evidence["other person"], evidence["persons differ"] = float(ours), float(ours and theirs)
    evidence["person missing"] = float(theirs and not one.pronoun)
    evidence["same person"] = float(not one.headed.isdisjoint(two.headed))
    evidence["same name"] = float(not one.names.isdisjoint(two.names))
    evidence["names differ"] = float(bool(one.names - two.names) and bool(two.names - one.names))
    evidence["both first"] = float(one.first and two.first and not one.headed and not two.headed)
    evidence["first differs"], evidence["pronoun"] = float(one.first != two.first), float(one.pronoun)


def _values(evidence: dict[str, float], one: Traits, two: Traits) -> None:
    covered = evidence["covered"]
    both = [(one.numbers[unit], values) for unit, values in two.numbers.items() if unit in one.numbers]
    differs = any(mine.isdisjoint(values) for mine, values in both)
    evidence["value differs"], evidence["value differs covered"] = float(differs), covered * differs
    evidence["value same"] = float(any(not mine.isdisjoint(values) for mine, values in both))
    evidence["value gone"] = float(bool(two.numbers) and not one.numbers)
    evidence["value added"] = float(bool(one.numbers) and not two.numbers)
    evidence["other label"] = float(other_label(one, two))
    same = not one.subjects.isdisjoint(two.subjects)
    evidence["same topic"], evidence["topic changing"] = float(same), same * evidence["changing"]
    opposed = any(line in two.states and two.states[line] != stem for line, stem in one.states.items())
    evidence["state differs"], evidence["state differs covered"] = float(opposed), covered * opposed


def other_label(one: Traits, two: Traits) -> bool:
    """Whether both number the same thing otherwise: "invoice 443", "invoice 444"."""
    return any(two.labels.get(label, value) != value for label, value in one.labels.items())


def _form(evidence: dict[str, float], new: Statement, old: Statement, one: Traits, two: Traits) -> None:
    evidence["old listed"] = float(two.listed)
    evidence["negation"] = float(one.negated != two.negated)
    evidence["negation covered"] = evidence["covered"] * (one.negated != two.negated)
    evidence["new past"], evidence["old past"] = float(one.past), float(two.past)
    evidence["old lasting"] = float(two.lasting)
    evidence["old more"] = float(len(old.clauses) > 1)
    evidence["old long"], evidence["new long"] = len(two.weights) / 8.0, len(one.weights) / 8.0
    evidence["old question"], evidence["new question"] = float(old.question), float(new.question)
    pairs = [(mine, his) for mine in new.clauses for his in old.clauses]
    evidence["same subject"] = float(any(mine.subject and mine.subject == his.subject for mine, his in pairs))
    evidence["same relation"] = float(any(mine.relation == his.relation for mine, his in pairs))
    evidence["relation covered"] = evidence["same relation"] * evidence["covered"]
    evidence["several"] = float(any(clause.relation in SEVERAL for clause in (*new.clauses, *old.clauses)))
    evidence["no clause"] = float(not pairs)


def _clauses(evidence: dict[str, float], new: Statement, former: Clause, one: Traits, two: Traits) -> None:
    """Compare the clauses of the newer one with the first of the older one; of several the most counts."""
    best: dict[str, float] = {}
    theirs = {role: content_of(words) for role, words in former.chunks}
    stated = {key for words in theirs.values() for key in words}
    for clause in new.clauses:
        _theme(best, clause, stated, one, two)
        if clause.gone:
            known = not two.weights.keys().isdisjoint([word.meaning for word in clause.gone])
            best["gone known" if known else "gone unknown"] = 1.0
        same_head = clause.subject == former.subject
        for role, words in clause.chunks:
            ours, his = content_of(words), theirs.get(role)
            if not ours or not his:
                continue
            if ours == his:
                best["slot same"] = 1.0
            elif not ours.isdisjoint(his):
                best["slot in part"] = 1.0
            else:
                mine = {word.meaning for other, some in clause.chunks if other != role for word in some}
                whole = all(words <= mine for other, words in theirs.items() if other != role)
                same_relation = clause.relation == former.relation
                best["slot differs"] = 1.0
                for name, holds in (
                    ("head same", same_head), ("relation same", same_relation),
                    ("all same", same_head and same_relation and whole),
                    ("typed", all(word.kind in lx.TYPED for word in words)),
                    ("changing", clause.change or clause.ends or clause.stopped or clause.now),
                ):  # fmt: skip
                    if holds:
                        best["slot differs, " + name] = 1.0
        if clause.relation == former.relation and clause.negated != former.negated:
            best["opposite relation"] = 1.0
    for name in _FORMS:
        if any(getattr(clause, name) for clause in new.clauses):
            best["new clause " + name] = 1.0
        if getattr(former, name):
            best["old clause " + name] = 1.0
    best["new clauses"] = len(new.clauses) / 3.0
    best["old former"], best["old rest"] = float(former.former), float(bool(former.rest))
    best["old be"], best["old passive"] = float(former.relation == "be"), float(former.passive)
    evidence.update(best)


def _theme(best: dict[str, float], clause: Clause, stated: set[str], one: Traits, two: Traits) -> None:
    """Whether what a clause says changes is what the older statement speaks of."""
    weights = one.weights
    theme = set() if clause.relation == "be" else content_of(dict(clause.chunks).get("", ())) & weights.keys()
    theme = theme or {key for key in [word.meaning for word in clause.head] if key in weights}
    retained = fsum(weights[key] for key in theme if key in two.weights)
    share = retained / fsum(weights[key] for key in theme) if theme else 0.0
    changing = clause.change or clause.ends or clause.stopped
    forms = (
        ("ends", clause.ends), ("stopped", clause.stopped), ("change", clause.change),
        ("done", clause.past and not changing), ("now", clause.now), ("negated", clause.negated),
    )  # fmt: skip
    for name, holds in forms:
        if not holds:
            continue
        best[name + " known"] = max(best.get(name + " known", 0.0), share)
        if not theme:
            best[name + " bare"] = 1.0
        elif not retained:
            best[name + " foreign"] = 1.0
        elif theme <= stated:
            best[name + " of said"] = 1.0
        elif theme <= two.known_heads.keys():
            best[name + " of head"] = 1.0
    best["theme known"] = max(best.get("theme known", 0.0), share)


# The fit.

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


@cache
def _model() -> tuple[Fitted, Forest]:
    fitted = msgspec.json.decode(FILE.read_bytes(), type=Fitted)
    features, thresholds, leaves = zip(*fitted.trees, strict=True)
    return fitted, Forest(np.array(features, np.uint8), np.array(thresholds, np.float64), np.array(leaves, np.float64))


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
    """Whether two statements are like the pairs of the fit: a short one, and one that may say more."""
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
    """The chance that each `new` replaces all that `old` says; None if the fit knows no pairs like it.

    It is 0 if the rules find nothing and the newer one has no word of change: 265 of 2,077 pairs like this were
    superseded, and the fit could not tell which.
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
    model, forest = _model()
    evidence = []
    for pair in [pairs[i] for i in fitted]:
        wording = wording_logit(model.wording, model.wording_bias, traits_of(pair.new), traits_of(pair.old))
        evidence.append(list(map((evidence_of(*pair) | {"wording": wording}).get, model.features, repeat(0.0))))
    leaves = kernels.forest_scores(np.array(evidence, np.float64).T.copy(), forest).tolist()
    for i, cued, values, of_forest in zip(fitted, cues, evidence, leaves, strict=True):
        logit = model.bias + model.base + fsum(map(mul, values, model.weights)) + of_forest
        chance = 1.0 / (1.0 + exp(-0.5 * logit))
        chances[i] = Chance(chance, chance >= (model.threshold if cued else model.threshold_uncued))
    return chances


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
