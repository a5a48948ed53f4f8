"""Questions with a text that answers and texts that do not, for training vectors, and stores held out to choose by."""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.training import facts
from benchmarks.training.data import Question, Store, paths, read, stores
from benchmarks.training.facts import by_name, personal

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

# Held out of training, to choose the epoch and every constant by: two of nine episodes, every eighth meeting, and
# facts of every fifth type.
HELD_EPISODES = ("s01_e24", "s03_e25")
_HELD_MEETINGS = 8
_HELD_KINDS = 5
_PERSONA = "google-research-datasets/Synthetic-Persona-Chat"
_HARD = 8
_EVIDENCE = 3
_FROM_STORE = 200
_TOGETHER = 8
_CHATS_TOGETHER = 10


@dataclass(frozen=True)
class Example:
    """A question with the places, in `Pairs.texts`, of what answers it and of what is close and does not.

    Examples of one `group` are trained on together. `closed` tells that texts of other groups may answer it too, as
    "Where do I live?" is answered by anyone's note.
    """

    question: str
    answers: tuple[int, ...]
    hard: tuple[int, ...]
    group: int
    closed: bool


@dataclass
class Pairs:
    """Texts with their context as the engine embeds them, and the examples that name them by place."""

    texts: list[str]
    examples: list[Example]


def embedded_text(turn: dict[str, Any]) -> str:
    """The text of a turn with its context, as the engine embeds it."""
    return f"{turn['context']}: {turn['text']}" if turn["context"] else str(turn["text"])


def split(repositories: Path, sets: Sequence[str]) -> tuple[list[Store], list[Store]]:
    """The stores to train on, and those held out."""
    train: list[Store] = []
    held_out: list[Store] = []
    if real := tuple(name for name in sets if name in ("friendsqa", "molweni", "qmsum")):
        meetings = 0
        for store in stores(repositories, "vectors", real):
            meetings += store.name.startswith("qmsum/")
            episode = store.name.removeprefix("friendsqa/") in HELD_EPISODES
            meeting = store.name.startswith("qmsum/") and meetings % _HELD_MEETINGS == 0
            (held_out if episode or meeting else train).append(store)
    if "facts" in sets:
        kinds = facts.kinds("vectors")
        apart = kinds[::_HELD_KINDS]
        train += facts.stores("vectors", only=[kind for kind in kinds if kind not in apart])
        held_out += facts.stores("vectors", 60, seed=1, only=apart)
    if "persona" in sets:
        train += persona(repositories)
    return train, held_out


def persona(repositories: Path) -> Iterator[Store]:
    """Synthetic-Persona-Chat (Jandaghi et al., 2023): what one asks and the other replies, several chats a store.

    The question is asked later by the one who replied, in the first person or by name.
    """
    names = facts.slot_values("name")
    for path in paths(_PERSONA, "data/Synthetic-Persona-Chat_valid"):
        chats = [
            row["Best Generated Conversation"]
            for row in csv.DictReader(io.StringIO(read(repositories, _PERSONA, path)))
        ]
        for start in range(0, len(chats), _CHATS_TOGETHER):
            chance = random.Random(f"{path} {start}")
            turns: list[dict[str, Any]] = []
            questions: list[Question] = []
            for chat in chats[start : start + _CHATS_TOGETHER]:
                speakers = dict(zip(("User 1", "User 2"), chance.sample(names, 2), strict=True))
                before = ""
                for line in chat.split("\n"):
                    user, _, text = line.partition(": ")
                    if user not in speakers or not text:
                        continue
                    if (question := asked_of_other(before)) and len(text.split()) > 3:
                        named = by_name(question, speakers[user]) if chance.random() < 0.7 else question
                        questions.append(Question(named, (len(turns),)))
                    turns.append({"text": text, "context": speakers[user]})
                    before = text
            yield Store(f"persona/{start}", turns, questions)


_AS_THE_ASKER = tuple(
    (re.compile(rf"\b{old}\b"), new)
    for old, new in (("you're", "I'm"), ("you've", "I've"), ("yours", "mine"), ("your", "my"), ("Your", "My"))
)


def asked_of_other(text: str) -> str | None:
    """The question about the other that a turn ends with, in the first person; None if it has none of its own sense."""
    last = re.split(r"(?<=[.!?]) ", text)[-1]
    if not re.match(r"(What|Where|Who|When|Which|How|Do|Are|Have)\b.*\?$", last) or len(last.split()) < 5:
        return None
    if re.search(r"\b(that|it|them|one|those|this|(name))\b", last) or re.match(r"How are|What about|How about", last):
        return None
    first_person = re.sub(r"\b([Aa])re you\b", lambda match: f"{match[1]}m I", last)
    for second_person, new in _AS_THE_ASKER:
        first_person = second_person.sub(new, first_person)
    first_person = re.sub(r"\b(about|for|to|with|of|from) you\b", r"\1 me", first_person)
    first_person = re.sub(r"\byou\b", "I", first_person)
    return first_person if personal(first_person) else None


def pairs(train: Sequence[Store], embed: Embed) -> Pairs:
    """Examples of the stores' questions; what is close comes from the same store, by the vectors of `embed`."""
    made = Pairs([], [])
    places: dict[str, int] = {}
    group = 0
    for number, store in enumerate(train):
        chance = np.random.default_rng(number)
        questions = [question for question in store.questions if question.answerable]
        if not questions:
            continue
        texts = [embedded_text(turn) for turn in store.turns]
        wanted = _candidates(texts, questions, chance)
        vectors = dict(zip(wanted, embed([texts[place] for place in wanted]), strict=True))
        closed = store.name.startswith("facts/")
        order = chance.permutation(len(questions))
        for position, (question, vector) in enumerate(
            zip([questions[i] for i in order], embed([questions[i].text for i in order]), strict=True)
        ):
            ranked = sorted(wanted, key=lambda place: -float(vectors[place] @ vector))
            best = [place for place in ranked if place in question.gold][:_EVIDENCE]
            answers = {texts[place] for place in question.gold}
            hard = [place for place in ranked if texts[place] not in answers][:_HARD]
            named = [[places.setdefault(texts[place], len(places)) for place in some] for some in (best, hard)]
            example = Example(question.text, tuple(named[0]), tuple(named[1]), group + position // _TOGETHER, closed)
            made.examples.append(example)
        group += -(-len(questions) // _TOGETHER)
    made.texts = list(places)
    return made


def groups(data: Pairs) -> list[list[int]]:
    """The places of the examples of each group."""
    by_group: dict[int, list[int]] = {}
    for place, example in enumerate(data.examples):
        by_group.setdefault(example.group, []).append(place)
    return list(by_group.values())


def drawn(examples: Sequence[Example], chance: np.random.Generator) -> list[int]:
    """The texts of a step: one that answers each question, then one for each that is close and does not."""
    texts = [int(chance.choice(example.answers)) for example in examples]
    return texts + [int(chance.choice(example.hard or example.answers)) for example in examples]


def _candidates(texts: Sequence[str], questions: Sequence[Question], chance: np.random.Generator) -> list[int]:
    """Every place of a small store; of a large one its evidence and some places that say something."""
    if len(texts) <= 2 * _FROM_STORE:
        return list(range(len(texts)))
    spoken = [place for place, text in enumerate(texts) if len(text.split()) > 5]
    some = chance.choice(spoken, min(_FROM_STORE, len(spoken)), replace=False)
    return sorted({place for question in questions for place in question.gold} | set(some.tolist()))


def general_texts(repositories: Path, count: int) -> list[str]:
    """Paragraphs that no question is about, for the new vectors to stay near the old: proposals, meetings, chats."""
    texts: list[str] = []
    for path in paths("ethereum/EIPs"):
        blocks = [block.strip() for block in read(repositories, "ethereum/EIPs", path).split("\n\n")]
        blocks = [block[:600] for block in blocks if len(block) > 60][:16]
        # Every third one as its first sentence, which is as long as a query.
        texts += [block if place % 3 else block.split(". ")[0] for place, block in enumerate(blocks)]
    for store in stores(repositories, "ranking", ("qmsum",))[:40]:
        texts += [embedded_text(turn)[:500] for turn in store.turns if len(turn["text"]) > 60][:20]
    for store in persona(repositories):
        texts += [turn["text"] for turn in store.turns[::25]]
    order = np.random.default_rng(0).permutation(len(texts))
    return [texts[place] for place in order[:count]]
