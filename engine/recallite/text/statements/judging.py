"""Judging: the relation of a new statement to an older one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from recallite.text.normalise import text_key
from recallite.text.statements.clause import Clause
from recallite.text.statements.clause_changes import FORMER, REPLACED, apart, compare
from recallite.text.statements.doubts import ELSEWHERE, doubt, spelled_alike
from recallite.text.statements.instructions import REASONS, judge_instructions
from recallite.text.statements.lexicon import SEVERAL
from recallite.text.statements.likelihood import Chance, Ruled, chances_replaced, is_cued
from recallite.text.statements.other_languages import ANOTHER, ENDED, compare_in_other_languages
from recallite.text.statements.over import successor_of
from recallite.text.statements.statement import Statement
from recallite.text.statements.statement_words import TYPED
from recallite.text.statements.verdict import Finding, Outcome, Verdict

_ORDER: tuple[Outcome, ...] = ("independent", "same", "contradicts", "supersedes")
FILE = Path(__file__).with_name("confidence.json")
"""The share of times that each rule is right, as `benchmarks.training.statements` counted."""
_UNRATED = 0.7
# The least confidence of what the fit is sure of: that which policies ask for by default.
_SURE = 0.8
# If the surest rules find that a value was replaced, the fit has to hold it only for likely.
_CERTAIN, _LIKELY = 0.97, 0.6
_TOO = frozenset(("too", "also"))
MOST_REPLACED = 2
"""The most clauses of a statement that the rules replace."""
_MOST_ADDED = 3
# Reasons unknown to the fit: its pairs are English, and have no "A was replaced by B", "I used to" and instructions.
_UNFITTED = REASONS | {ENDED, ANOTHER, REPLACED, FORMER}
_ENDS = frozenset(("no longer holds", "has ended", "was called off"))


class Pair(NamedTuple):
    """Two statements of the same scope and kind.

    `cosine`: of their vectors, if both have one; `later`: whether `new` begins to hold after `old`, not at one moment.
    """

    new: Statement
    old: Statement
    cosine: float | None
    later: bool


def judge(
    new: Statement, old: Statement, *, cosine: float | None, later: bool, several: frozenset[str] = SEVERAL
) -> Verdict:
    """The verdict on one pair."""
    return judge_all([Pair(new, old, cosine, later)], several)[0]


def judge_all(pairs: Sequence[Pair], several: frozenset[str] = SEVERAL) -> list[Verdict]:
    """The verdicts on pairs: the rules decide; if they find nothing, a fit on pairs may (`likelihood`).

    `several`: the stems of relations that may hold several values.
    """
    ruled = [Ruled(pair.new, pair.old, judge_by_rules(pair.new, pair.old, several), pair.cosine) for pair in pairs]
    fitted = [place for place, pair in enumerate(ruled) if _may_fit(pair, several)]
    chances = dict(zip(fitted, chances_replaced([ruled[place] for place in fitted]), strict=True))
    return [
        _decided(pair, rules.rules, chances.get(place))
        for place, (pair, rules) in enumerate(zip(pairs, ruled, strict=True))
    ]


def _may_fit(pair: Ruled, several: frozenset[str]) -> bool:
    if pair.rules.outcome == "same" or pair.rules.reason in _UNFITTED:
        return False
    return several == SEVERAL or not _added(pair.new, pair.old, several - SEVERAL)


def _decided(pair: Pair, rules: Verdict, chance: Chance | None) -> Verdict:
    """The verdict by the rules, the chance that the fit gives, and the doubts."""
    new, old, _, later = pair
    if rules.outcome == "same":
        return rules if spelled_alike(new.text, old.text) else Verdict("independent", _UNRATED, "spelled otherwise")
    sure = chance is not None and (
        chance.sure or (rules.confidence >= _CERTAIN and chance.value >= _LIKELY and rules.outcome == "supersedes")
    )
    if rules.outcome != "supersedes" and not sure:
        return rules
    reason = rules.reason if rules.outcome == "supersedes" else "says what changed"
    doubted = None if reason in REASONS else doubt(new, old)
    # Of 15 such pairs that the fit finds alone, by folds, 14 were replaced.
    overruled = rules.outcome != "supersedes" and doubted is not None and doubted.reason == ELSEWHERE
    if doubted is not None and not (overruled and is_cued(new, old)):
        return Verdict(doubted.outcome, _UNRATED, f"{reason}, but {doubted.reason}")
    if not later:
        return Verdict("contradicts", _UNRATED, f"{reason}, but began earlier")
    if _of_two_sources(new, old):
        return Verdict("contradicts", _UNRATED, f"{reason}; of two sources")
    if chance is None:
        return rules
    # What a rule finds is among the evidence of the fit, which doubts it in a tenth of such pairs, and is mostly right.
    confidence = max(chance.value, _SURE) if sure else min(chance.value, _UNRATED)
    return Verdict("supersedes", round(confidence, 3), reason)


def _added(new: Statement, old: Statement, more: frozenset[str]) -> bool:
    """Whether both say one of `more` relations, which hold several values."""
    return any(
        one.relation == other.relation and one.relation in more and not one.stopped and not one.gone
        for one in new.clauses
        for other in old.clauses
    )


def _of_two_sources(new: Statement, old: Statement) -> bool:
    """Whether two say it, and neither of the other. Who is not named is another than who is."""
    if new.speaker == old.speaker:
        return False
    named = {stem for clause in new.clauses for stem in clause.subject if stem != new.speaker}
    named |= {stem for clause in old.clauses for stem in clause.subject if stem != old.speaker}
    return new.speaker not in named and old.speaker not in named


def judge_by_rules(new: Statement, old: Statement, several: frozenset[str] = SEVERAL) -> Verdict:
    """The verdict of the rules alone on two statements, the newer of which begins to hold later."""
    if new.text == old.text and new.speaker == old.speaker:
        return Verdict("same", 1.0, "the same text")
    if not new.words and not old.words and new.speaker == old.speaker and text_key(new.text) == text_key(old.text):
        return Verdict("same", 0.97, "the same text but for its case and marks")
    if ((new.canon() and new.canon() == old.canon()) or _same(new, old)) and _adds(new) == _adds(old):
        return Verdict("same", 0.97, "says the same")
    if (verdict := judge_instructions(new.text, old.text)) is not None:
        return verdict
    if (successor := successor_of(old)) and _states(new, successor):
        return _rated("supersedes", REPLACED)
    foreign = compare_in_other_languages(new, old)
    if foreign is not None:
        return _rated(foreign.outcome, foreign.reason)
    best = _best_finding(new, old, several)
    if best is None:
        return Verdict("independent", 0.9, "both may hold")
    return _verdict(best, new, old)


def _best_finding(new: Statement, old: Statement, several: frozenset[str]) -> Finding | None:
    """Return what the rules find of two clauses, the greatest by `_order` of several."""
    best: Finding | None = None
    for clause in new.clauses:
        for former in old.clauses:
            if apart(clause, former):
                continue
            changed = any(tells_change(other) for other in new.clauses if other is not clause)
            finding = compare(clause, former, several, changed, new.mentions())
            if finding is not None and (best is None or _order(finding) > _order(best)):
                best = finding
    return best


def _verdict(finding: Finding, new: Statement, old: Statement) -> Verdict:
    alone = len(old.clauses) == 1 and old.whole and not old.question
    if finding.outcome == "contradicts":
        if alone and len(new.clauses) <= MOST_REPLACED:
            return _rated("contradicts", finding.reason)
        return Verdict("independent", 0.8, "the older one says more")
    # What ended has ended with all that was added to it.
    added = sum(word.kind not in TYPED for word in old.clauses[0].rest)
    adds = added > (_MOST_ADDED if finding.reason in _ENDS else 0)
    if not alone or adds:
        if max(len(old.clauses), len(new.clauses)) <= MOST_REPLACED and finding.cued and old.whole and new.whole:
            return Verdict("contradicts", 0.6, f"{finding.reason}; the older one says more")
        return Verdict("independent", 0.7, "the older one says more")
    return _rated("supersedes", finding.reason)


def _states(statement: Statement, name: frozenset[str]) -> bool:
    """Whether a statement tells of something by its name, as what is so: "Uses Biome"."""
    return any(
        name <= clause.stated | clause.subject and not (clause.former or clause.unreal or clause.negated or clause.plan)
        for clause in statement.clauses
    )


def _rated(outcome: Outcome, reason: str) -> Verdict:
    return Verdict(outcome, confidences()[outcome].get(reason, _UNRATED), reason)


@cache
def confidences() -> dict[str, dict[str, float]]:
    """The share of times that a rule is right, by outcome and reason."""
    return msgspec.json.decode(FILE.read_bytes(), type=_Fitted).confidences


class _Fitted(msgspec.Struct):
    confidences: dict[str, dict[str, float]]


def _order(finding: Finding) -> tuple[int, bool]:
    return (_ORDER.index(finding.outcome), finding.cued)


def tells_change(clause: Clause) -> bool:
    """Whether a clause tells of an event, a change or an end."""
    return bool(clause.stopped or clause.ends or clause.change or clause.corrected or clause.gone or clause.past)


def _same(new: Statement, old: Statement) -> bool:
    if not (len(new.clauses) == len(old.clauses) == 1 and new.whole and old.whole) or new.question or old.question:
        return False
    one, other = new.clauses[0], old.clauses[0]
    if one.relation != other.relation or _form(one) != _form(other) or one.gone or other.gone:
        return False
    if not one.chunks and one.relation in ("be", "have"):
        return False
    stated = [{role: [word.key for word in words] for role, words in clause.chunks} for clause in (one, other)]
    if one.subject == other.subject and stated[0] == stated[1]:
        return True
    return one.relation == "be" and one.subject == other.every and other.subject == one.every


def _adds(statement: Statement) -> bool:
    """Whether it says "too": then it tells of another one."""
    return any(word.text in _TOO for word in statement.words)


def _form(clause: Clause) -> tuple[object, ...]:
    return (
        clause.negated, clause.past, clause.plan, clause.former, clause.unreal, clause.stopped, clause.ends,
        clause.command, clause.rest,
    )  # fmt: skip
