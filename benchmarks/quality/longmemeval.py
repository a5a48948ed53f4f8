"""LongMemEval-S: which sessions of a long chat history answer a question.

Each question has a history of its own, so each gets a store of its own, with its own word statistics. All turns of
both roles are records; the source is the session, under an id that says nothing; the position is the turn's number and
the time that of the session. The question is asked at its own date (`as_of`), as an agent would have asked it, so ages
are measured from then. A few histories hold sessions dated after their question, some of which answer it; the set
means the whole history to be searched, so such a question is asked when the last session is over. "Asked today" is the
same without a date: all sessions are long past and age tells none from another.
Questions without an answer in the history (`_abs`) are left out.

recall_any@k is whether any of the answering sessions is among the first k, recall_all@k whether all are.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.quality import checkout
from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.metrics import recall_all_at_k, recall_any_at_k
from benchmarks.quality.result import OpenMemory, Progress, Tally
from recallite.model.records import Hits
from recallite.recall.request import recall_arguments

__all__ = ["answerable", "asked_at", "evaluate", "evidence", "history"]

LIMIT = 5


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """recall_any@5, recall_all@5 and recall_any@1 of every column, in all and by type of question."""
    samples = answerable(data)
    tally = Tally()
    for done, sample in enumerate(samples, 1):
        turns, gold = history(sample)
        moment = asked_at(sample)
        with open_memory() as memory:
            ids = tally.remember(memory, turns)
            tally.need(ids[place] for place in evidence(sample))
            for column, options in COLUMNS.items():
                with tally.timed(column):
                    hits = memory.recall(
                        sample["question"],
                        limit=LIMIT,
                        **recall_arguments({"diversify_by": "one_per_source", "as_of": moment, **options}),
                    )
                today = memory.recall(
                    sample["question"], limit=LIMIT, **recall_arguments({"diversify_by": "one_per_source", **options})
                )
                figures = {
                    **_figures(hits, gold),
                    **{f"{name}, asked today": figure for name, figure in _figures(today, gold).items()},
                }
                tally.add(column, figures, sample["question_type"])
        on_progress(done, len(samples))
    return tally.result(stores=len(samples))


def answerable(data: Path) -> list[dict[str, Any]]:
    """Questions that have an answer in their history."""
    samples = checkout.packed(data, "longmemeval_s*.json.gz")
    return [sample for sample in samples if not sample["question_id"].endswith("_abs")]


def _figures(hits: Hits, gold: set[str]) -> dict[str, float]:
    ranked = [hit.source.id for hit in hits if hit.source is not None]
    return {
        "recall_any@5": recall_any_at_k(ranked, gold, 5),
        "recall_all@5": recall_all_at_k(ranked, gold, 5),
        "recall_any@1": recall_any_at_k(ranked, gold, 1),
    }


def asked_at(sample: dict[str, Any]) -> datetime:
    """Return the time at which the question is asked."""
    return max(map(_moment, [sample["question_date"], *sample["haystack_dates"]]))


def history(
    sample: dict[str, Any], roles: Collection[str] = ("user", "assistant")
) -> tuple[list[dict[str, Any]], set[str]]:
    """The turns of these roles as records, and the opaque ids of the sessions that answer."""
    turns = []
    gold = set()
    sessions = zip(sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True)
    for number, (name, date, session) in enumerate(sessions):
        opaque = f"session {number}"
        if name in sample["answer_session_ids"]:
            gold.add(opaque)
        moment = _moment(date)
        turns += [
            {"text": turn["content"], "source": opaque, "position": position, "created_at": moment}
            for position, turn in enumerate(session)
            if turn["role"] in roles and turn["content"].strip()
        ]
    return turns, gold


def evidence(sample: dict[str, Any]) -> list[int]:
    """The places of the turns that the set marks as evidence, among those that are not blank."""
    marked = [
        bool(turn.get("has_answer"))
        for session in sample["haystack_sessions"]
        for turn in session
        if turn["content"].strip()
    ]
    return [place for place, answers in enumerate(marked) if answers]


def _moment(date: str) -> datetime:
    """Parse "2023/05/30 (Tue) 23:25"."""
    return datetime.strptime(date, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
