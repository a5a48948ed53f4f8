"""What encryption costs: an encrypted store and a plain one, asked and written in turns by one process.

    python -m benchmarks.encryption [records]

It needs apsw-sqlite3mc in place of apsw, for both stores. Vectors are given, so no embedder is in the figures.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.tables import milliseconds, table
from recallite import Memory, Settings

_RECORDS, _DIMENSION, _SEED = 10_000, 384, 7
_OPENS, _RECALLS, _WRITES = 15, 300, 150
_KEYS = {"plain": None, "passphrase": "correct horse battery staple", "raw key": "raw:" + "5a" * 32}


class _Vectors:
    """An embedder's name and dimension; every vector is given."""

    name, dimension, fingerprint = "given", _DIMENSION, "given"

    def embed(self, texts: object) -> np.ndarray:
        raise NotImplementedError


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def _in_turns(count: int, calls: dict[str, Callable[[int], object]]) -> dict[str, float]:
    """The median of each call in milliseconds; they take turns, so that what else the machine does meets all alike."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(count):
        for name, call in calls.items():
            taken[name].append(_timed(lambda call=call, turn=turn: call(turn)))
    return {name: float(np.median(values)) for name, values in taken.items()}


def measure(folder: Path, records: int) -> dict[str, dict[str, float]]:
    """Milliseconds of each operation, for each kind of key."""
    rng = np.random.default_rng(_SEED)
    vectors = rng.standard_normal((records + _WRITES, _DIMENSION)).astype(np.float32)
    words = [f"word{number}" for number in range(2_000)]
    texts = [" ".join(rng.choice(words, 25)) for _ in range(records + _WRITES)]
    items = [{"text": text, "vector": vector} for text, vector in zip(texts[:records], vectors, strict=False)]
    asked = [(" ".join(rng.choice(words, 4)), rng.standard_normal(_DIMENSION).astype(np.float32)) for _ in range(300)]

    def opened(name: str, **settings: object) -> Memory:
        return Memory(folder / f"{name}.db", embedder=_Vectors(), settings=Settings(**settings), key=_KEYS[name])

    def recall(memory: Memory, turn: int) -> object:
        query, vector = asked[turn % len(asked)]
        return memory.recall(query, vector=vector)

    def open_and_recall(name: str, turn: int) -> None:
        with opened(name) as memory:
            recall(memory, turn)

    found: dict[str, dict[str, float]] = {"remember_many, all": {}}
    for name in _KEYS:
        with opened(name) as memory:
            memory.warmup()
            found["remember_many, all"][name] = _timed(lambda memory=memory: memory.remember_many(items))
    found["open"] = _in_turns(_OPENS, {name: lambda _, name=name: opened(name).close() for name in _KEYS})
    found["open and recall once"] = _in_turns(
        _OPENS, {name: lambda turn, name=name: open_and_recall(name, turn) for name in _KEYS}
    )
    memories = {name: opened(name) for name in _KEYS}
    calls = {name: lambda turn, memory=memory: recall(memory, turn) for name, memory in memories.items()}
    _in_turns(10, calls)
    found["recall"] = _in_turns(_RECALLS, calls)
    found["remember"] = _in_turns(
        _WRITES,
        {
            name: lambda turn, memory=memory: memory.remember(texts[records + turn], vector=vectors[records + turn])
            for name, memory in memories.items()
        },
    )
    for memory in memories.values():
        memory.close()
    return found


def main() -> None:
    """Measure and print."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else _RECORDS
    with tempfile.TemporaryDirectory(prefix="recallite-encryption-") as folder:
        found = measure(Path(folder), records)
    lines = [
        [label, *(milliseconds(each[name]) for name in _KEYS), f"{each['raw key'] / each['plain']:.2f}"]
        for label, each in found.items()
    ]
    print(table(["p50 ms", *_KEYS, "raw key / plain"], lines, left=["p50 ms"]))
    print(f"\n{records:,} records, vectors given.")


if __name__ == "__main__":
    main()
