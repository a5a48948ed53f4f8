"""REALTALK: which turns of a real chat between two people answer a question about it.

All ten chats, from a folder or a git repository of the set (danny911kr/REALTALK). It has no licence: it is measured
and neither stored here nor trained on. Records, questions and metrics are as of LoCoMo (see `locomo`), whose form the
set has: the text is what was written, with the caption of a shared photo, the context its writer, the source its
session, the time its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.quality import checkout, locomo
from benchmarks.quality.result import OpenMemory, Progress

__all__ = ["evaluate", "read"]


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """recall@20, hit@20 and MRR of every column, in all and by category."""
    return locomo.measure(list(read(data)), open_memory, on_progress)


def read(data: Path) -> Iterator[locomo.Conversation]:
    """The chats of `data/`."""
    for name in checkout.names(data, "data"):
        if re.fullmatch(r"Chat_\d+_\w+\.json", name):
            yield _conversation(json.loads(checkout.read(data, f"data/{name}")))


def _conversation(chat: dict[str, Any]) -> locomo.Conversation:
    turns: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    numbers = sorted(int(name[8:]) for name in chat if re.fullmatch(r"session_\d+", name))
    for number in numbers:
        for position, turn in enumerate(chat[f"session_{number}"]):
            moment = datetime.strptime(turn["date_time"], "%d.%m.%Y, %H:%M:%S").replace(tzinfo=UTC)
            places[turn["dia_id"]] = len(turns)
            turns.append(
                {
                    "text": locomo.with_caption(turn["clean_text"], turn.get("blip_caption")),
                    "context": turn["speaker"],
                    "source": f"session {number}",
                    "position": position,
                    "created_at": moment,
                    "valid_from": moment,
                }
            )
    names = chat["name"]
    return locomo.Conversation(
        (names["speaker_1"], names["speaker_2"]), turns, list(locomo.questions_of(chat["qa"], places))
    )
