"""Is the answer the right one: the vector stage against float64, the JIT kernels against the python ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.latency.figures import percentiles
from benchmarks.latency.newprocess import run
from recallite import Memory
from recallite.embedding import Embedder

__all__ = ["backends", "differences", "vector_stage"]

_TOLERANCE = 1e-5
_BLOCK = 50


def vector_stage(
    path: Path,
    embedder: Embedder,
    lines: Sequence[str],
    vectors: NDArray[np.float32],
    questions: Sequence[str],
    asked: NDArray[np.float32],
) -> dict[str, Any]:
    """recall@10 of mode="vector" against the cosine of all vectors in float64.

    A hit counts when its exact cosine reaches the tenth best: equal ones are equally right.
    """
    whole = vectors.astype(np.float64)
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    places: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        places.setdefault(line, []).append(place)
    shares = []
    with Memory(path, embedder=embedder) as memory:
        for place, (text, vector) in enumerate(zip(questions, asked, strict=True)):
            if place % _BLOCK == 0:
                block = asked[place : place + _BLOCK].astype(np.float64)
                exact = whole @ (block / np.linalg.norm(block, axis=1, keepdims=True)).T
            cosines = exact[:, place % _BLOCK]
            tenth = np.partition(cosines, -10)[-10]
            hits = memory.recall(text, vector=vector, mode="vector", limit=10)
            right = sum(max(cosines[each] for each in places[hit.text]) >= tenth - 1e-12 for hit in hits)
            shares.append(right / 10)
    return {
        "vector stage against float64": {
            "recall@10": round(float(np.mean(shares)), 4),
            "worst_query": float(min(shares)),
            "queries": len(shares),
        }
    }


def backends(path: Path, folder: Path, questions: Sequence[str], asked: NDArray[np.float32]) -> dict[str, Any]:
    """Do both kernel backends give the same hits, each in a process of its own? And how much slower is python?"""
    vectors = folder / "asked.npy"
    np.save(vectors, asked)
    texts = folder / "asked.json"
    texts.write_text(json.dumps({"texts": list(questions), "vectors": str(vectors)}), encoding="utf-8")
    arguments = {"path": str(path), "questions": str(texts), "limit": 20}
    answers = {name: run("answers", arguments, {"RECALLITE_KERNELS": name}) for name in ("numba", "python")}
    found = [
        difference
        for jit, python in zip(answers["numba"]["hits"], answers["python"]["hits"], strict=True)
        for difference in differences(jit, python)
    ]
    times = {name: percentiles(answer["milliseconds"]) for name, answer in answers.items()}
    return {
        "backends": {
            "queries": len(questions),
            "differences_above_1e-5": len(found),
            "first_differences": found[:3],
            "kernels": [answer["kernels"] for answer in answers.values()],
            "numba_p50_ms": times["numba"]["p50_ms"],
            "python_p50_ms": times["python"]["p50_ms"],
            "python_is_slower_by": round(times["python"]["p50_ms"] / times["numba"]["p50_ms"], 1),
        }
    }


def differences(one: list[tuple[str, float]], other: list[tuple[str, float]]) -> list[str]:
    """Where two rankings differ by more than rounding can explain.

    The scores at each rank must agree within 1e-5, and so must each record's own; a record that only one side has must
    score within 1e-5 of the other side's last, where either may fall off the end.
    """
    found = [
        f"rank {rank}: {a} and {b}"
        for rank, (a, b) in enumerate(zip_longest(one, other), 1)
        if a is None or b is None or abs(a[1] - b[1]) > _TOLERANCE
    ]
    scores, others = dict(one), dict(other)
    for id in dict.fromkeys([*scores, *others]):
        if id in scores and id in others:
            if abs(scores[id] - others[id]) > _TOLERANCE:
                found.append(f"{id}: {scores[id]} and {others[id]}")
        else:
            score, last = (scores[id], other[-1:]) if id in scores else (others[id], one[-1:])
            if not last or abs(score - last[0][1]) > _TOLERANCE:
                found.append(f"{id} with {score} on one side only")
    return found
