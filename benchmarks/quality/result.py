"""Figures of one set, column by column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from statistics import fmean
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.metrics import interval
from recallite import Memory

__all__ = ["Evaluation", "OpenMemory", "Progress", "Tally"]

OpenMemory = Callable[[], Memory]
"""Opens a new, empty store with the embedder that is measured."""

Progress = Callable[[int, int], None]
"""Called with (stores done, stores in all)."""


class Evaluation(Protocol):
    """A set: reads its files from `data`, asks its questions, and returns the result as plain values."""

    def __call__(self, data: Any, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]: ...


class _Asked(NamedTuple):
    category: str | None
    figures: Mapping[str, float]


class Tally:
    """Collects each question's figures and averages them over questions."""

    def __init__(self, columns: Iterable[str] = COLUMNS) -> None:
        self.records = 0
        self.code_bytes = 0
        self.remember_seconds = 0.0
        self.superseded = 0
        self.merged = 0
        self._hidden: set[str] = set()
        self._lost: set[str] = set()
        self._asked: dict[str, list[_Asked]] = {column: [] for column in columns}
        self._seconds: dict[str, float] = defaultdict(float)

    def remember(self, memory: Memory, items: list[dict[str, Any]]) -> list[str]:
        """`memory.remember_many(items)`, counted and timed."""
        began = perf_counter()
        ids = memory.remember_many(items)
        memory.store.catch_up()
        self.remember_seconds += perf_counter() - began
        self.code_bytes += memory.store.stats().token_code_bytes
        self.records += len(ids)
        self._hidden = set(ids).difference(record.id for record in memory.list(limit=None))
        self.superseded += len(self._hidden)
        self.merged += len(ids) - len(set(ids))
        return ids

    def need(self, ids: Iterable[str]) -> None:
        """Ids of the evidence of a question to the store that was filled last: what is superseded of it is lost."""
        self._lost.update(self._hidden.intersection(ids))

    @contextmanager
    def timed(self, column: str) -> Iterator[None]:
        """Adds the time of the block to the column's."""
        began = perf_counter()
        yield
        self._seconds[column] += perf_counter() - began

    def add(self, column: str, figures: Mapping[str, float], category: str | None = None) -> None:
        """One question's figures in one column."""
        self._asked[column].append(_Asked(category, figures))

    def result(self, **more: Any) -> dict[str, Any]:
        """Means over the questions that have the figure, and by category where there are any."""
        categories = sorted(
            {questions.category for questions in self._asked["default"] if questions.category is not None}
        )
        result = {
            "questions": len(self._asked["default"]),
            "records": self.records,
            "code_bytes_per_record": round(self.code_bytes / max(self.records, 1)),
            "changes": {"superseded": self.superseded, "merged": self.merged, "evidence superseded": len(self._lost)},
            "figures": {column: _means(questions) for column, questions in self._asked.items()},
            "intervals": _of_each(self._asked["default"], interval),
            "seconds": {
                "remember": round(self.remember_seconds, 2),
                **{column: round(seconds, 2) for column, seconds in self._seconds.items()},
            },
            **more,
        }
        if categories:
            result["categories"] = {
                category: {
                    "questions": sum(questions.category == category for questions in self._asked["default"]),
                    "figures": {
                        column: _means([one for one in questions if one.category == category])
                        for column, questions in self._asked.items()
                    },
                }
                for category in categories
            }
        return result


def _means(questions: list[_Asked]) -> dict[str, float]:
    return _of_each(questions, lambda values: round(fmean(values), 4))


def _of_each(questions: list[_Asked], summary: Callable[[list[float]], Any]) -> dict[str, Any]:
    """A summary of the values of each figure."""
    names = dict.fromkeys(name for one in questions for name in one.figures)
    return {name: summary([one.figures[name] for one in questions if name in one.figures]) for name in names}
