"""Stores that hold the answers of some of their questions and not of others, cut from the training data."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

from recallite_models.training.data import SETS, Question, Store, stores

SIZES = ("whole", "part", "merged")
# How many parts are cut from a store of the set, and how many of its stores make one large one.
_PARTS = {"friendsqa": 16, "molweni": 24, "qmsum": 2, "facts": 1}
_MERGED = {"friendsqa": 8, "qmsum": 12}
# Of QMSum's meetings and of the stores made from facts, one in this many.
_EVERY = {"qmsum": 3, "facts": 2}
_LEAST, _MOST = 2, 60
_ASKED_ELSEWHERE = 10
_ALIKE = 0.7


class Variant(NamedTuple):
    """A store, and questions with the places of what answers them there; none for those that it leaves open.

    `of` is the set and the conversation, which folds keep together. `questions` are of the same conversation, and
    `elsewhere` of another.
    """

    of: tuple[str, str]
    size: str
    turns: list[dict[str, Any]]
    questions: list[tuple[str, frozenset[int]]]
    elsewhere: list[str]


def variants(repositories: Path, sets: Sequence[str] = tuple(SETS), seed: int = 0) -> Iterator[Variant]:
    """Every store without the answers of half of its questions, parts of 2 to 60 records, and some large stores.

    An open question is one whose answer was taken out: everything else on its topic is still there. The questions that
    a store answers and those that it leaves open are asked of the same store, so its size tells them apart in no way.
    """
    for name in sets:
        chance = random.Random(f"{name} {seed}")
        found = stores(repositories, "ranking", (name,))[:: _EVERY.get(name, 1)]
        for place, store in enumerate(found):
            other = found[(place + 1 + chance.randrange(len(found) - 1)) % len(found)]
            for _ in range(2 if len(found) < 20 else 1):
                yield _without((name, store.name), "whole", store, other, chance)
            for _ in range(_PARTS[name]):
                yield _part((name, store.name), store, other, chance)
        if name in _MERGED:
            count = _MERGED[name]
            for start in range(0, len(found) - count + 1, count):
                merged = _merged(found[start : start + count])
                yield _without((name, merged.name), "merged", merged, None, chance)


def _taken_out(questions: Sequence[Question], chance: random.Random) -> set[int]:
    """Turns without which half of the questions have no answer; questions may share their answers."""
    gone: set[int] = set()
    answerable = [set(each.gold) for each in questions if each.gold]
    for gold in chance.sample(answerable, len(answerable)):
        if 2 * sum(each <= gone for each in answerable) >= len(answerable):
            break
        gone |= gold
    return gone


def _merged(found: Sequence[Store]) -> Store:
    """Several stores as one."""
    turns: list[dict[str, Any]] = []
    questions = []
    for store in found:
        first = len(turns)
        turns += store.turns
        questions += [
            Question(each.text, tuple(first + place for place in each.gold), each.answerable)
            for each in store.questions
        ]
    return Store(found[0].name, turns, questions)


def _without(of: tuple[str, str], size: str, store: Store, other: Store | None, chance: random.Random) -> Variant:
    """The store without the answers of half of its questions."""
    gone = _taken_out(store.questions, chance)
    kept = [place for place in range(len(store.turns)) if place not in gone]
    elsewhere = [] if other is None else chance.sample(other.questions, min(_ASKED_ELSEWHERE, len(other.questions)))
    return Variant(
        of,
        size,
        [store.turns[place] for place in kept],
        _answered(store.questions, kept),
        [each.text for each in elsewhere],
    )


def _answered(questions: Sequence[Question], kept: Sequence[int]) -> list[tuple[str, frozenset[int]]]:
    """Each question with what answers it among the turns at these places."""
    now = {place: new for new, place in enumerate(kept)}
    return [(each.text, frozenset(now[place] for place in each.gold if place in now)) for each in questions]


def _part(of: tuple[str, str], store: Store, other: Store, chance: random.Random) -> Variant:
    """Some records from around what answers a question, or from anywhere."""
    answerable = [each for each in store.questions if each.gold]
    count = min(round(exp(chance.uniform(log(_LEAST), log(_MOST)))), len(store.turns) - 1)
    middle = chance.choice(chance.choice(answerable).gold)
    window = range(len(store.turns))
    if chance.random() < _ALIKE:
        first = max(0, min(middle - count, len(store.turns) - 2 * count))
        window = range(first, min(first + 2 * count, len(store.turns)))
    near = [each for each in answerable if window[0] <= min(each.gold) and max(each.gold) <= window[-1]]
    near = chance.sample(near, min(len(near), max(1, count)))
    gone = _taken_out(near, chance)
    right = {place for each in near for place in each.gold} - gone
    right = set(chance.sample(sorted(right), min(len(right), max(1, count // 2))))
    rest = [place for place in window if place not in gone and place not in right]
    drawn = sorted(right | set(chance.sample(rest, min(len(rest), max(1, count - len(right))))))
    keys = {"text"} | chance.choice((set(), {"context"}, {"context"}, {"context", "source", "position"}))
    return Variant(
        of,
        "part",
        [{key: value for key, value in store.turns[place].items() if key in keys} for place in drawn],
        _answered(near, drawn),
        [each.text for each in chance.sample(other.questions, min(2, len(other.questions)))],
    )
