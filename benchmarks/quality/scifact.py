"""SciFact: which abstracts bear on a scientific claim.

Every abstract is a record, its title the context, in one store. The training claims are asked. nDCG@10 has the ideal
over all judged abstracts of a claim.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.metrics import ndcg_at_k, recall_at_k
from benchmarks.quality.result import OpenMemory, Progress, Tally
from recallite.recall.request import recall_arguments

__all__ = ["evaluate"]

LIMIT = 10


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """nDCG@10 and recall@10 of every column."""
    folder = data / "scifact"
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        abstracts = [json.loads(line) for line in file]
    relevant: defaultdict[str, set[str]] = defaultdict(set)
    with (folder / "train.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["score"]) > 0:
                relevant[row["query-id"]].add(row["corpus-id"])
    with (folder / "queries_train.jsonl").open(encoding="utf-8") as file:
        claims = [claim for claim in map(json.loads, file) if claim["_id"] in relevant]
    tally = Tally()
    with open_memory() as memory:
        items = [{"text": abstract["text"], "context": abstract["title"]} for abstract in abstracts]
        ids = tally.remember(memory, items)
        names = {id: abstract["_id"] for id, abstract in zip(ids, abstracts, strict=True)}
        texts = [claim["text"] for claim in claims]
        for done, (column, options) in enumerate(COLUMNS.items(), 1):
            with tally.timed(column):
                answers = memory.recall_many(texts, limit=LIMIT, **recall_arguments(options))
            for claim, hits in zip(claims, answers, strict=True):
                ranked = [names[hit.id] for hit in hits]
                gold = relevant[claim["_id"]]
                figures = {
                    "nDCG@10": ndcg_at_k(ranked, gold, LIMIT),
                    "recall@10": recall_at_k(ranked, gold, LIMIT),
                }
                tally.add(column, figures)
            on_progress(done, len(COLUMNS))
    return tally.result(stores=1)
