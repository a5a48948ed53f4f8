"""Run as a script: one system with one embedding model on one set."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cached_embedder import cached
from benchmarks.harness.measure import percentiles
from benchmarks.isolated_process import anonymous_mb, finish
from benchmarks.memory_systems.system import Embed, Said
from benchmarks.memory_systems.systems import SYSTEMS
from benchmarks.quality import locomo, longmemeval
from benchmarks.quality.metrics import figures_at_k, recall_all_at_k, recall_any_at_k
from recallite.embedding import load

__all__ = ["interval", "locomo_stores", "longmemeval_stores"]

# A store: its records, and its questions, each with the moment and what is relevant.
Store = tuple[list[Said], list[tuple[str, Any, set[Any]]]]
_TURNS, _SESSIONS, _TURNS_FOR_SESSIONS = 20, 5, 50
_RESAMPLES = 2000


def locomo_stores(data: Path) -> Iterator[Store]:
    """A store a conversation of LoCoMo; relevant are places of turns."""
    for conversation in locomo.read(data):
        turns = [
            Said(turn["text"], turn["context"], turn["source"], turn["position"], turn["created_at"])
            for turn in conversation.turns
        ]
        yield turns, [(question.text, None, set(question.gold)) for question in conversation.questions]


def longmemeval_stores(data: Path, whole_sessions: bool) -> Iterator[Store]:
    """A store a question of LongMemEval-S, of what the user said; relevant are sessions."""
    for sample in longmemeval.answerable(data):
        sessions: list[list[Said]] = []
        turns, gold = longmemeval.history(sample, roles=("user",))
        for turn in turns:
            record = Said(turn["text"], None, turn["source"], turn["position"], turn["created_at"])
            if sessions and sessions[-1][-1].session == record.session:
                sessions[-1].append(record)
            else:
                sessions.append([record])
        if whole_sessions:
            records = [one[0]._replace(text="\n\n".join(record.text for record in one)) for one in sessions]
        else:
            records = [record for one in sessions for record in one]
        yield records, [(sample["question"], longmemeval.asked_at(sample), gold)]


def interval(values: list[float]) -> dict[str, float]:
    """The mean, and the middle 95 % of means of 2,000 resamples with a fixed seed."""
    generator = np.random.default_rng(0)
    means = np.asarray(values)[generator.integers(0, len(values), (_RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return {"mean": round(float(np.mean(values)), 4), "low": round(low, 4), "high": round(high, 4)}


def _measure(name: str, embed: Embed, of: str, data: Path) -> dict[str, Any]:
    entry = SYSTEMS[name]
    system_class = entry.load()
    stores = locomo_stores(data) if of == "locomo" else longmemeval_stores(data, system_class.whole_sessions)
    figures: dict[str, list[float]] = {}
    milliseconds: list[float] = []
    written, write_s, added_mb = 0, 0.0, 0.0
    for records, questions in stores:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            embed.prepare([one.line for one in records], [text for text, _, _ in questions])
            before, began = anonymous_mb() or 0.0, time.perf_counter()
            system = system_class(Path(folder), embed)
            system.write(records)
            write_s += time.perf_counter() - began
            written += len(records)
            for text, moment, gold in questions:
                began = time.perf_counter()
                places = system.recall(text, _TURNS if of == "locomo" else _TURNS_FOR_SESSIONS, moment)
                milliseconds.append((time.perf_counter() - began) * 1e3)
                for metric, value in _figures(places, gold, records, of).items():
                    figures.setdefault(metric, []).append(value)
            added_mb = max(added_mb, (anonymous_mb() or 0.0) - before)
            system.close()
    return {
        "version": _version(entry.distribution),
        "questions": len(milliseconds),
        "records": written,
        "figures": {metric: interval(values) for metric, values in figures.items()},
        "recall": percentiles(milliseconds),
        "writes_per_second": round(written / write_s, 1),
        "added_mb": round(added_mb, 1),
    }


def _figures(places: list[int], gold: set[Any], records: list[Said], of: str) -> dict[str, float]:
    if of == "locomo":
        return figures_at_k(places, gold, _TURNS)
    sessions = list(dict.fromkeys(records[place].session for place in places))
    return {
        "recall_all@5": recall_all_at_k(sessions, gold, _SESSIONS),
        "recall_any@5": recall_any_at_k(sessions, gold, _SESSIONS),
    }


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        import recallite

        return recallite.__version__


if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    embedder = cached(load(task["embedder"]), None if task["cache"] is None else Path(task["cache"]))
    outcome = _measure(task["system"], Embed(embedder), task["set"], Path(task["data"]))
    embedder.flush()
    finish(outcome)
