"""Pairs of statements, an older and a newer one, with what must become of the older.

A vocabulary is a folder of four files; a line beginning with `#` names the group of what follows it.

- `grids.txt`: subjects, facts and changes. Every fact of a subject meets every change of the same subject. A change
  names the facts that it changes with `=`, and with `?` those of which it cannot be told; all others still hold.
- `provoking.txt`: older | newer | question. Both hold, though they look alike. `in part` at the end says that the newer
  one changes a part of the older, which may be linked as contradicting, and must stay.
- `changes.txt`: older | newer | question | words of the new answer that the older statement lacks.
- `negations.txt`: older | newer | question. The newer one says the opposite.

In `grids.txt`, `{S}` is the subject as it is written at that place of a sentence, `{s}` within one, `{their}` its
possessive.

`dev` may be read by whoever makes rules or trains on it. `held` may not: its names, objects and values are others, and
its facts and changes are told with other verbs and in sentences of another shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

__all__ = ["KINDS", "VOCABULARIES", "Grid", "Pair", "every", "grids", "negations", "provoking", "true_changes"]

Kind = Literal["grid", "provoking", "changes", "negations"]
Outcome = Literal["both hold", "changed"]
KINDS: tuple[Kind, ...] = ("grid", "provoking", "changes", "negations")
VOCABULARIES = ("dev", "held")


@dataclass(frozen=True)
class Pair:
    """Two statements; `question` asks for the older one, or after a change for the newer.

    `answer` holds the words of the newer statement that answer, None where the whole statement does. `in_part`
    says that a part of the older one is contradicted, though it must stay.
    """

    kind: Kind
    group: str
    older: str
    newer: str
    question: str
    outcome: Outcome
    answer: str | None = None
    in_part: bool = False


@dataclass(frozen=True)
class Subject:
    """Whom or what a grid is about."""

    name: str
    possessive: str

    def fill(self, pattern: str) -> str:
        """The sentence about this subject."""
        first, rest = self.name.split(" ", 1) if " " in self.name else (self.name, "")
        within = f"{first.lower()} {rest}" if first in ("My", "Our", "The") else self.name
        begins = pattern.startswith("{S}")
        filled = pattern.replace("{S}", self.name, 1) if begins else pattern
        return filled.replace("{S}", within).replace("{s}", within).replace("{their}", self.possessive)


@dataclass(frozen=True)
class Fact:
    """What is said of a subject first."""

    name: str
    pattern: str
    question: str


@dataclass(frozen=True)
class Change:
    """What is said of a subject later: the names of the facts that it changes, and of those that it may change."""

    pattern: str
    changes: frozenset[str]
    may_change: frozenset[str]


@dataclass(frozen=True)
class Grid:
    """The subjects, facts and changes of one group."""

    group: str
    subjects: tuple[Subject, ...]
    facts: tuple[Fact, ...]
    changes: tuple[Change, ...]

    def pairs(self) -> Iterator[Pair]:
        """Every fact with every change of each subject, without those of which it cannot be told."""
        for subject in self.subjects:
            for fact in self.facts:
                for change in self.changes:
                    if fact.name not in change.may_change:
                        outcome: Outcome = "changed" if fact.name in change.changes else "both hold"
                        older, newer, question = map(subject.fill, (fact.pattern, change.pattern, fact.question))
                        yield Pair("grid", f"{self.group}: {subject.name}", older, newer, question, outcome)


@cache
def every(vocabulary: str) -> tuple[Pair, ...]:
    """All pairs of a vocabulary, grids first."""
    of_grids = [pair for grid in grids(vocabulary) for pair in grid.pairs()]
    return (*of_grids, *provoking(vocabulary), *true_changes(vocabulary), *negations(vocabulary))


@cache
def grids(vocabulary: str) -> tuple[Grid, ...]:
    """The grids of a vocabulary."""
    found: dict[str, tuple[list[Subject], list[Fact], list[Change]]] = {}
    for group, (kind, *cells) in _lines(vocabulary, "grids"):
        subjects, facts, changes = found.setdefault(group, ([], [], []))
        if kind == "subject":
            subjects.append(Subject(*cells))
        elif kind == "fact":
            facts.append(Fact(*cells))
        else:
            marks = cells[1].split() if len(cells) > 1 else []
            named = (frozenset(mark[1:] for mark in marks if mark[0] == sign) for sign in "=?")
            changes.append(Change(cells[0], *named))
    return tuple(Grid(group, *map(tuple, parts)) for group, parts in found.items())  # type: ignore[arg-type]


def provoking(vocabulary: str) -> list[Pair]:
    """Pairs that both hold though they look alike."""
    return [
        Pair("provoking", group, older, newer, question, "both hold", in_part=marks == ["in part"])
        for group, (older, newer, question, *marks) in _lines(vocabulary, "provoking")
    ]


def true_changes(vocabulary: str) -> list[Pair]:
    """Pairs of which the newer statement replaces the older one."""
    return [
        Pair("changes", group, older, newer, question, "changed", answer)
        for group, (older, newer, question, answer) in _lines(vocabulary, "changes")
    ]


def negations(vocabulary: str) -> list[Pair]:
    """Pairs of which the newer statement says the opposite."""
    return [
        Pair("negations", group, older, newer, question, "changed")
        for group, (older, newer, question) in _lines(vocabulary, "negations")
    ]


def _lines(vocabulary: str, name: str) -> Iterator[tuple[str, list[str]]]:
    """The group and the cells of each line."""
    group = ""
    for line in (Path(__file__).parent / vocabulary / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            group = line[1:].strip()
        elif line.strip():
            yield group, [cell.strip() for cell in line.split("|")]
