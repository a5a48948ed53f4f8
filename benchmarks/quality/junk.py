"""Junk: which short texts are worth no memory.

300 texts in `junk.jsonl`, half of them junk (see the README), each remembered alone with `WritePolicy(junk="skip")`.
"precision" is the share of the skipped texts that are junk, "recall" the share of the junk that is skipped.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.quality import checkout
from benchmarks.quality.result import OpenMemory, Progress
from recallite.model.settings import WritePolicy

__all__ = ["TABLE", "evaluate", "read"]

TABLE = Path(__file__).with_name("junk.jsonl")


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """Precision and recall, and the recall by class."""
    texts = read()
    policy = WritePolicy(junk="skip")
    all_of, skipped = Counter[str](), Counter[str]()
    with open_memory() as memory:
        for done, one in enumerate(texts, 1):
            kind = one["class"] if one["junk"] else "memory"
            all_of[kind] += 1
            skipped[kind] += memory.remember(one["text"], policy=policy, scope=f"/{one['id']}").outcome == "skipped"
            on_progress(done, len(texts))
    junk = skipped.total() - skipped["memory"]
    return {
        "questions": len(texts),
        "records": len(texts),
        "figures": {
            "default": {
                "precision": round(junk / max(skipped.total(), 1), 4),
                "recall": round(junk / (all_of.total() - all_of["memory"]), 4),
            }
        },
        "classes": {kind: {"questions": count, "skipped": skipped[kind]} for kind, count in all_of.items()},
        "seconds": {},
    }


def read() -> list[dict[str, Any]]:
    """The texts of the table."""
    return checkout.table(TABLE)
