"""BEAM: which messages of a long chat with an assistant answer a probing question about it.

The first five chats of 100,000 tokens, from a folder or a git repository of the set (mohammadtavakoli78/BEAM). It has
no licence: it is measured and neither stored here nor trained on. Every message is a record: the text is the message
without the set's own mark at its end ("->-> 1,2"), the context its role, the source its batch, the position its number
in the batch, the time that of the batch (the set dates the first message of each). Each chat is a store of its own.
The questions have no date, so they are asked now.

The evidence of a question is every message that the set names for it (`source_chat_ids`, whatever their part in the
answer). recall@40 is the share of the evidence among the first 40 messages, all@40 whether it is all there, MRR the
reciprocal rank of the first, 0 beyond 40; by type of question too.

Abstention questions are about the chat's topics and have no answer in it. Their figure is the area under the ROC curve
of the best hit's confidence, each answerable question of a chat against each abstention question of the same chat:
"abstention AUC" reads the highest confidence of the 40 hits, "abstention AUC, first hit" that of the first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.quality import checkout
from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.metrics import recall_all_at_k, recall_at_k, reciprocal_rank, roc_auc
from benchmarks.quality.result import OpenMemory, Progress, Tally
from recollect.records import Hits

__all__ = ["ABSTENTION", "Chat", "evaluate", "read"]

ABSTENTION = "abstention"
LIMIT = 40
_FOLDER = "chats/100K"
_CHATS = ("1", "2", "3", "4", "5")
_MARK = re.compile(r"\s*->->\s*[\d,]+\s*$")


class Chat(NamedTuple):
    """Messages as `remember_many` takes them, and (question, type, places of the evidence)."""

    messages: list[dict[str, Any]]
    questions: list[tuple[str, str, frozenset[int]]]


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """recall@40, all@40 and MRR of every column, in all and by type; and the AUC against abstention questions."""
    tally = Tally()
    separated: dict[str, list[tuple[float, float]]] = {column: [] for column in COLUMNS}
    for done, chat in enumerate(read(data), 1):
        with open_memory() as memory:
            places = {id: place for place, id in enumerate(tally.remember(memory, chat.messages))}
            for column, options in COLUMNS.items():
                with tally.timed(column):
                    answers = memory.recall_many([text for text, _, _ in chat.questions], limit=LIMIT, **options)
                for (_, kind, gold), hits in zip(chat.questions, answers, strict=True):
                    if kind != ABSTENTION:
                        ranked = [places[hit.id] for hit in hits]
                        figures = {
                            "recall@40": recall_at_k(ranked, gold, LIMIT),
                            "all@40": recall_all_at_k(ranked, gold, LIMIT),
                            "MRR": reciprocal_rank(ranked, gold),
                        }
                        tally.add(column, figures, kind)
                separated[column].append(_separation([kind for _, kind, _ in chat.questions], answers))
        on_progress(done, len(_CHATS))
    result = tally.result(stores=len(_CHATS))
    for column, of_chats in separated.items():
        highest, first = (round(fmean(each[i] for each in of_chats), 4) for i in (0, 1))
        result["figures"][column] |= {"abstention AUC": highest, "abstention AUC, first hit": first}
    return result


def read(data: Path) -> Iterator[Chat]:
    """The first five chats."""
    for name in _CHATS:
        folder = f"{_FOLDER}/{name}"
        chat = json.loads(checkout.read(data, f"{folder}/chat.json"))
        questions = json.loads(checkout.read(data, f"{folder}/probing_questions/probing_questions.json"))
        messages, places = _messages(chat)
        asked = []
        for kind, ones in questions.items():
            for one in ones:
                gold = frozenset(places[id] for id in _ids(one.get("source_chat_ids")) if id in places)
                if gold or kind == ABSTENTION:
                    asked.append((one["question"], kind, gold))
        yield Chat(messages, asked)


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
            records.append(record if moment is None else {**record, "created_at": moment, "event_at": moment})
    return records, places


def _ids(named: object) -> Iterator[int]:
    """Every message id in what the set names: a number, or lists and dictionaries of them."""
    if isinstance(named, int):
        yield named
    elif isinstance(named, dict | list):
        for each in named.values() if isinstance(named, dict) else named:
            yield from _ids(each)


def _separation(kinds: list[str], answers: list[Hits]) -> tuple[float, float]:
    """The AUC of the highest and of the first hit's confidence, answerable above abstention questions."""
    highest = [max((hit.confidence for hit in hits), default=0.0) for hits in answers]
    first = [hits[0].confidence if hits else 0.0 for hits in answers]

    def auc(scores: list[float]) -> float:
        asked = list(zip(kinds, scores, strict=True))
        answerable = [score for kind, score in asked if kind != ABSTENTION]
        return roc_auc(answerable, [score for kind, score in asked if kind == ABSTENTION])

    return auc(highest), auc(first)


def _moment(anchor: str) -> datetime:
    """From "March-15-2024"."""
    return datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC)
