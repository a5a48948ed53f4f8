"""Knowledge updates: whether the statement that holds now comes before the one that it replaced, in long chats.

BEAM: the questions of types knowledge_update and contradiction_resolution of the first five chats of 100K (see `beam`).
The set names the messages of both statements; the current one is the later. A few contradictions stand in one message:
it can be found, but nothing in it can come first, and they count for "both within 40" only.

LongMemEval-S: the knowledge-update questions, asked as in `longmemeval` but of turns, not sessions. The set marks the
turns with evidence; those of the last session that has any are current.

"both within 40": at least one message of either statement is among 40 hits; "current before former": the best of the
current ones ranks before the best of the former ones, which counts as it should where the former are not found at all;
"current first": the first hit is a current one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.quality import beam, longmemeval
from benchmarks.quality.result import OpenMemory, Progress
from benchmarks.quality.ways import WAYS
from recallite.model.records import Hits
from recallite.recall.request import recall_arguments

__all__ = ["Story", "measure", "of_beam", "of_longmemeval"]

_LIMIT = 40


class Story(NamedTuple):
    """Records, and questions with their type, options of `recall` and the places of former and current statements."""

    records: list[dict[str, Any]]
    questions: list[tuple[str, str, dict[str, Any], frozenset[int], frozenset[int]]]


def of_beam(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The questions of BEAM."""
    return measure(lambda: map(_of_chat, beam.read(data)), open_memory, on_progress)


def of_longmemeval(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The questions of LongMemEval-S."""
    return measure(lambda: _histories(data), open_memory, on_progress)


def measure(read: Callable[[], Iterator[Story]], open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The figures of all stories, written and read in each of `WAYS`, and by type of question."""
    scores: dict[str, list[tuple[str, dict[str, float]]]] = {way: [] for way in WAYS}
    seconds = dict.fromkeys(["remember", *WAYS], 0.0)
    records = 0
    stories = list(read())
    for done, story in enumerate(stories, 1):
        records += len(story.records)
        for name, way in WAYS.items():
            with open_memory() as memory:
                began = perf_counter()
                ids = memory.remember_many(story.records, policy=way.policy)
                memory.store.catch_up()
                written = perf_counter()
                places = {id: place for place, id in enumerate(ids)}
                for text, kind, options, former, current in story.questions:
                    hits = memory.recall(text, limit=_LIMIT, **recall_arguments({**options, **way.options}))
                    scores[name].append((kind, _figures(hits, places, former, current)))
                seconds["remember"] += written - began
                seconds[name] += perf_counter() - written
        on_progress(done, len(stories))
    kinds = sorted({kind for kind, _ in scores["default"]})
    return {
        "questions": len(scores["default"]),
        "records": records,
        "stores": len(stories),
        "figures": {
            way: {
                (f"{kind}: {name}" if len(kinds) > 1 else name): value
                for kind in kinds
                for name, value in _means([figures for of, figures in pairs if of == kind]).items()
            }
            for way, pairs in scores.items()
        },
        "seconds": {key: round(value, 2) for key, value in seconds.items()},
    }


def _figures(hits: Hits, places: dict[str, int], former: frozenset[int], current: frozenset[int]) -> dict[str, float]:
    ranked = [places[hit.id] for hit in hits]
    newer, older = (
        next((rank for rank, place in enumerate(ranked) if place in places_of), _LIMIT)
        for places_of in (current, former)
    )
    both = {"both within 40": float(max(newer, older) < _LIMIT)}
    if former & current:
        return both
    return {**both, "current before former": float(newer < older), "current first": float(newer == 0)}


def _means(rows: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: round(fmean(row[name] for row in rows if name in row), 4) for name in names}


def _of_chat(chat: beam.Chat) -> Story:
    return Story(chat.messages, [(one.text, one.kind, {}, one.former, one.current) for one in chat.updates])


def _histories(data: Path) -> Iterator[Story]:
    for sample in longmemeval.answerable(data):
        if sample["question_type"] != "knowledge-update":
            continue
        turns, _ = longmemeval.history(sample)
        evidence = longmemeval.evidence(sample)
        moments = {place: turns[place]["created_at"] for place in evidence}
        current = frozenset(place for place in evidence if moments[place] == max(moments.values()))
        options = {"as_of": longmemeval.asked_at(sample)}
        yield Story(turns, [(sample["question"], "knowledge-update", options, frozenset(evidence) - current, current)])
