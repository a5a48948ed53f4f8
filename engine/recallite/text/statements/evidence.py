"""What tells whether a later statement replaces an earlier one: words of change, what both have, and the rules.

The evidence is weighed by `likelihood`. Each kind has a name; what is absent counts 0.
"""

from __future__ import annotations

from math import fsum

from recallite.text.statements.clause import Clause
from recallite.text.statements.relations import SEVERAL
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
    found: dict[str, float] = {}
    cues = cues_of(new)
    for name in cues:
        found["new " + name] = 1.0
    for name in cues_of(old):
        found["old " + name] = 1.0
    if "again" in cues and one.past:
        found["again, past"] = 1.0
    if "then" in cues and one.past:
        found["then, past"] = 1.0
    _words(found, one, two, float(not cues.isdisjoint(CHANGING)))
    _persons(found, one, two)
    _values(found, one, two)
    _form(found, new, old, one, two)
    if new.clauses and old.clauses:
        _clauses(found, new, old.clauses[0], one, two)
    found["rules " + rules.outcome] = rules.confidence if rules.outcome == "supersedes" else 1.0
    if rules.outcome == "supersedes":
        found["rule " + rules.reason] = 1.0
    elif rules.outcome == "independent" and rules.confidence < _UNSURE:
        found["rules says more"] = 1.0
    if cosine is None:
        found["no cosine"] = 1.0
    else:
        found["cosine"], found["cosine squared"] = cosine, cosine * cosine
        found["changing cosine"] = cosine * found["changing"]
        found["cosine, few shared"] = cosine * (found["covered"] < 0.34)
    return found


def _words(found: dict[str, float], one: Traits, two: Traits, changing: float) -> None:
    """Which words of the older one the newer one has, rare words counting more."""
    ours, theirs = one.weights, two.weights
    shared = [weight for key, weight in theirs.items() if key in ours]
    common, rarest = fsum(shared), max(shared, default=0.0)
    covered = common / two.total if two.total else 0.0
    covering = common / one.total if one.total else 0.0
    found["covered"], found["covering"] = covered, covering
    found["rarest"], found["common"] = rarest / 10.0, min(common, 40.0) / 20.0
    found["none shared"] = float(not shared)
    found["changing"] = changing
    found["changing covered"], found["changing covering"] = changing * covered, changing * covering
    found["changing rarest"] = changing * rarest / 10.0
    mine, his = fsum(one.known_heads.values()), fsum(two.known_heads.values())
    if mine:
        known = fsum(weight for key, weight in one.known_heads.items() if key in theirs)
        found["head new"], found["head known"] = float(not known), known / mine
    if his:
        kept = fsum(weight for key, weight in two.known_heads.items() if key in ours)
        found["head kept"], found["head lost"] = kept / his, float(not kept)
        found["head same"] = fsum(weight for key, weight in two.known_heads.items() if key in one.known_heads) / his
    said = {key: weight for key, weight in theirs.items() if key not in two.known_heads}
    total = fsum(said.values())
    if total > 1:
        found["said kept"] = fsum(weight for key, weight in said.items() if key in ours) / total
    found["said is head"] = float(not said.keys().isdisjoint(one.known_heads))
    found["head first"], found["old head first"] = float(not mine and one.first), float(not his and two.first)
    prefix, suffix = _ends(one.order, two.order)
    found["prefix"], found["suffix"], found["ends"] = prefix, suffix, min(prefix + suffix, 1.0)


def _persons(found: dict[str, float], one: Traits, two: Traits) -> None:
    """Whether both speak of the same person."""
    ours, theirs = bool(one.headed - two.persons), bool(two.headed - one.persons)
    found["other person"], found["persons differ"] = float(ours), float(ours and theirs)
    found["person missing"] = float(theirs and not one.pronoun)
    found["same person"] = float(not one.headed.isdisjoint(two.headed))
    found["same name"] = float(not one.names.isdisjoint(two.names))
    found["names differ"] = float(bool(one.names - two.names) and bool(two.names - one.names))
    found["both first"] = float(one.first and two.first and not one.headed and not two.headed)
    found["first differs"], found["pronoun"] = float(one.first != two.first), float(one.pronoun)


def _values(found: dict[str, float], one: Traits, two: Traits) -> None:
    """Which typed values, states and subjects differ."""
    covered = found["covered"]
    both = [(one.numbers[unit], values) for unit, values in two.numbers.items() if unit in one.numbers]
    differs = any(mine.isdisjoint(values) for mine, values in both)
    found["value differs"], found["value differs covered"] = float(differs), covered * differs
    found["value same"] = float(any(not mine.isdisjoint(values) for mine, values in both))
    found["value gone"] = float(bool(two.numbers) and not one.numbers)
    found["value added"] = float(bool(one.numbers) and not two.numbers)
    found["other label"] = float(other_label(one, two))
    same = not one.subjects.isdisjoint(two.subjects)
    found["same topic"], found["topic changing"] = float(same), same * found["changing"]
    opposed = any(line in two.states and two.states[line] != stem for line, stem in one.states.items())
    found["state differs"], found["state differs covered"] = float(opposed), covered * opposed


def other_label(one: Traits, two: Traits) -> bool:
    """Whether both number the same thing otherwise: "invoice 443", "invoice 444"."""
    return any(two.labels.get(label, value) != value for label, value in one.labels.items())


def _form(found: dict[str, float], new: Statement, old: Statement, one: Traits, two: Traits) -> None:
    found["old listed"] = float(two.listed)
    found["negation"] = float(one.negated != two.negated)
    found["negation covered"] = found["covered"] * (one.negated != two.negated)
    found["new past"], found["old past"], found["old lasting"] = float(one.past), float(two.past), float(two.lasting)
    found["old more"] = float(len(old.clauses) > 1)
    found["old long"], found["new long"] = len(two.weights) / 8.0, len(one.weights) / 8.0
    found["old question"], found["new question"] = float(old.question), float(new.question)
    pairs = [(mine, his) for mine in new.clauses for his in old.clauses]
    found["same subject"] = float(any(mine.subject and mine.subject == his.subject for mine, his in pairs))
    found["same relation"] = float(any(mine.relation == his.relation for mine, his in pairs))
    found["relation covered"] = found["same relation"] * found["covered"]
    found["several"] = float(any(clause.relation in SEVERAL for clause in (*new.clauses, *old.clauses)))
    found["no clause"] = float(not pairs)


def _clauses(found: dict[str, float], new: Statement, former: Clause, one: Traits, two: Traits) -> None:
    """What the clauses of the newer one say of the first of the older one; of several the most counts."""
    best: dict[str, float] = {}
    theirs = {role: content_of(words) for role, words in former.chunks}
    said = {key for words in theirs.values() for key in words}
    for clause in new.clauses:
        _theme(best, clause, said, one, two)
        if clause.gone:
            known = not two.weights.keys().isdisjoint([word.meaning for word in clause.gone])
            best["gone known" if known else "gone unknown"] = 1.0
        same_head = clause.subject == former.subject
        for role, words in clause.chunks:
            own, their = content_of(words), theirs.get(role)
            if not own or not their:
                continue
            if own == their:
                best["slot same"] = 1.0
            elif not own.isdisjoint(their):
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
    found.update(best)


def _theme(best: dict[str, float], clause: Clause, said: set[str], one: Traits, two: Traits) -> None:
    """Whether what a clause says changes is what the older statement speaks of."""
    weights = one.weights
    theme = set() if clause.relation == "be" else content_of(dict(clause.chunks).get("", ())) & weights.keys()
    theme = theme or {key for key in [word.meaning for word in clause.head] if key in weights}
    kept = fsum(weights[key] for key in theme if key in two.weights)
    share = kept / fsum(weights[key] for key in theme) if theme else 0.0
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
        elif not kept:
            best[name + " foreign"] = 1.0
        elif theme <= said:
            best[name + " of said"] = 1.0
        elif theme <= two.known_heads.keys():
            best[name + " of head"] = 1.0
    best["theme known"] = max(best.get("theme known", 0.0), share)


def _kept(clause: Clause, theirs: dict[str, set[str]], role: str) -> bool:
    """Whether a clause has all that the older one says in other roles."""
    mine = {word.meaning for own, words in clause.chunks if own != role for word in words}
    return all(words <= mine for own, words in theirs.items() if own != role)


def _slot(best: dict[str, float], clause: Clause, former: Clause, head: bool, typed: bool, kept: bool) -> None:
    """A role with another value."""
    relation = clause.relation == former.relation
    best["slot differs"] = 1.0
    for name, holds in (
        ("head same", head), ("relation same", relation), ("all same", head and relation and kept), ("typed", typed),
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
