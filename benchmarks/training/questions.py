"""Stores that hold the answers of some of their questions and not of others, cut from the training data."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.training import notes
from benchmarks.training.data import SETS, Question, Store, stores

NOTES = "notes"
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


def variants(repositories: Path, sets: Sequence[str] = (*SETS, NOTES), seed: int = 0) -> Iterator[Variant]:
    """Every store without the answers of half of its questions, parts of 2 to 60 records, some large stores, and notes.

    An open question is one whose answer was taken out: everything else on its topic is still there. The questions that
    a store answers and those that it leaves open are asked of the same store, so its size tells them apart in no way.
    """
    if NOTES in sets:
        for name, records, questions in notes.stores(seed):
            yield Variant((NOTES, name), "whole", records, questions, [])
    for name in sets:
        if name == NOTES:
            continue
        chance = random.Random(f"{name} {seed}")
        collected = stores(repositories, "ranking", (name,))[:: _EVERY.get(name, 1)]
        for place, store in enumerate(collected):
            other = collected[(place + 1 + chance.randrange(len(collected) - 1)) % len(collected)]
            for _ in range(2 if len(collected) < 20 else 1):
                yield _without((name, store.name), "whole", store, other, chance)
            for _ in range(_PARTS[name]):
                yield _part((name, store.name), store, other, chance)
        if name in _MERGED:
            count = _MERGED[name]
            for start in range(0, len(collected) - count + 1, count):
                merged = _merged(collected[start : start + count])
                yield _without((name, merged.name), "merged", merged, None, chance)


def _taken_out(questions: Sequence[Question], chance: random.Random) -> set[int]:
    """Turns without which half of the questions have no answer; questions may share their answers."""
    gone: set[int] = set()
    answerable = [set(question.gold) for question in questions if question.gold]
    for gold in chance.sample(answerable, len(answerable)):
        if 2 * sum(question <= gone for question in answerable) >= len(answerable):
            break
        gone |= gold
    return gone


def _merged(members: Sequence[Store]) -> Store:
    """Several stores as one."""
    turns: list[dict[str, Any]] = []
    questions = []
    for store in members:
        first = len(turns)
        turns += store.turns
        questions += [
            Question(question.text, tuple(first + place for place in question.gold), question.answerable)
            for question in store.questions
        ]
    return Store(members[0].name, turns, questions)


def _without(of: tuple[str, str], size: str, store: Store, other: Store | None, chance: random.Random) -> Variant:
    """The store without the answers of half of its questions."""
    gone = _taken_out(store.questions, chance)
    remaining = [place for place in range(len(store.turns)) if place not in gone]
    elsewhere = [] if other is None else chance.sample(other.questions, min(_ASKED_ELSEWHERE, len(other.questions)))
    return Variant(
        of,
        size,
        [store.turns[place] for place in remaining],
        _answered(store.questions, remaining),
        [question.text for question in elsewhere],
    )


def _answered(questions: Sequence[Question], remaining: Sequence[int]) -> list[tuple[str, frozenset[int]]]:
    """Each question with what answers it among the turns at these places."""
    now = {place: new for new, place in enumerate(remaining)}
    return [(question.text, frozenset(now[place] for place in question.gold if place in now)) for question in questions]


def _part(of: tuple[str, str], store: Store, other: Store, chance: random.Random) -> Variant:
    """Some records from around what answers a question, or from anywhere."""
    answerable = [question for question in store.questions if question.gold]
    count = min(round(exp(chance.uniform(log(_LEAST), log(_MOST)))), len(store.turns) - 1)
    middle = chance.choice(chance.choice(answerable).gold)
    window = range(len(store.turns))
    if chance.random() < _ALIKE:
        first = max(0, min(middle - count, len(store.turns) - 2 * count))
        window = range(first, min(first + 2 * count, len(store.turns)))
    near = [question for question in answerable if window[0] <= min(question.gold) and max(question.gold) <= window[-1]]
    near = chance.sample(near, min(len(near), max(1, count)))
    gone = _taken_out(near, chance)
    right = {place for question in near for place in question.gold} - gone
    right = set(chance.sample(sorted(right), min(len(right), max(1, count // 2))))
    rest = [place for place in window if place not in gone and place not in right]
    drawn = sorted(right | set(chance.sample(rest, min(len(rest), max(1, count - len(right))))))
    keys = {"text"} | chance.choice((set(), {"context"}, {"context"}, {"context", "source", "position"}))
    return Variant(
        of,
        "part",
        [{key: value for key, value in store.turns[place].items() if key in keys} for place in drawn],
        _answered(near, drawn),
        [question.text for question in chance.sample(other.questions, min(2, len(other.questions)))],
    )
