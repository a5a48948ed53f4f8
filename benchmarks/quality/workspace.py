"""LongMemEval-S as a folder of Markdown files, as memweave's authors measured it.

Each question has a workspace of its own: a session is a file `memory/sessions/<number>.md` with the user's turns as
paragraphs, under a name that says nothing. A search gives chunks; a session's rank is that of its best chunk. Nothing
is set but `min_score=0` and enough results to fill ten sessions, for every strategy alike.

python -m benchmarks.quality.workspace --data DIR [--cache DIR] [--out FILE]
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

from benchmarks import saving
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.environment import describe, embed_each_question
from benchmarks.quality.longmemeval import answerable
from benchmarks.quality.metrics import ndcg_at_k, recall_all_at_k, recall_any_at_k
from benchmarks.tables import table
from recallite import Workspace
from recallite.embedding import load

__all__ = ["evaluate", "main", "write_sessions"]

RESULTS = saving.RESULTS / "workspace_quality.json"
STRATEGIES = ("hybrid", "vector", "keyword")
_CHUNKS = 60


def main() -> None:
    """Run it and save what it gives, or print a saved run as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.workspace", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with longmemeval_s*.json.gz")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--render", action="store_true", help="print the saved result as Markdown and run nothing")
    options = parser.parse_args()
    if not options.render:
        if options.data is None:
            parser.error("--data is needed: the folder with the set")
        saving.write(evaluate(options.data, options.cache), options.out)
    print(markdown(saving.read(options.out)))


def evaluate(data: Path, cache: Path | None) -> dict[str, Any]:
    """Means over the questions, by strategy."""
    samples = answerable(data)
    embedder = CachedEmbedder(load(None), None if cache is None else cache / "longmemeval-files")
    figures: dict[str, list[dict[str, float]]] = defaultdict(list)
    counts = {"files": 0, "chunks": 0}
    seconds = []
    for done, sample in enumerate(samples, 1):
        with tempfile.TemporaryDirectory() as folder:
            gold = write_sessions(Path(folder), sample)
            with Workspace(folder, embedder=embedder) as workspace:
                indexed = workspace.index()
                counts["files"] += indexed.files_indexed
                counts["chunks"] += indexed.chunks_created
                for strategy in STRATEGIES:
                    began = perf_counter()
                    results = workspace.search(
                        sample["question"], strategy=strategy, max_results=_CHUNKS, min_score=0.0
                    )
                    seconds.append(perf_counter() - began)
                    figures[strategy].append(_figures(list(dict.fromkeys(result.path for result in results)), gold))
        embedder.flush()
        print(f"{done} of {len(samples)}", end="\r", flush=True)
    return {
        **describe(), **counts, "questions": len(samples), "search_ms_p50": round(median(seconds) * 1000, 2),
        "figures": {
            name: {metric: round(fmean(result[metric] for result in scores), 4) for metric in scores[0]}
            for name, scores in figures.items()
        },
    }  # fmt: skip


def markdown(run: dict[str, Any]) -> str:
    """The table of a run."""
    metrics = list(run["figures"]["hybrid"])
    rows = [(name, *(f"{figures[metric]:.3f}" for metric in metrics)) for name, figures in run["figures"].items()]
    caption = f"{run['questions']} questions, {run['files']:,} files, {run['chunks']:,} chunks. Commit {run['commit']}."
    return f"{table(('strategy', *metrics), rows, left=('strategy',))}\n\n{caption}"


def write_sessions(folder: Path, sample: dict[str, Any]) -> set[str]:
    """The files of a question's history; returns the paths of the sessions that answer."""
    gold = set()
    for number, (name, session) in enumerate(
        zip(sample["haystack_session_ids"], sample["haystack_sessions"], strict=True)
    ):
        path = f"memory/sessions/{number:03}.md"
        turns = [turn["content"].strip() for turn in session if turn["role"] == "user" and turn["content"].strip()]
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("\n\n".join(turns) + "\n", encoding="utf-8")
        if name in sample["answer_session_ids"]:
            gold.add(path)
    return gold


def _figures(ranked: list[str], gold: set[str]) -> dict[str, float]:
    return {
        "recall_any@1": recall_any_at_k(ranked, gold, 1),
        "recall_any@5": recall_any_at_k(ranked, gold, 5),
        "recall_any@10": recall_any_at_k(ranked, gold, 10),
        "recall_all@5": recall_all_at_k(ranked, gold, 5),
        "nDCG@5": ndcg_at_k(ranked, gold, 5),
    }


if __name__ == "__main__":
    embed_each_question()
    main()
