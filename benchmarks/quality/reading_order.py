"""python -m benchmarks.quality.reading_order --data DIR [--realtalk DIR] [--cache DIR]: what reading does to the order.

The cut of `relevant` reads the first five hits and puts them in the order of their confidence. Here nothing is left
out, so that the order alone differs from plain recall: recall@20 and hit@20 are the same, and MRR shows what changed.
All three sets were looked at when the order was chosen.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from unittest.mock import patch

from benchmarks.cached_embedder import cached
from benchmarks.quality import locomo, realmem, realtalk
from benchmarks.quality.columns import COLUMNS
from recallite import Memory
from recallite.embedding import load

SETS = {"locomo": locomo.evaluate, "realmem": realmem.evaluate, "realtalk": realtalk.evaluate}


def main() -> None:
    """Print MRR of plain recall and of hits that were read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.reading_order")
    parser.add_argument("--data", type=Path, required=True, help="folder with locomo*.json.gz and realmem*.json.gz")
    parser.add_argument("--realtalk", type=Path, help="folder or git repository with REALTALK")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    options = parser.parse_args()
    embedder = load()
    print("| set | questions | MRR | MRR, read |\n| --- | ---: | ---: | ---: |")
    for name, evaluate in SETS.items():
        folder = options.realtalk if name == "realtalk" else options.data
        if folder is None:
            continue
        vectors = cached(embedder, None if options.cache is None else options.cache / name)
        with (
            patch.dict(COLUMNS, {"default": {}, "read": {"relevant": True}}, clear=True),
            patch("recallite.recall.request.ANSWER_CONFIDENCE", 0.0),
            patch("recallite.recall.judge.ANSWER_SHARE", 0.0),
        ):
            result = evaluate(folder, lambda: Memory(":memory:", embedder=vectors), lambda done, total: None)  # noqa: B023
        vectors.flush()
        plain, read = (result["figures"][column]["MRR"] for column in ("default", "read"))
        print(f"| {name} | {result['questions']} | {plain:.3f} | {read:.3f} |", flush=True)


if __name__ == "__main__":
    main()
