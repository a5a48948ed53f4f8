"""Stores of short notes on one user, and questions that ask for a note's neighbour: what confidence is fitted on.

The types of facts are those of the split "ranking" (`benchmarks.training.facts`). A store has 4 to 40 facts, as
notes of the user or about the user. Half of its questions ask for a fact that it has. The others are about the subject
of a fact that it has and ask for something else (`off`), or ask for a fact that it lacks.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

from benchmarks.training.facts import OVERLAPS, Kind, by_name, kinds, personal, slot_fillings

STORES = 200
_LEAST, _MOST = 4, 40
_THIRD = {"am": "is", "'m": " is", "have": "has", "'ve": " has", "do": "does", "don't": "doesn't", "was": "was"}
_PAST = frozenset(
    (
        "got", "found", "broke", "gave", "grew", "had", "held", "lent", "bought", "put", "saw", "was", "went", "won",
        "could", "would", "will", "can", "should", "must", "never", "always", "still", "just",
    )
)  # fmt: skip


def stores(seed: int = 0) -> Iterator[tuple[str, list[dict[str, Any]], list[tuple[str, frozenset[int]]]]]:
    """Return each store's name, its records, and its questions with the place of what answers, if anything does."""
    for number in range(STORES):
        records, questions = _store(random.Random(f"notes {seed} {number}"), number % 2 == 1)
        answered = [(text, frozenset[int]() if place is None else frozenset([place])) for text, place in questions]
        yield f"notes-{seed}-{number}", records, answered


def of_user(statement: str) -> str | None:
    """A statement in the first person as one notes it about the user, None where that takes more than these rules."""
    if re.search(r"\b(?:me|we|us|our|ours|mine|myself)\b", statement, re.IGNORECASE):
        return None
    statement = re.sub(r"\bI('m|'ve| am| have| do| don't| was)\b", lambda match: f"User{_verb(match[1])}", statement)
    statement = re.sub(
        r"\bI ((?:often|only|now|once) )?(\w+)",
        lambda match: f"User {match[1] or ''}{_conjugated(match[2])}",
        statement,
    )
    statement = re.sub(r"\bMy\b", "User's", statement)
    statement = re.sub(r"\bmy\b", "their" if statement.startswith("User") else "the user's", statement)
    return None if re.search(r"\bI\b", statement) else statement


def _verb(verb: str) -> str:
    third_person = _THIRD[verb.strip()]
    return third_person if third_person.startswith(" ") else f" {third_person}"


def _conjugated(verb: str) -> str:
    if verb in _PAST or verb.endswith("ed"):
        return verb
    return f"{verb}es" if re.search(r"(?:s|sh|ch|o)$", verb) else f"{verb}s"


def _store(chance: random.Random, third_person: bool) -> tuple[list[dict[str, Any]], list[tuple[str, int | None]]]:
    listed, lacking = _listed(chance, third_person)
    slots, tagged = slot_fillings(chance), chance.random() < 0.5
    records: list[dict[str, Any]] = []
    questions: list[tuple[str, int | None]] = []
    for kind in listed:
        says = [text for text in (of_user(say) if third_person else say for say in kind.say) if text is not None]
        wording = {name: values[0] for name, values in slots.items()}
        records.append({"text": chance.choice(says).format(**wording)})
        if tagged:
            records[-1]["tags"] = [kind.name.replace("_", " ")]
        questions.append((chance.choice(kind.ask).format(**wording), len(records) - 1))
        if chance.random() < 0.7:
            questions.append((chance.choice(kind.off).format(**wording), None))
        for values in slots.values():
            values.append(values.pop(0))
    wording = {name: values[0] for name, values in slots.items()}
    questions += [(chance.choice(kind.ask).format(**wording), None) for kind in lacking]
    order = chance.sample(range(len(records)), len(records))
    now = {place: rank for rank, place in enumerate(order)}
    worded = {
        by_name(question, "the user") if third_person and personal(question) else question: place
        for question, place in questions
    }
    return [records[place] for place in order], [
        (question[:1].upper() + question[1:], None if place is None else now[place])
        for question, place in worded.items()
    ]


def _listed(chance: random.Random, third_person: bool) -> tuple[list[Kind], list[Kind]]:
    """The types of a store, none beside one that answers its questions, and a few that it lacks."""
    order = list(kinds("ranking"))
    chance.shuffle(order)
    wanted = chance.randint(_LEAST, _MOST)
    listed: list[Kind] = []
    lacking: list[Kind] = []
    for kind in order:
        near = {name for group in OVERLAPS if kind.name in group for name in group}
        if any(other.name in near for other in listed):
            continue
        if third_person and all(of_user(say) is None for say in kind.say):
            continue
        (listed if len(listed) < wanted else lacking).append(kind)
    return listed, lacking[: max(1, wanted // 4)]
