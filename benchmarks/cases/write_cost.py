"""Single writes with and without detection of changed statements, and many at once.

A file of short lines in one scope, at full durability, which was told one state a thousand times. "Changed" texts are
stored lines of 5 to 12 words with another last number or word, so there is something to compare them with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks import corpus
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import interleaved, rates
from recallite import Memory
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy

__all__ = ["CASE", "POLICIES", "changed"]

POLICIES: dict[str, WritePolicy | None] = {
    "without": WritePolicy(supersede_confidence=None, contradict_confidence=None, duplicates="store"),
    "with": None,
}
_MOST_WORDS, _COMPARED = 25, range(5, 13)
_STATES, _MANY, _WARM_UP, _REAL = 1000, 20_000, 10, 5000


@contextmanager
def _setup(context: Context) -> Iterator[dict[str, Any]]:
    writes = 2 * (context.rounds + _WARM_UP)
    lines = _short_lines(context, context.records + 2 * writes)
    stored, new = lines[: context.records], lines[context.records :]
    firsts = stored[:_REAL]
    embedded, owners = context.model.embed_documents(firsts, [None] * len(firsts))
    context.model.flush()
    vectors = corpus.varied(embedded[np.searchsorted(owners, np.arange(len(firsts)))], context.records + writes)
    similar = [place for place, line in enumerate(stored) if len(line.split()) in _COMPARED]
    with Memory(context.folder / "large.db", embedder=context.model) as memory:
        states = [{"text": _state(number), "vector": vectors[number % len(stored)]} for number in range(_STATES)]
        memory.remember_many([*_items(stored, vectors), *states])
        memory.store.catch_up()
        memory.store.warmup()
        few = np.resize(similar[:: max(1, len(similar) // writes)], writes).tolist()
        yield {"memory": memory, "stored": stored, "new": new, "vectors": vectors, "few": few, "each": writes}


def _tables(state: dict[str, Any], context: Context) -> Iterator[Figures]:
    stored, vectors, few, writes = state["stored"], state["vectors"], state["few"], state["each"]
    texts: dict[str, Callable[[int], tuple[str, Any]]] = {
        "new": lambda at: (state["new"][at], vectors[len(stored) + at]),
        "changed": lambda at: (changed(stored[few[at]]), vectors[few[at]]),
        "the same state again": lambda at: (_state(_STATES + at), vectors[at % len(stored)]),
        "new, from text": lambda at: (state["new"][writes + at], None),
    }
    rows = {}
    for name, source in texts.items():
        ways = {
            f"{name}, {way} detection": _writing(state["memory"], source, place, policy)
            for place, (way, policy) in enumerate(POLICIES.items())
        }
        rows |= interleaved(Timing(name, ways, context.rounds, _WARM_UP))
    yield Figures("single write", rows)
    items = _items(stored[: context.count(_MANY)], vectors)
    many = {way: _loading(context, way, items) for way in POLICIES}
    yield Figures("many at once, detection", rates(many, len(items)))


def _writing(
    memory: Memory, source: Callable[[int], tuple[str, Any]], place: int, policy: WritePolicy | None
) -> Callable[[int], object]:
    def write(number: int) -> object:
        text, vector = source(2 * number + place)
        return memory.remember(NewRecord(text, vector=vector), policy=policy)

    return write


def _loading(context: Context, way: str, items: list[dict[str, Any]]) -> Callable[[], object]:
    def load() -> None:
        with Memory(context.folder / f"{way}.db", embedder=context.model) as memory:
            memory.remember_many(items, policy=POLICIES[way])

    return load


def changed(line: str) -> str:
    """The line with its last number, or else its last word, replaced."""
    if numbers := list(re.finditer(r"\d+", line)):
        last = numbers[-1]
        return f"{line[: last.start()]}{int(last[0]) + 1}{line[last.end() :]}"
    return " ".join([*line.split(" ")[:-1], "elsewhere."])


def _items(lines: list[str], vectors: Any) -> list[dict[str, Any]]:
    return [{"text": line, "vector": vector} for line, vector in zip(lines, vectors, strict=False)]


def _state(number: int) -> str:
    return f"The reservoir holds {10_000 + 7 * number} litres."


def _short_lines(context: Context, count: int) -> list[str]:
    """The first distinct lines of at most 25 words."""
    short: dict[str, None] = {}
    for line in corpus.lines(context.corpus):
        if len(line.split()) <= _MOST_WORDS:
            short[line] = None
        if len(short) == count:
            break
    if len(short) < count:
        raise SystemExit(f"the corpus has {len(short):,} lines of at most {_MOST_WORDS} words; {count:,} are needed")
    return list(short)


CASE = Case("write_cost", "what detection of changed statements adds to a write", _setup, _tables)
