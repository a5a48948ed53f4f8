"""python -m benchmarks.embedding [--corpus FILE] [--float32 DIR].

One query at a time, chat turns in bulk and full windows in bulk, from text to vectors, tokenizing included.
`--float32` names a folder that `python -m recallite_models.build --float32` wrote: cosines are to its vectors.
Processor time stands beside elapsed time: it says what a text costs where other processes share the cores.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import corpus
from benchmarks.environment import describe
from recallite.embedding import load
from recallite.system.cpus import saturates_int8

RESULTS = Path(__file__).parent / "results" / "embedding.json"
_LINES, _QUERIES, _TURNS, _PASSAGES = 20_000, 300, 256, 32
_TURN_TOKENS = range(25, 42)  # 33 in the middle; special tokens included
_ROUNDS = 5


def main() -> None:
    """Measure, save and print."""
    options = _arguments()
    if options.render:
        print(markdown(json.loads(options.out.read_text(encoding="utf-8"))))
        return
    run = measure(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(run, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    table = Table("case", *_columns(run))
    for row in _rows(run):
        table.add_row(*row)
    Console(width=max(Console().width, 140)).print(table)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All three cases, and their cosines where there is something to hold them against."""
    embedder: Any = load(options.embedder)
    texts = workloads(corpus.read_lines(options.corpus, _LINES), embedder)
    load_before = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    embedder.embed(texts["chat turns"])
    cases = {
        "one query": _timed([lambda text=text: embedder.embed([text]) for text in texts["one query"]], 1),
        "chat turns": _timed([lambda: embedder.embed(texts["chat turns"])] * _ROUNDS, len(texts["chat turns"])),
        "full windows": _timed([lambda: embedder.embed(texts["full windows"])] * _ROUNDS, len(texts["full windows"])),
    }
    reference: Any = None if options.float32 is None else load(options.float32)
    for name, figures in cases.items():
        figures["texts"] = len(texts[name])
        counts = np.minimum(np.array(embedder.count_tokens(texts[name])) + 2, embedder.max_tokens)
        figures["tokens"] = round(float(counts.mean()), 1)
        if reference is not None:
            cosines = np.einsum("ij,ij->i", embedder.embed(texts[name]), reference.embed(texts[name]))
            figures["cosine_mean"], figures["cosine_min"] = (
                round(float(cosines.mean()), 4),
                round(float(cosines.min()), 4),
            )
    return {
        "environment": describe() | {"int8_dot_product": not saturates_int8(), "load_before": load_before},
        "embedder": embedder.fingerprint,
        "corpus": "synthetic" if options.corpus is None else options.corpus.name,
        "cases": cases,
    }


def workloads(lines: Sequence[str], embedder: Any) -> dict[str, list[str]]:
    """Distinct queries of at most 12 words, lines of about 33 tokens, and lines joined until they fill a window."""
    lengths = [count + 2 for count in embedder.count_tokens(lines)]
    turns = [line for line, length in zip(lines, lengths, strict=True) if length in _TURN_TOKENS]
    passages, words = [], 0
    begin = 0
    for end, length in enumerate(lengths, 1):
        words += length
        if words >= 1.2 * embedder.max_tokens:
            passages.append(" ".join(lines[begin:end]))
            begin, words = end, 0
    return {
        "one query": corpus.queries(lines, _QUERIES),
        "chat turns": turns[:_TURNS],
        "full windows": passages[:_PASSAGES],
    }


def _timed(calls: Sequence[Callable[[], object]], texts: int) -> dict[str, Any]:
    """Milliseconds of a call, texts a second of the median call, processor milliseconds a text."""
    elapsed = []
    processor = process_time()
    for call in calls:
        began = perf_counter()
        call()
        elapsed.append(perf_counter() - began)
    processor = process_time() - processor
    p50, p95 = np.percentile(elapsed, [50, 95])
    return {
        "p50_ms": round(float(p50) * 1e3, 3),
        "p95_ms": round(float(p95) * 1e3, 3),
        "texts_per_second": round(texts / float(p50), 1),
        "processor_ms_per_text": round(processor * 1e3 / len(calls) / texts, 3),
    }


def markdown(run: dict[str, Any]) -> str:
    """The saved result as a Markdown table."""
    columns = ["case", *_columns(run)]
    rows = [columns, ["---"] * len(columns), *_rows(run)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _columns(run: dict[str, Any]) -> list[str]:
    return list(next(iter(run["cases"].values())))


def _rows(run: dict[str, Any]) -> list[list[str]]:
    return [[name, *(f"{figures[column]:,}" for column in _columns(run))] for name, figures in run["cases"].items()]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedding", description=__doc__)
    parser.add_argument("--embedder", default="default", help="a bundled model's name or a model folder")
    parser.add_argument("--corpus", type=Path, help="text file (.gz too), a text per line; else made up")
    parser.add_argument("--float32", type=Path, help="model folder to hold the vectors against")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write")
    parser.add_argument("--render", action="store_true", help="print the saved result as Markdown, measure nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
