"""python -m benchmarks.stages --db FILE --corpus FILE [--cache DIR]: where the time of a single recall goes.

Each stage and each kernel is timed where it is called; what is shown in deeper lines is part of the line above. The
query vectors are ready, filters are off.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import corpus
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.environment import describe
from benchmarks.tables import table
from recallite import Memory
from recallite.embedding import load
from recallite.index import query_batch
from recallite.recall import candidates, pipeline, view
from recallite.recall.confidence import Judge
from recallite.store.sqlite.blocks import SqliteBlocks
from recallite.store.sqlite.records import SqliteRecords
from recallite_kernels import dispatch

RESULTS = Path(__file__).resolve().parent / "results" / "stages.json"
_QUESTIONS, _WARM_UP = 400, 50
_STEPS: tuple[tuple[int, str, Any, str], ...] = (
    (0, "check the query", pipeline, "prepare_queries"),
    (0, "filter", view, "select_rows"),
    (0, "answer", pipeline, "answer_all"),
    (1, "words of the query", pipeline, "find_words"),
    (1, "their postings and IDF", query_batch.IndexView, "batch"),
    (1, "search, by vector and by words", query_batch.QueryBatch, "search"),
    (2, "scan the sketches (a block)", dispatch.python_backend, "hamming_shortlist"),
    (2, "BM25, best of all", dispatch.python_backend, "bm25_top_k"),
    (2, "rescore the shortlist", dispatch.python_backend, "rescore_shortlist"),
    (1, "exact cosines of the first", candidates, "_rescore"),
    (2, "read their vectors", SqliteBlocks, "exact_vectors"),
    (1, "join, measure, fuse, spread, order", query_batch.QueryBatch, "rank"),
    (2, "the kernel of it", dispatch.python_backend, "rank_candidates"),
    (1, "confidence", Judge, "assess"),
    (1, "what is said of each hit", pipeline, "score_hits"),
    (0, "fetch and show", pipeline, "fetch_hits"),
    (1, "fetch", SqliteRecords, "fetch"),
    (1, "build the hits", pipeline, "load_hits"),
)


def main() -> None:
    """Measure, save and print."""
    options = _arguments()
    if not options.render:
        options.out.write_text(json.dumps(measure(options), indent=2) + "\n", encoding="utf-8")
    print(markdown(json.loads(options.out.read_text(encoding="utf-8"))))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of each step of single recalls: median, and how often it is called."""
    lines = corpus.read_lines(options.corpus, 20_000)
    questions = corpus.queries(lines, _QUESTIONS + _WARM_UP)
    asked = CachedEmbedder(load(), options.cache).embed(questions)
    with Memory(options.db) as memory:
        memory.warmup()
        times: defaultdict[str, list[float]] = defaultdict(list)
        whole = []
        for place, (question, vector) in enumerate(zip(questions, asked, strict=True)):
            if place == _WARM_UP:
                for _, title, owner, name in _STEPS:
                    owner = dispatch.active if owner is dispatch.python_backend else owner
                    setattr(owner, name, _timed(getattr(owner, name), times[title]))
            began = time.perf_counter()
            memory.recall(question, vector=vector)
            if place >= _WARM_UP:
                whole.append(time.perf_counter() - began)
        records = memory.count()
    steps = [
        {
            "step": title,
            "depth": depth,
            "p50_ms": round(median(times[title]) * 1e3, 4) if times[title] else 0.0,
            "calls": round(len(times[title]) / len(whole)),
        }
        for depth, title, _, _ in _STEPS
    ]
    return {**describe(), "records": records, "whole_p50_ms": round(median(whole) * 1e3, 3), "steps": steps}


def markdown(run: dict[str, Any]) -> str:
    """The steps of a run in Markdown."""
    rows = [
        (
            "\u2003" * step["depth"] + step["step"] + (f" (x {step['calls']})" if step["calls"] > 1 else ""),
            f"{step['p50_ms']:.3f}",
        )
        for step in run["steps"]
    ]
    caption = f"{run['records']:,} records, commit {run['commit']}, {run['date']}, {run['cores']} cores."
    header = ("single recall, vector ready", f"p50 ms of {run['whole_p50_ms']:.2f}")
    return f"{table(header, rows, left=(header[0],))}\n\n{caption}"


def _timed(call: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    @functools.wraps(call)
    def timed(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        result = call(*arguments, **named)
        times.append(time.perf_counter() - began)
        return result

    return timed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stages", description="Where a recall's time goes.")
    parser.add_argument("--db", type=Path, help="a store to ask")
    parser.add_argument("--corpus", type=Path, help="text file (.gz too) whose first lines give the questions")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--render", action="store_true", help="print the saved result and stop")
    options = parser.parse_args()
    if not options.render and options.db is None:
        parser.error("--db is missing: name a store to ask")
    return options


if __name__ == "__main__":
    main()
