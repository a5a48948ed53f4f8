"""Recall under filters that keep 10 %, 1 % and 0.1 % of the records by each field, and with options.

Times keep a stretch of the store, the other filters records far from each other. Whatever `OFF` names is turned off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks import corpus, dataset
from benchmarks.compare.ways import OFF, TOP
from benchmarks.dataset import FILTERS, Dataset
from benchmarks.harness.case import Case, Context, Timing
from recallite import Memory
from recallite.recall.request import recall_arguments

__all__ = ["CASE", "SCOPES", "UNTIL", "filters", "items"]

UNTIL = datetime(2026, 11, 1, tzinfo=UTC)
_YEARS = timedelta(days=730)
# A part of a thousand is a project; ten are a team, a hundred a department.
SCOPES = {"10 %": "/department 0", "1 %": "/department 0/team 0", "0.1 %": "/department 0/team 0/project 0"}
_FIELDS = {"10 %": "department", "1 %": "team", "0.1 %": "project"}
OPTIONS: dict[str, dict[str, Any]] = {
    "`mmr_lambda=0.7`": {"mmr_lambda": 0.7},
    '`diversify_by="one_per_source"`': {"diversify_by": "one_per_source"},
    "`min_confidence=0.12`": {"min_confidence": 0.12},
    '`diversify_by="time"`': {"diversify_by": "time"},
    '`diversify_by="source"`': {"diversify_by": "source"},
    **{f'`profile="{name}"`': {"profile": name} for name in ("reeve", "hermes", "memweave")},
    "`limit=50`": {"limit": 50},
}


@contextmanager
def _setup(context: Context) -> Iterator[Memory]:
    with Memory(context.folder / "memory.db") as memory:
        memory.remember_many(items(context.dataset))
        memory.store.catch_up()
        memory.store.warmup()
        yield memory


def _tables(memory: Memory, context: Context) -> Iterator[Timing]:
    data = context.dataset

    def asked(number: int, options: dict[str, Any]) -> object:
        place = number % len(data.questions)
        return memory.recall(
            data.questions[place], vector=data.asked[place], **recall_arguments({"limit": TOP, **OFF, **options})
        )

    options: dict[str, dict[str, Any]] = {"plain": {}, **filters(), **OPTIONS}
    ways = {name: lambda number, arguments=arguments: asked(number, arguments) for name, arguments in options.items()}
    yield Timing("single recall, vector ready", ways, context.rounds)


def filters() -> dict[str, dict[str, Any]]:
    """Fields of each filter."""
    middle = UNTIL - _YEARS / 2
    arguments: dict[str, dict[str, Any]] = {}
    for share, below in FILTERS.items():
        arguments[f"{share} by scope"] = {"scope": SCOPES[share]}
        arguments[f"{share} by tag"] = {"tags": [share]}
        arguments[f"{share} by time"] = {"since": middle, "until": middle + _YEARS * below / 1000}
        arguments[f"{share} by metadata"] = {"where": {f"metadata.{_FIELDS[share]}": 0}}
    return arguments


def items(data: Dataset) -> Iterator[dict[str, Any]]:
    """Records in the order of time, the last at `UNTIL`; neighbours are of distant parts."""
    belongs, step = dataset.parts(len(data.lines)).tolist(), _YEARS / len(data.lines)
    for place, (item, part) in enumerate(zip(corpus.items(data.lines, data.vectors), belongs, strict=True)):
        department, team = part // 100, part // 10
        yield {
            **item,
            "scope": f"/department {department}/team {team}/project {part}",
            "tags": [name for name, below in FILTERS.items() if part < below],
            "created_at": UNTIL - step * (len(data.lines) - 1 - place),
            "metadata": {"department": department, "team": team, "project": part, "line": place},
        }


CASE = Case(
    "filters", "what filters and options of recall cost", _setup, _tables, records=(10_000, 100_000), rounds=300
)
