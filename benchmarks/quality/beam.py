"""BEAM: which messages of a long chat with an assistant answer a probing question about it.

The first five chats of 100,000 tokens, from a folder or a git repository of the set (mohammadtavakoli78/BEAM). It has
no licence: it is measured and neither stored here nor trained on. Every message is a record: the text is the message
without the set's own mark at its end ("->-> 1,2"), the context its role, the source its batch, the position its number
in the batch, the time that of the batch (the set dates the first message of each). Each chat is a store of its own.
The questions have no date, so they are asked now.

The evidence of a question is every message that the set names for it (`source_chat_ids`, whatever their part in the
answer). recall@40 is the share of the evidence among the first 40 messages, all@40 whether it is all there, MRR the
reciprocal rank of the first in order of score, 0 beyond 40; by type of question too. Questions about a whole story
(event ordering, summarization) are asked in three more ways: `WHOLE_STORY`.

Abstention questions are about the chat's topics and have no answer in it. Their figures are those of `calibration`,
over the first ten hits; the ROC AUC is the mean over the chats, each answerable question of a chat against each
abstention question of the same chat.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.quality import calibration, checkout
from benchmarks.quality.calibration import Asked
from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.metrics import recall_all_at_k, recall_at_k, reciprocal_rank, roc_auc
from benchmarks.quality.result import OpenMemory, Progress, Tally
from recallite.model.records import Hits
from recallite.recall.request import recall_arguments

__all__ = ["ABSTENTION", "WHOLE_STORY", "Chat", "Update", "evaluate", "read"]

ABSTENTION = "abstention"
STORIES = ("event_ordering", "summarization")
WHOLE_STORY: dict[str, dict[str, Any]] = {
    "not adaptive": {"adaptive": False},
    "default": {},
    "spread over time": {"diversify_by": "time"},
    "spread over sources": {"diversify_by": "source"},
}
"""Options of `Memory.recall` for questions about a whole story."""
LIMIT = 40
_SHOWN = 10
_SAMPLES = 1_000
_FOLDER = "chats/100K"
_CHATS = ("1", "2", "3", "4", "5")
_TWICE = {
    "knowledge_update": ("original_info", "updated_info"),
    "contradiction_resolution": ("first_statement", "second_statement"),
}
_MARK = re.compile(r"\s*->->\s*[\d,]+\s*$")


class Update(NamedTuple):
    """A question about something that was said in two ways, its type and the places of both, the earlier one first."""

    text: str
    kind: str
    former: frozenset[int]
    current: frozenset[int]


class Chat(NamedTuple):
    """Messages as `remember_many` takes them, (question, type, places of the evidence), and what was said twice."""

    messages: list[dict[str, Any]]
    questions: list[tuple[str, str, frozenset[int]]]
    updates: list[Update]


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """recall@40, all@40 and MRR of every column, in all and by type; and what confidence says of abstention."""
    tally = Tally()
    stories = Tally(WHOLE_STORY)
    answers_by_column: dict[str, list[list[Asked]]] = {column: [] for column in COLUMNS}
    for done, chat in enumerate(read(data), 1):
        with open_memory() as memory:
            ids = tally.remember(memory, chat.messages)
            places = {id: place for place, id in enumerate(ids)}
            tally.need(ids[place] for _, _, gold in chat.questions for place in gold)
            for column, options in COLUMNS.items():
                with tally.timed(column):
                    answers = memory.recall_many(
                        [text for text, _, _ in chat.questions], limit=LIMIT, **recall_arguments(options)
                    )
                for (_, kind, gold), hits in zip(chat.questions, answers, strict=True):
                    if kind != ABSTENTION:
                        tally.add(column, _figures(hits, places, gold), kind)
                answers_by_column[column].append(_asked(chat, ids, answers))
            for column, options in WHOLE_STORY.items():
                for text, kind, gold in chat.questions:
                    if kind in STORIES:
                        hits = memory.recall(text, limit=LIMIT, **recall_arguments(options))
                        stories.add(column, _figures(hits, places, gold), kind)
        on_progress(done, len(_CHATS))
    result = tally.result(stores=len(_CHATS))
    for column, chats in answers_by_column.items():
        result["figures"][column] |= _abstention(chats)
    result["intervals"] |= _intervals(answers_by_column["default"])
    result["whole_story"] = stories.result()["categories"]
    return result


def read(data: Path) -> Iterator[Chat]:
    """The first five chats."""
    for name in _CHATS:
        folder = f"{_FOLDER}/{name}"
        chat = json.loads(checkout.read(data, f"{folder}/chat.json"))
        questions = json.loads(checkout.read(data, f"{folder}/probing_questions/probing_questions.json"))
        messages, places = _messages(chat)
        probes, updates = [], []
        for kind, ones in questions.items():
            for one in ones:
                named = one.get("source_chat_ids")
                gold = frozenset(places[id] for id in _ids(named) if id in places)
                if gold or kind == ABSTENTION:
                    probes.append((one["question"], kind, gold))
                if kind in _TWICE and gold:
                    both = (frozenset(places[id] for id in _ids(named[part]) if id in places) for part in _TWICE[kind])
                    former, current = sorted(both, key=max)
                    updates.append(Update(one["question"], kind, former, current))
        yield Chat(messages, probes, updates)


def _messages(chat: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[int, int]]:
    records: list[dict[str, Any]] = []
    places: dict[int, int] = {}
    for batch in chat:
        turns = [message for turn in batch["turns"] for message in turn]
        anchors = [batch.get("time_anchor"), *(message.get("time_anchor") for message in turns)]
        moment = next((_moment(anchor) for anchor in anchors if anchor), None)
        for position, message in enumerate(turns):
            places[message["id"]] = len(records)
            record = {
                "text": _MARK.sub("", message["content"]),
                "context": message["role"],
                "source": f"batch {batch['batch_number']}",
                "position": position,
            }
            records.append(record if moment is None else {**record, "created_at": moment, "valid_from": moment})
    return records, places


def _ids(named: object) -> Iterator[int]:
    """Every message id in what the set names: a number, or lists and dictionaries of them."""
    if isinstance(named, int):
        yield named
    elif isinstance(named, dict | list):
        for entry in named.values() if isinstance(named, dict) else named:
            yield from _ids(entry)


def _figures(hits: Hits, places: dict[str, int], gold: frozenset[int]) -> dict[str, float]:
    ranked = [places[hit.id] for hit in sorted(hits, key=lambda hit: -hit.score)]
    return {
        "recall@40": recall_at_k(ranked, gold, LIMIT),
        "all@40": recall_all_at_k(ranked, gold, LIMIT),
        "MRR": reciprocal_rank(ranked, gold),
    }


def _asked(chat: Chat, ids: list[str], answers: list[Hits]) -> list[Asked]:
    gold = [{ids[place] for place in places} for _, _, places in chat.questions]
    return [calibration.asked(hits, right, _SHOWN) for hits, right in zip(answers, gold, strict=True)]


def _abstention(chats: list[list[Asked]]) -> dict[str, float]:
    """The figures of all chats together, but the areas chat by chat."""
    pooled = calibration.summary([question for chat in chats for question in chat])
    of_chats = [calibration.summary(chat) for chat in chats]
    areas = {
        name: round(fmean(question[name] for question in of_chats), 4) for name in pooled if name.startswith("ROC AUC")
    }
    return {f"abstention: {name}": figure for name, figure in {**pooled, **areas}.items()}


def _intervals(chats: list[list[Asked]]) -> dict[str, tuple[float, float]]:
    """The 95 % intervals of the areas, by 1,000 bootstrap samples of each chat's questions of both kinds."""
    chance = random.Random(0)
    intervals = {}
    for name, most in (("ROC AUC", None), ("ROC AUC, first hit", 1)):
        scores = [
            [
                [max(one.confidence[:most], default=0.0) for one in chat if one.answerable == kind]
                for kind in (True, False)
            ]
            for chat in chats
        ]
        areas = sorted(
            fmean(roc_auc(*(chance.choices(of_kind, k=len(of_kind)) for of_kind in kinds)) for kinds in scores)
            for _ in range(_SAMPLES)
        )
        intervals[f"abstention: {name}"] = round(areas[_SAMPLES // 40], 4), round(areas[-_SAMPLES // 40], 4)
    return intervals


def _moment(anchor: str) -> datetime:
    """Parse "March-15-2024"."""
    return datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC)
