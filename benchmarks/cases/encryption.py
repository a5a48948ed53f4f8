"""An encrypted store beside a plain one. It needs apsw-sqlite3mc in place of apsw, for both; vectors are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks import corpus
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import rates
from recallite import Memory
from recallite.model.records import NewRecord

__all__ = ["CASE"]

_KEYS = {"plain": None, "passphrase": "correct horse battery staple", "raw key": "raw:" + "5a" * 32}
_OPENS, _WRITES = 15, 150


@contextmanager
def _setup(context: Context) -> Iterator[Callable[[str], Memory]]:
    yield lambda name: Memory(context.folder / f"{name}.db", key=_KEYS[name])


def _tables(opened: Callable[[str], Memory], context: Context) -> Iterator[Timing | Figures]:
    data = context.dataset
    items = list(corpus.items(data.lines, data.vectors))

    def loading(name: str) -> None:
        with opened(name) as memory:
            memory.remember_many(items)

    def recall(memory: Memory, number: int) -> None:
        place = number % len(data.questions)
        memory.recall(data.questions[place], vector=data.asked[place])

    def opening(name: str, number: int) -> None:
        with opened(name) as memory:
            recall(memory, number)

    def turns(call: Callable[[Any, int], object], subjects: dict[str, Any]) -> dict[str, Callable[[int], object]]:
        return {name: lambda number, subject=subject: call(subject, number) for name, subject in subjects.items()}

    yield Figures("remember_many", rates({name: lambda name=name: loading(name) for name in _KEYS}, len(items)))
    names = {name: name for name in _KEYS}
    yield Timing("open and recall once", turns(opening, names), context.count(_OPENS), warm_up=1)
    with ExitStack() as stack:
        memories = {name: stack.enter_context(opened(name)) for name in _KEYS}
        yield Timing("recall", turns(recall, memories), context.rounds)
        writing = turns(
            lambda memory, number: memory.remember(NewRecord(f"{data.lines[0]} {number}", vector=data.vectors[0])),
            memories,
        )
        yield Timing("remember", writing, context.count(_WRITES), warm_up=1)


CASE = Case("encryption", "what encryption costs", _setup, _tables, records=(10_000,), rounds=300)
