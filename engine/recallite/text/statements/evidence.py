"""Evidence whether a later statement replaces an earlier one: words of change, what both have, and the rules.

The evidence is weighed by `likelihood`. Each kind has a name; what is absent counts 0.
"""

from __future__ import annotations

from math import fsum

from recallite.text.statements.clause import Clause
from recallite.text.statements.lexicon import SEVERAL
from recallite.text.statements.statement import Statement
from recallite.text.statements.statement_words import TYPED
from recallite.text.statements.traits import Traits, content_of, cues_of, traits_of
from recallite.text.statements.verdict import Verdict

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
    prefix, suffix = _ends(one.order, two.order)
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
    evidence["new past"], evidence["old past"], evidence["old lasting"] = (
        float(one.past),
        float(two.past),
        float(two.lasting),
    )
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
                typed = all(word.kind in TYPED for word in words)
                _slot(best, clause, former, same_head, typed, _kept(clause, theirs, role))
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


def _kept(clause: Clause, theirs: dict[str, set[str]], role: str) -> bool:
    """Whether a clause has all that the older one says in other roles."""
    mine = {word.meaning for other, words in clause.chunks if other != role for word in words}
    return all(words <= mine for other, words in theirs.items() if other != role)


def _slot(best: dict[str, float], clause: Clause, former: Clause, head: bool, typed: bool, whole: bool) -> None:
    """A role with another value."""
    relation = clause.relation == former.relation
    best["slot differs"] = 1.0
    for name, holds in (
        ("head same", head), ("relation same", relation), ("all same", head and relation and whole), ("typed", typed),
        ("changing", clause.change or clause.ends or clause.stopped or clause.now),
    ):  # fmt: skip
        if holds:
            best["slot differs, " + name] = 1.0


def _ends(new: tuple[str, ...], old: tuple[str, ...]) -> tuple[float, float]:
    """The shares of the older one's words that the newer one begins and ends with, too."""
    least = min(len(new), len(old))
    begin = end = 0
    while begin < least and new[begin] == old[begin]:
        begin += 1
    while end < least - begin and new[-1 - end] == old[-1 - end]:
        end += 1
    size = max(len(old), 1)
    return begin / size, end / size
