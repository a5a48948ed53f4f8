"""Text to vectors, tokenizing included: single queries, chat turns in bulk, and passages that fill the window.

`--data` names a folder that `python -m benchmarks.training.build --float32` wrote; cosines are to its vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks import corpus
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import interleaved
from recallite.embedding import load
from recallite.system.parallel import saturates_int8

__all__ = ["CASE", "workloads"]

_TURNS, _PASSAGES, _BULK_ROUNDS = 256, 32, 5
_TURN_TOKENS = range(25, 42)  # 33 in the middle; special tokens included


@contextmanager
def _setup(context: Context) -> Iterator[tuple[Any, dict[str, list[str]]]]:
    embedder: Any = load(context.embedder)
    lines = corpus.read_lines(context.corpus, context.records)
    yield embedder, workloads(lines, embedder, context.rounds)


def _tables(state: tuple[Any, dict[str, list[str]]], context: Context) -> Iterator[Figures]:
    embedder, texts = state
    reference: Any = None if context.data is None else load(str(context.data))
    rows: dict[str, dict[str, Any]] = {}
    for name, batch in texts.items():
        one = name == "one query"
        call = _embedding(embedder, batch, one=one)
        rounds = len(batch) if one else context.count(_BULK_ROUNDS)
        (figures,) = interleaved(Timing(name, {name: call}, rounds, warm_up=1)).values()
        many = 1 if one else len(batch)
        tokens = np.minimum(np.array(embedder.count_tokens(batch)) + 2, embedder.max_tokens)
        rows[name] = {
            **figures,
            "texts a second": round(many / figures["p50 ms"] * 1e3, 1),
            "processor ms a text": round(figures["processor p50 ms"] / many, 3),
            "texts": len(batch),
            "tokens": round(float(tokens.mean()), 1),
        }
        if reference is not None:
            cosines = np.einsum("ij,ij->i", embedder.embed(batch), reference.embed(batch))
            rows[name] |= {"cosine @ mean": float(cosines.mean()), "cosine @ least": float(cosines.min())}
    yield Figures(f"texts, {'without' if saturates_int8() else 'with'} an int8 dot product", rows)


def _embedding(embedder: Any, texts: list[str], *, one: bool) -> Callable[[int], object]:
    if one:
        return lambda number: embedder.embed([texts[number % len(texts)]])
    return lambda _: embedder.embed(texts)


def workloads(lines: Sequence[str], embedder: Any, queries: int) -> dict[str, list[str]]:
    """Distinct queries of at most 12 words, lines of about 33 tokens, and lines joined until they fill a window."""
    lengths = [count + 2 for count in embedder.count_tokens(lines)]
    turns = [line for line, length in zip(lines, lengths, strict=True) if length in _TURN_TOKENS]
    passages, words, begin = [], 0, 0
    for end, length in enumerate(lengths, 1):
        words += length
        if words >= 1.2 * embedder.max_tokens:
            passages.append(" ".join(lines[begin:end]))
            begin, words = end, 0
    return {
        "one query": corpus.queries(lines, queries),
        "chat turns": turns[:_TURNS],
        "full windows": passages[:_PASSAGES],
    }


CASE = Case(
    "embedding", "what it costs to embed a text", _setup, _tables, records=(20_000,), rounds=300, unit="lines of text"
)
