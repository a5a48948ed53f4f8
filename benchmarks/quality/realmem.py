"""RealMem: which of a person's dated memories a request refers to.

Every memory statement is a record with its date; its source is the session it came from and its position the turn
(entries of a schedule come from no turn and have none).
A request is asked at the start of its day (`as_of`): it sees only what is dated before that day, ages are measured from
then, and only gold memories dated before it count; a request without any is left out. The memories of the day itself
come from the very conversation that the request opens. Each persona is a store of its own. recall@20 is the share of
the gold memories among the first 20.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.quality import checkout
from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.metrics import figures_at_k
from benchmarks.quality.result import OpenMemory, Progress, Tally
from recallite import Memory
from recallite.recall.request import recall_arguments

__all__ = ["evaluate"]

LIMIT = 20


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """recall@20, hit@20 and MRR of every column."""
    personas = checkout.packed(data, "realmem*.json.gz")
    tally = Tally()
    for done, persona in enumerate(personas, 1):
        with open_memory() as memory:
            ids = tally.remember(memory, [_record(statement) for statement in persona["memories"]])
            records = {statement["id"]: id for id, statement in zip(ids, persona["memories"], strict=True)}
            dates = {statement["id"]: _day(statement["time"]) for statement in persona["memories"]}
            for query in persona["queries"]:
                if gold := {id for id in query["gold_memory_ids"] if id in dates and dates[id] < _day(query["time"])}:
                    _ask(memory, query, {records[id] for id in gold}, tally)
        on_progress(done, len(personas))
    return tally.result(stores=len(personas))


def _ask(memory: Memory, query: dict[str, Any], gold: set[str], tally: Tally) -> None:
    tally.need(gold)
    # A memory is dated at midnight, and `as_of` shows what was there at that very moment.
    before = _day(query["time"]) - timedelta(microseconds=1)
    for column, options in COLUMNS.items():
        with tally.timed(column):
            hits = memory.recall(query["query"], limit=LIMIT, **recall_arguments({"as_of": before, **options}))
        tally.add(column, figures_at_k([hit.id for hit in hits], gold, LIMIT))


def _record(statement: dict[str, Any]) -> dict[str, Any]:
    turn = statement["source_turn"]
    return {
        "text": statement["content"],
        "source": statement["session_uuid"],
        "position": turn if turn >= 0 else None,
        "created_at": _day(statement["time"]),
    }


def _day(date: str) -> datetime:
    """Parse "2025-12-20 (Saturday)"."""
    return datetime.strptime(date[:10], "%Y-%m-%d").replace(tzinfo=UTC)
