"""python -m benchmarks.write_cost --corpus FILE [--cache DIR]: what detection of changed statements adds to a write.

One file of 100,000 short lines of a corpus, at most 25 words each, in one scope, at full durability. The first 5,000
have their real vectors, further ones variants of them. It is written as by default, and one state is reported in it a
thousand times, so that it has a long history. Then single texts are written with the default policy and without
detection in turn, in one process:

- "new": lines that are not stored;
- "changed": stored lines of 5 to 12 words with another last number or word, so there is something to compare with;
- "the same state again": the state that was reported a thousand times, with another value;
- "new, from text": new lines whose vector is not given.

Elapsed and processor time of the single writes are given, and how much the median is above that without detection. Many
at once are timed in two new files of 20,000 lines, vectors given.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import corpus
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.environment import describe
from benchmarks.tables import table
from recallite import Memory
from recallite.embedding import Embedder, load
from recallite.model.policies import WritePolicy

__all__ = ["changed", "main", "markdown", "measure"]

RESULTS = Path(__file__).resolve().parent / "results" / "write_cost.json"
_WITHOUT = WritePolicy(supersede_confidence=None, contradict_confidence=None, duplicates="store")
POLICIES: dict[str, WritePolicy | None] = {"with": None, "without": _WITHOUT}
_MOST_WORDS, _FEW_WORDS, _FEWEST_WORDS = 25, 12, 5
_STATES = 1000
_MANY = 20_000
_WARM_UP = 20


def main() -> None:
    """Measure, save and print."""
    options = _arguments()
    if not options.render:
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            run = measure(options.corpus, options.records, options.real, options.writes, options.cache, Path(folder))
        options.out.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    print(markdown(json.loads(options.out.read_text(encoding="utf-8"))))


def measure(
    path: Path | None, records: int, real: int, writes: int, cache: Path | None, folder: Path
) -> dict[str, Any]:
    """Elapsed and processor milliseconds of single writes by case and policy, and records a second of many."""
    each = len(POLICIES) * writes + _WARM_UP
    lines = _short_lines(path, records + 2 * each)
    stored, new, texts = lines[:records], lines[records : records + each], lines[records + each :]
    embedder = CachedEmbedder(load(), cache)
    embedded, owners = embedder.embed_documents(stored[:real], [None] * min(real, len(stored)))
    embedder.flush()
    vectors = corpus.varied(embedded[np.searchsorted(owners, np.arange(min(real, len(stored))))], records + each)
    few = [place for place, line in enumerate(stored) if _FEWEST_WORDS <= len(line.split()) <= _FEW_WORDS]
    few = np.resize(few[:: max(1, len(few) // each)], each).tolist()
    with Memory(folder / "large.db", embedder=embedder) as memory:
        states = [{"text": _state(number), "vector": vectors[number % records]} for number in range(_STATES)]
        began = time.perf_counter()
        memory.remember_many([*_items(stored, vectors), *states])
        seconds = time.perf_counter() - began
        memory.warmup()
        cases = {
            "new": _in_turn(memory, new, vectors[records:]),
            "changed": _in_turn(memory, [changed(stored[place]) for place in few], vectors[few]),
            "the same state again": _in_turn(memory, [_state(_STATES + number) for number in range(each)], vectors),
            "new, from text": _in_turn(memory, texts, None),
        }
    return {
        **describe(),
        "records": records,
        "real_embeddings": real,
        "writes": writes,
        "records_per_second": round((records + _STATES) / seconds),
        "cases": cases,
        "many": {way: _many(folder / f"{way}.db", embedder, stored, vectors, POLICIES[way]) for way in POLICIES},
    }


def changed(line: str) -> str:
    """The line with its last number, or else its last word, replaced."""
    if numbers := list(re.finditer(r"\d+", line)):
        last = numbers[-1]
        return f"{line[: last.start()]}{int(last[0]) + 1}{line[last.end() :]}"
    return " ".join([*line.split(" ")[:-1], "elsewhere."])


def markdown(run: dict[str, Any]) -> str:
    """The table of a run."""
    header = (
        "single write",
        "p50 ms",
        "p95 ms",
        "without detection, p50 ms",
        "detection adds, ms",
        "of it processor, ms",
    )
    rows = [
        (
            name,
            f"{found['with']['p50_ms']:.3f}",
            f"{found['with']['p95_ms']:.3f}",
            f"{found['without']['p50_ms']:.3f}",
            f"{found['with']['p50_ms'] - found['without']['p50_ms']:.3f}",
            f"{found['with']['processor_p50_ms'] - found['without']['processor_p50_ms']:.3f}",
        )
        for name, found in run["cases"].items()
    ]
    many = ", ".join(f"{run['many'][way]:,} {way} detection" for way in POLICIES)
    caption = f"{run['records']:,} records in one scope, {run['writes']:,} writes each, commit {run['commit']}"
    return (
        f"{table(header, rows, left=header[:1])}\n\nMany at once, records a second: {many}.\n\n"
        f"{caption}, {run['date']}, {run['cores']} cores."
    )


def _in_turn(
    memory: Memory, texts: Sequence[str], vectors: Sequence[object] | NDArray[np.float32] | None
) -> dict[str, Any]:
    elapsed: dict[str, list[float]] = {way: [] for way in POLICIES}
    spent: dict[str, list[float]] = {way: [] for way in POLICIES}
    for place, text in enumerate(texts):
        way = list(POLICIES)[place % len(POLICIES)]
        given = None if vectors is None else vectors[place]
        began, began_processor = time.perf_counter(), time.process_time()
        memory.remember(text, vector=given, policy=POLICIES[way])
        ended, ended_processor = time.perf_counter(), time.process_time()
        if place >= _WARM_UP:
            elapsed[way].append((ended - began) * 1e3)
            spent[way].append((ended_processor - began_processor) * 1e3)
    return {
        way: {
            "p50_ms": round(median(elapsed[way]), 4),
            "p95_ms": round(float(np.quantile(elapsed[way], 0.95)), 4),
            "processor_p50_ms": round(median(spent[way]), 4),
        }
        for way in POLICIES
    }


def _many(
    path: Path, embedder: Embedder, lines: Sequence[str], vectors: NDArray[np.float32], policy: WritePolicy | None
) -> int:
    """Records a second of `remember_many`."""
    items = _items(lines[:_MANY], vectors)
    with Memory(path, embedder=embedder) as memory:
        began = time.perf_counter()
        memory.remember_many(items, policy=policy)
        return round(len(items) / (time.perf_counter() - began))


def _items(lines: Sequence[str], vectors: NDArray[np.float32]) -> list[dict[str, Any]]:
    return [{"text": line, "vector": vector} for line, vector in zip(lines, vectors, strict=False)]


def _state(number: int) -> str:
    return f"The reservoir holds {10_000 + 7 * number} litres."


def _short_lines(path: Path | None, count: int) -> list[str]:
    """The first distinct lines of at most 25 words."""
    most = 2 * count
    while True:
        short = [line for line in dict.fromkeys(corpus.read_lines(path, most)) if len(line.split()) <= _MOST_WORDS]
        if len(short) >= count:
            return short[:count]
        most *= 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.write_cost", description="What detection costs.")
    parser.add_argument("--corpus", type=Path, help="text file (.gz too), a line a record; synthetic ones without it")
    parser.add_argument("--records", type=int, default=100_000, help="how many lines are stored")
    parser.add_argument("--real", type=int, default=5_000, help="how many of them are embedded")
    parser.add_argument(
        "--writes", type=int, default=200, help="how many single writes of a case are timed with a policy"
    )
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--work", type=Path, help="folder for the stores, on the disk to be measured (temporary)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--render", action="store_true", help="print the saved result and stop")
    return parser.parse_args()


if __name__ == "__main__":
    main()
