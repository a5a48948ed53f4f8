"""LoCoMo: which turns of a long conversation answer a question about it.

Every turn is a record: the text is what was said, the context its speaker, the source its session, the position its
number in the session, the time that of the session. A turn that shares a photo has a caption in the set; the caption
is part of the text, as " [shares a photo of ...]", for that is what the other person saw. (The set's search query for
the photo is not used.) Each conversation is a store of its own and is asked its own questions: all that name evidence,
category 5 included. The questions have no date, so they are asked now, when all sessions are long past.

recall@20 is the share of a question's evidence among the first 20 turns, hit@20 whether there is any, MRR the
reciprocal rank of the first, 0 beyond 20. "recall@20 within 8,000 characters" ends the 20 where their texts have more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.quality import checkout
from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.metrics import figures_at_k, recall_at_k
from benchmarks.quality.result import OpenMemory, Progress, Tally
from recallite.recall.request import recall_arguments

__all__ = ["CATEGORIES", "Conversation", "Question", "evaluate", "measure", "questions_of", "read", "with_caption"]

CATEGORIES = {1: "1 multi-hop", 2: "2 temporal", 3: "3 open-domain", 4: "4 single-hop", 5: "5 adversarial"}
LIMIT = 20
_MOST_CHARS = 8_000


class Question(NamedTuple):
    """A question, its category and the places of the turns that answer it."""

    text: str
    category: int
    gold: frozenset[int]


class Conversation(NamedTuple):
    """Turns as `remember_many` takes them, the speakers' names, and the questions."""

    speakers: tuple[str, str]
    turns: list[dict[str, Any]]
    questions: list[Question]


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """recall@20, hit@20 and MRR of every column, in all and by category."""
    return measure(list(read(data)), open_memory, on_progress)


def measure(conversations: list[Conversation], open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """Each conversation's store is asked its questions: the figures of every column, in all and by category."""
    tally = Tally()
    for done, conversation in enumerate(conversations, 1):
        with open_memory() as memory:
            ids = tally.remember(memory, conversation.turns)
            places = {id: place for place, id in enumerate(ids)}
            questions = [question.text for question in conversation.questions]
            tally.need(ids[place] for question in conversation.questions for place in question.gold)
            for column, options in COLUMNS.items():
                with tally.timed(column):
                    answers = memory.recall_many(questions, limit=LIMIT, **recall_arguments(options))
                for question, hits in zip(conversation.questions, answers, strict=True):
                    ranked = [places[hit.id] for hit in hits]
                    figures = figures_at_k(ranked, question.gold, LIMIT)
                    ends = accumulate(len(hit.text) for hit in hits)
                    short = [place for place, end in zip(ranked, ends, strict=True) if end <= _MOST_CHARS]
                    figures["recall@20 within 8,000 characters"] = recall_at_k(short, question.gold, LIMIT)
                    tally.add(column, figures, CATEGORIES[question.category])
        on_progress(done, len(conversations))
    return tally.result(stores=len(conversations))


def read(data: Path) -> Iterator[Conversation]:
    """The conversations of `locomo*.json.gz`."""
    yield from map(_conversation, checkout.packed(data, "locomo*.json.gz"))


def _conversation(sample: dict[str, Any]) -> Conversation:
    sessions = sample["conversation"]
    turns: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    numbers = sorted(int(name[8:]) for name in sessions if re.fullmatch(r"session_\d+", name))
    for number in numbers:
        moment = datetime.strptime(sessions[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for position, turn in enumerate(sessions[f"session_{number}"]):
            places[turn["dia_id"]] = len(turns)
            turns.append(
                {
                    "text": with_caption(turn["text"], turn.get("blip_caption")),
                    "context": turn["speaker"],
                    "source": f"session {number}",
                    "position": position,
                    "created_at": moment,
                    "valid_from": moment,
                }
            )
    questions = list(questions_of(sample["qa"], places))
    return Conversation((sessions["speaker_a"], sessions["speaker_b"]), turns, questions)


def questions_of(items: list[dict[str, Any]], places: dict[str, int]) -> Iterator[Question]:
    """Yield the questions that name evidence, by the places of the turns."""
    for item in items:
        if gold := frozenset(places[id] for id in _evidence(item.get("evidence", [])) if id in places):
            yield Question(item["question"], item["category"], gold)


def with_caption(text: str, caption: str | None) -> str:
    """A turn's text with the caption of the photo that it shares."""
    return f"{text} [shares a photo of {caption}]".strip() if caption else text


def _evidence(named: list[str]) -> Iterator[str]:
    """Turn ids; the set writes some as "D8:6; D9:17" and some with leading zeros."""
    for text in named:
        for session, turn in re.findall(r"D(\d+):(\d+)", str(text)):
            yield f"D{int(session)}:{int(turn)}"
