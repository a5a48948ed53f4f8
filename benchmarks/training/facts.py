"""Questions made by rules from facts: what people store of themselves and their teams, and what they ask later.

`facts/*.toml` has about 170 types of facts, each with statements (`say`), questions that the statement answers and that
share few words with it (`ask`), and questions on its topic that it leaves open (`off`). `{slot}` is filled from
`slots.toml`. Every type belongs to one split, so that what is trained on the one never saw the other's types.

A store is one of three kinds: notes of one person who asks in the first person; the talk of two to four named people
with questions by name; a chat with an assistant that asks back. The same types told by others, and what is close to a
fact without answering, are the hard negatives.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.training.data import Question, Split, Store

_FOLDER = Path(__file__).parent / "facts"
_FILES = ("person", "life", "work", "software")
STORES = {"vectors": 600, "ranking": 300}

# Types that answer one another's questions: of each group a store has one.
OVERLAPS = (
    {"home_city", "home_kind", "home_area", "hotel"},
    {"pet", "pet_name"},
    {"food_allergy", "diet", "dislike_food", "allergy"},
    {"favourite_dish", "cuisine"},
    {"condition", "injury", "accident", "medicine"},
    {"trip", "event_plan", "dream_trip", "visa", "business_trip"},
    {"past_trip", "event_attended", "memory"},
    {"degree", "studying", "exam", "skill", "language", "thesis"},
    {"job", "employer", "job_search", "new_role", "quit"},
    {"deadline", "release", "status", "release_cycle"},
    {"hobby", "sport", "game", "volunteer", "instrument"},
    {"goal", "career_plan", "todo", "roadmap", "chores"},
    {"decision", "never", "deprecated", "decision_reason"},
    {"owner", "access", "team_role", "colleague"},
    {"laptop", "os"},
    {"purchase", "gift"},
    {"relative_job", "relative_name", "loss", "parents", "relative_home", "siblings"},
    {"outage", "bugfix", "workaround", "blocker"},
    {"friend", "partner", "roommate", "emergency", "neighbour"},
    {"music", "band"},
    {"answer_format", "tone", "units"},
    {"meeting", "deadline", "meeting_place"},
    {"savings", "debt", "bank"},
    {"birthday", "baby", "wedding"},
    {"language", "languages", "web_framework"},
    {"repair", "renovation"},
    {"where_thing", "lent"},
)
_OPENINGS = ("By the way: ", "Just so you know: ", "Update: ", "For the record: ", "Hey! ", "Quick note: ", "Right. ")
_CLOSINGS = (
    " It took a while to get there.",
    " Anyway, how are you?",
    " Just wanted you to know.",
    " More on that another time.",
    " That's it for now.",
    " What do you think?",
    " I'm quite happy about it.",
    " Not much else to report.",
)
_CHATTER = (
    "Good morning! Did you sleep well?",
    "Thanks, that helps a lot.",
    "Could you check the text above for typos?",
    "The weather has been awful all week.",
    "Ha, that's funny.",
    "Let me think about it and come back to you.",
    "Sorry, I was away from the keyboard.",
    "What a long day it was.",
    "Can you translate this paragraph for me?",
    "See you tomorrow then!",
    "I saw a double rainbow on the way back.",
    "That sounds great, tell me more.",
    "Please summarise the article in two sentences.",
    "I'm not sure what you mean.",
    "The lift is out of order again.",
    "Okay, noted.",
)
_START = datetime(2024, 1, 8, 8, 30, tzinfo=UTC)


@dataclass(frozen=True)
class Kind:
    """A type of fact, with its templates."""

    name: str
    split: Split
    say: tuple[str, ...]
    ask: tuple[str, ...]
    off: tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """A fact as one speaker told it; `place` is that of its turn in the store."""

    kind: Kind
    speaker: str | None
    slots: dict[str, str]
    place: int


@cache
def kinds(split: Split) -> tuple[Kind, ...]:
    """The types of a split, in the order of the files."""
    return tuple(
        Kind(name, split, tuple(entry["say"]), tuple(entry["ask"]), tuple(entry["off"]))
        for file in _FILES
        for name, entry in _load(file)[split].items()
    )


def stores(
    split: Split, count: int | None = None, seed: int = 0, only: Sequence[Kind] | None = None
) -> Iterator[Store]:
    """Stores of 3 to 20 facts with questions, the same for the same seed; `only` has the types to choose from.

    `STORES` of the split has the usual count.
    """
    fact_kinds = kinds(split) if only is None else tuple(only)
    for number in range(STORES[split] if count is None else count):
        yield _Writer(fact_kinds, random.Random(f"{split} {seed} {number}")).store(f"facts/{split}-{seed}-{number}")


def slot_values(slot: str) -> list[str]:
    """Values that fill `{slot}` of a template."""
    return list(_load("slots")[slot])


def slot_fillings(chance: random.Random) -> dict[str, list[str]]:
    """The values of each slot in random order, and of the same slot with a 2 those of another order."""
    return {
        name: chance.sample(values, len(values))
        for slot, values in _load("slots").items()
        for name in (slot, f"{slot}2")
    }


def by_name(question: str, name: str) -> str:
    """A question in the first person as one asks it about `name`: "Where do I live?" becomes "Where does Ada live?"."""
    third_person = re.sub(r"\b(do|am|have) I\b", lambda match: f"{_THIRD[match[1].lower()]} {name}", question)
    third_person = re.sub(
        r"\b(Do|Am|Have) I\b", lambda match: f"{_THIRD[match[1].lower()].capitalize()} {name}", third_person
    )
    third_person = re.sub(r"\bI'm\b", f"{name} is", third_person)
    third_person = re.sub(r"\bI've\b", f"{name} has", third_person)
    third_person = re.sub(r"\bI\b", name, third_person)
    parts = re.split(r"\b(my|My|me|mine)\b", third_person)
    named = name in parts[0]
    for place in range(1, len(parts), 2):
        pronoun = parts[place].lower()
        parts[place] = {"me": "them", "mine": "theirs"}.get(pronoun, "their") if named else _BY_NAME[pronoun](name)
        named = True
    return "".join(parts)


def to_you(question: str) -> str:
    """A question in the first person as the other asks it: "Where do I live?" becomes "Where do you live?"."""
    second_person = re.sub(r"\b([Aa])m I\b", lambda match: f"{match[1]}re you", question)
    for first_person, new in _AS_THE_OTHER:
        second_person = first_person.sub(new, second_person)
    second_person = re.sub(r"\bmine\b", "yours", second_person)
    return re.sub(r"\b([Mm])y\b", lambda match: "Your" if match[1] == "M" else "your", second_person)


def personal(question: str) -> bool:
    """Whether a question is about the one who asks."""
    return re.search(r"\b(I|me|my|My|mine)\b", question) is not None


_AS_THE_OTHER = tuple(
    (re.compile(rf"\b{old}\b"), new)
    for old, new in (("I'm", "you're"), ("I've", "you've"), ("was I", "were you"), ("I", "you"), ("me", "you"))
)
_THIRD = {"do": "does", "am": "is", "have": "has"}
_BY_NAME = {"my": "{}'s".format, "me": "{}".format, "mine": "{}'s".format}


@cache
def _load(file: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{file}.toml").read_text("utf-8"))


def _content(question: str) -> set[str]:
    """Words that tell what a question is about."""
    return {word for word in re.findall(r"[a-z]+", question.lower()) if len(word) > 3} - {
        "what",
        "which",
        "where",
        "when",
    }


class _Writer:
    """Writes one store: turns in the order they were said, then the questions."""

    def __init__(self, kinds: tuple[Kind, ...], chance: random.Random) -> None:
        self.kinds = kinds
        self.chance = chance
        self.turns: list[dict[str, Any]] = []
        self.told: list[Told] = []
        self.time = _START + timedelta(days=chance.randrange(300))
        names = _load("slots")["name"]
        self.form = chance.choice(("notes", "notes", "talk", "talk", "chat"))
        self.people: list[str | None] = [None]
        self.assistant = "assistant"
        if self.form == "talk":
            self.people = list(chance.sample(names, chance.randint(2, 4)))
        elif self.form == "chat":
            self.people = ["user"]

    def store(self, name: str) -> Store:
        picked = self.choose()
        for kind in picked:
            speakers = [self.chance.choice(self.people)]
            if len(self.people) > 1 and self.chance.random() < 0.5 and personal(kind.ask[0]):
                speakers = self.chance.sample(self.people, 2)
            for speaker in speakers:
                self.tell(kind, speaker)
        return Store(name, self.turns, self.questions(picked))

    def choose(self) -> list[Kind]:
        """Types in random order, none beside one that answers its questions."""
        order = list(self.kinds)
        self.chance.shuffle(order)
        wanted = self.chance.randint(3, 20)
        picked: list[Kind] = []
        for kind in order:
            near = {name for group in OVERLAPS if kind.name in group for name in group}
            if len(picked) < wanted and not any(other.name in near for other in picked):
                picked.append(kind)
        return picked

    def tell(self, kind: Kind, speaker: str | None) -> None:
        slots = self.fill(speaker)
        if self.form != "notes" and self.chance.random() < 0.3:
            self.say(self.listener(speaker), to_you(self.chance.choice(kind.ask).format(**slots)))
        elif self.form != "notes" and self.chance.random() < 0.3:
            self.say(self.listener(speaker), self.chance.choice(_CHATTER))
        text = self.chance.choice(kind.say).format(**slots)
        if self.chance.random() < 0.2:
            text = self.chance.choice(_OPENINGS) + text
        if self.chance.random() < (0.1 if self.form == "notes" else 0.3):
            text += self.chance.choice(_CLOSINGS)
        self.told.append(Told(kind, speaker, slots, len(self.turns)))
        self.say(speaker, text)

    def fill(self, speaker: str | None) -> dict[str, str]:
        """A value for each slot, and another one for the same slot with a 2; nobody speaks of a speaker by name."""
        slots = {}
        for slot, values in _load("slots").items():
            slots[slot], slots[f"{slot}2"] = self.chance.sample([v for v in values if v not in self.people], 2)
        return slots

    def listener(self, speaker: str | None) -> str | None:
        others = [person for person in self.people if person != speaker]
        return self.chance.choice(others) if others else self.assistant

    def say(self, speaker: str | None, text: str) -> None:
        self.time += timedelta(minutes=self.chance.choice((1, 2, 5, 600, 3000)))
        turn = {"text": text, "context": speaker, "source": f"{self.time:%Y-%m-%d}", "position": len(self.turns)}
        self.turns.append({**turn, "created_at": self.time.isoformat()})

    def questions(self, picked: list[Kind]) -> list[Question]:
        questions = [question for fact in self.told if (question := self.ask(fact))]
        questions += [question for fact in self.told if (question := self.leave_open(fact, picked))]
        questions += self.of_others()
        return list({question.text: question for question in reversed(questions)}.values())[::-1]

    def ask(self, fact: Told) -> Question | None:
        """A question that the fact answers, and no other of the store."""
        text = self.chance.choice(fact.kind.ask)
        same = [other for other in self.told if other.kind is fact.kind]
        if len(same) > 1 and not personal(text):
            return None
        return Question(self.worded(text.format(**fact.slots), fact.speaker), (fact.place,))

    def leave_open(self, fact: Told, picked: list[Kind]) -> Question | None:
        """A question on the topic of the fact that nothing in the store answers."""
        if self.chance.random() < 0.6:
            return None
        text = self.chance.choice(fact.kind.off)
        words = _content(text)
        for kind in picked:
            for ask in kind.ask:
                if 2 * len(words & _content(ask)) >= max(len(words), 1):
                    return None
        return Question(self.worded(text.format(**fact.slots), fact.speaker), (), answerable=False)

    def of_others(self) -> list[Question]:
        """Questions that are answered for one speaker, about another who did not say."""
        questions = []
        for fact in self.told:
            knows = {other.speaker for other in self.told if other.kind is fact.kind}
            silent = [person for person in self.people if person not in knows]
            text = self.chance.choice(fact.kind.ask)
            if silent and personal(text) and self.chance.random() < 0.25:
                about = self.chance.choice(silent)
                questions.append(Question(self.worded(text.format(**fact.slots), about), (), answerable=False))
        return questions

    def worded(self, question: str, speaker: str | None) -> str:
        named = self.form == "talk" and speaker is not None and personal(question)
        return by_name(question, speaker) if named and speaker is not None else question
