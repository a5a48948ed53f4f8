"""Near misses made by rules: a question is asked for one slot of a subject, and given the neighbours of what answers.

`facts/neighbours.txt` has subjects with the slots that one stores of them. Beside the statement that answers stand
others of the same entity, the same slot of another entity or speaker, and turns that only ask.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.training import facts
from benchmarks.training.facts import by_name, personal, to_you
from benchmarks.training.notes import of_user

_FILE = Path(__file__).parent / "facts" / "neighbours.txt"
# Beside those of slots.toml: speakers must be told apart, and there should be many.
_NAMES = (_FILE.parent / "names.txt").read_text("utf-8").split()
_STREETS = ("Mill Lane", "Oak Street", "Harbour Road", "Station Street", "Elm Avenue", "Rue des Lilas", "Park Row")
HELD_SUBJECTS = ("vehicle", "hobby", "service")
_ROUNDS = {True: 90, False: 70}
_WRONG = 9


class Group(NamedTuple):
    """A question, texts that answer it, if any, and texts that do not, the hardest first; `apart` is not trained on."""

    question: str
    answers: list[str]
    wrong: list[str]
    set: str
    apart: bool


class Slot(NamedTuple):
    """Statements of a slot of a subject, and questions for it, in several wordings."""

    say: list[str]
    ask: list[str]


class Subject(NamedTuple):
    """A subject with its exchangeable entities, none for oneself, and its slots."""

    name: str
    entities: list[str]
    slots: list[Slot]


@cache
def names() -> list[str]:
    """First names of speakers."""
    return sorted({*facts.slot_values("name"), *_NAMES})


@cache
def subjects() -> list[Subject]:
    """The subjects of the file."""
    listed: list[Subject] = []
    for line in _FILE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            name, _, entities = line[3:].partition(": ")
            listed.append(Subject(name, entities.split("; ") if entities else [], []))
        elif line and not line.startswith("# "):
            say, ask = line.split(" => ")
            listed[-1].slots.append(Slot(say.split(" / "), ask.split(" / ")))
    return listed


class Values(dict[str, str]):
    """Values of slots, drawn when first asked for."""

    def __init__(self, chance: random.Random, entity: str | None) -> None:
        super().__init__({} if entity is None else {"e": entity})
        self._chance = chance

    def __missing__(self, slot: str) -> str:
        value = self[slot] = self._drawn(slot)
        return value

    def _drawn(self, slot: str) -> str:
        draw, choose = self._chance.randint, self._chance.choice
        numbers = {"age": (2, 60), "weight": (5, 120), "pin": (1000, 9999), "bignumber": (20, 300)}
        if slot == "name":
            return choose(names())
        if slot in numbers:
            return str(draw(*numbers[slot]))
        made = {
            "phone": f"0{draw(10, 99)} {draw(100, 999)} {draw(1000, 9999)}",
            "email": f"{choose(names()).lower()}@example.com",
            "street": f"{draw(1, 180)} {choose(_STREETS)}",
            "plate": f"{choose('ABCDEFGH')}{choose('KLMNOP')}-{draw(100, 999)}",
            "km": f"{draw(2, 200)},000",
            "ordinal": choose(("first", "second", "third", "fourth", "sixth")),
            "grade": choose(("1.3", "2.0", "3.5", "an A", "a B")),
            "seat": f"{draw(1, 40)}{choose('ABCDEF')}",
            "blood": choose(("A positive", "0 negative", "AB positive")),
            "height": f"{draw(150, 200)} cm",
            "time2": f"{draw(3, 5)} hours {draw(1, 59)} minutes",
        }
        return made[slot] if slot in made else choose(facts.slot_values(slot))


def near_misses(seed: int = 5) -> Iterator[Group]:
    """The groups of every slot of every subject, many times with other values, voices and neighbours."""
    chance = random.Random(seed)
    for subject in subjects():
        for place in range(len(subject.slots)):
            for _ in range(_ROUNDS[len(subject.entities) > 1]):
                yield from _Writer(chance, subject, place).groups()


class _Writer:
    """Writes the groups of one question about a slot of a subject."""

    def __init__(self, chance: random.Random, subject: Subject, place: int) -> None:
        self.chance, self.subject, self.place = chance, subject, place
        values = Values(chance, None)
        self.entities = [entity.format_map(values) for entity in subject.entities]
        self.entity = chance.choice(self.entities) if self.entities else None
        self.values = Values(chance, self.entity)
        slot = subject.slots[place]
        self.personal = personal(slot.say[0]) or personal(slot.ask[0])
        self.voice = chance.choice(("first", "third", "talk", "talk", "chat", "chat"))
        if self.voice == "third" and not self.personal:
            self.voice = "first"
        self.speaker, self.other = chance.sample(names(), 2)

    def groups(self) -> Iterator[Group]:
        chance, apart = self.chance, self.subject.name in HELD_SUBJECTS
        question = chance.choice(self.subject.slots[self.place].ask).format_map(self.values)
        extra = self.neighbours()
        answer = self.stored(self.wrapped(self.said(self.place, self.values), extra))
        if answer is None:
            return
        wrong = [self.stored(text) for text in extra]
        if chance.random() < 0.4:
            wrong.append(self.stored(f"{extra[0]} {extra[-1]}"))
        wrong += [self.stored(text) for text in self.of_others()]
        turns, wording = self.turns(question)
        known = [text for text in (*wrong, *turns) if text is not None]
        chance.shuffle(known)
        wording = _capital(wording)
        yield Group(wording.rstrip("?") if chance.random() < 0.1 else wording, [answer], known[:_WRONG], "near", apart)
        if self.voice == "talk" and self.personal and chance.random() < 0.4:
            about_speaker = [text for text in known if text.startswith(self.speaker)][:4]
            yield Group(_capital(by_name(question, self.other)), [], [answer, *about_speaker], "near_swapped", apart)

    def said(self, place: int, values: Values) -> str:
        return _capital(self.chance.choice(self.subject.slots[place].say).format_map(values))

    def stored(self, text: str, speaker: str | None = None) -> str | None:
        """The text as it is stored in the voice of the group; None if the rules cannot put it so."""
        if self.voice == "third":
            return of_user(text)
        prefix = {"talk": f"{speaker or self.speaker}: ", "chat": "user: "}.get(self.voice, "")
        return prefix + text

    def neighbours(self) -> list[str]:
        """Other slots of the same entity."""
        others = [place for place in range(len(self.subject.slots)) if place != self.place]
        statements = []
        for place in self.chance.sample(others, min(5, len(others))):
            values = Values(self.chance, self.entity)
            if self.subject.name == "years" and self.chance.random() < 0.6:
                values["year"] = self.values["year"]
            statements.append(self.said(place, values))
        return statements

    def of_others(self) -> Iterator[str]:
        """The same slot of other entities, or of other years, months and days."""
        for _ in range(2):
            others = [entity for entity in self.entities if entity != self.entity]
            values = Values(self.chance, self.chance.choice(others) if others else self.entity)
            if others:
                yield self.said(self.place, values)
            elif self.subject.name == "years":
                text = self.said(self.place, values)
                if not any(values[name] == self.values[name] for name in ("year", "month", "weekday")):
                    yield text

    def wrapped(self, text: str, extra: list[str]) -> str:
        """The statement among others, or with small talk."""
        chance = self.chance
        if chance.random() < 0.2:
            return f"{text} {chance.choice(extra)}"
        if chance.random() < 0.15:
            return f"{chance.choice(extra)} {text}"
        if chance.random() < 0.15:
            return chance.choice(facts._OPENINGS) + text
        return text + chance.choice(facts._CLOSINGS) if chance.random() < 0.2 else text

    def turns(self, question: str) -> tuple[list[str | None], str]:
        """Turns of another and turns that only ask, and the question as it is asked in the voice of the group."""
        chance, values = self.chance, Values(self.chance, self.entity)
        if self.voice == "talk" and self.personal:
            statement = self.stored(self.said(self.place, values), self.other)
            asks = f"{self.other}: {_capital(to_you(question))}"
            return [statement, asks, f"{self.other}: {chance.choice(facts._CHATTER)}"], by_name(question, self.speaker)
        if self.voice == "third":
            statement = of_user(self.said(self.place, values)) if chance.random() < 0.5 else None
            who = chance.choice(("User's colleague Dana", "User's friend Omar"))
            about = (
                None if statement is None or not statement.startswith("User ") else statement.replace("User", who, 1)
            )
            return [about], by_name(question, "the user")
        if self.voice == "chat":
            return [f"assistant: {_capital(to_you(question))}", f"user: {question}"], question
        return [question] if chance.random() < 0.5 else [], question


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
