"""Each kernel on both backends, which have to give the same; times of compiled kernels leave out compiling."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import recallite_kernels as kernels
from benchmarks import corpus
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import interleaved
from recallite_kernels import dispatch, python_backend

__all__ = ["CASE"]

_DIMENSIONS, _TERMS, _SHORTLIST = 384, 22, 400
_TOLERANCE = 1e-4


@contextmanager
def _setup(context: Context) -> Iterator[dict[str, Any]]:
    if kernels.status().chosen != "numba":
        raise SystemExit(kernels.status().reason)
    kernels.warmup()
    before = dispatch.active
    yield {"numba": importlib.import_module("recallite_kernels.numba_backend"), "python": python_backend}
    dispatch.active = before


def _tables(backends: dict[str, Any], context: Context) -> Iterator[Figures]:
    rows: dict[str, dict[str, Any]] = {}
    for kernel, call in _calls(context.records).items():

        def on(backend: Any, call: Callable[[], Any] = call) -> Any:
            dispatch.active = backend
            return call()

        ways = {f"{kernel}, {name}": lambda _, each=each, on=on: on(each) for name, each in backends.items()}
        rows |= interleaved(Timing(kernel, ways, context.rounds, warm_up=2, check=_equal))
    yield Figures("kernel, backend", rows)


def _equal(answers: dict[str, list[Any]]) -> dict[str, dict[str, Any]]:
    """No further columns; ends the program if an array of one backend differs from the other's."""
    (name, one), (_, other) = ((name, each[0]) for name, each in answers.items())
    for first, second in zip(*(each if isinstance(each, tuple) else (each,) for each in (one, other)), strict=True):
        if not np.allclose(np.asarray(first, float), np.asarray(second, float), atol=_TOLERANCE, equal_nan=True):
            raise SystemExit(f"{name}: the backends give different arrays")
    return {}


def _calls(rows: int) -> dict[str, Callable[[], Any]]:
    """Kernels by name, on arrays as a recall has them."""
    generator = np.random.default_rng(0)
    vectors = corpus.mixture(rows, _DIMENSIONS)
    sketches, codes = kernels.sketch(vectors), kernels.quantize_int8(vectors)
    blocks = kernels.sketch_blocks(sketches)
    some = np.flatnonzero(generator.random(rows) < 0.1).astype(np.int64)
    shortlist = generator.integers(0, rows, (1, 2 * _SHORTLIST))
    distances = generator.integers(0, 200, shortlist.shape).astype(np.uint16)
    forward = _forward_lists(generator, rows)
    query = _query(forward, rows)
    words, candidates = np.arange(len(query.starts)), np.sort(generator.choice(rows, _SHORTLIST, replace=False))
    mask = (generator.random(rows) < 0.9).astype(np.uint8)
    nodes = generator.integers(0, 16, (80, 31)).astype(np.uint8)
    forest = kernels.Forest(nodes, generator.standard_normal((80, 31)), generator.standard_normal((80, 32)))
    features = generator.standard_normal((16, 100))
    sets = [np.unique(generator.integers(0, 5000, 30)) for _ in range(_SHORTLIST)]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    tokens, scores = np.concatenate(sets).astype(np.int32), generator.random(_SHORTLIST)
    slices = query.rows, query.starts, query.ends
    return {
        "hamming_shortlist": lambda: kernels.hamming_shortlist(sketches[:1], blocks, None, 0, rows, _SHORTLIST),
        "hamming_shortlist of 10 %": lambda: kernels.hamming_shortlist(
            sketches[:1], blocks, some, 0, len(some), _SHORTLIST
        ),
        "rescore_shortlist": lambda: kernels.rescore_shortlist(
            vectors[:1], *codes, shortlist, distances, _SHORTLIST, 80
        ),
        "cosine_top_k": lambda: kernels.cosine_top_k(vectors[:1], vectors, 10),
        "sketch": lambda: kernels.sketch(vectors),
        "quantize_int8": lambda: kernels.quantize_int8(vectors),
        "bm25_top_k": lambda: _values(kernels.bm25_top_k(query, None, np.zeros(rows, np.float32), _SHORTLIST)),
        "word_coverage": lambda: kernels.word_coverage(
            *slices, words, query.slice_offsets, query.idf, np.array([0, _SHORTLIST]), candidates
        ),
        "allowed_in_slices": lambda: kernels.allowed_in_slices(*slices, mask),
        "invert": lambda: kernels.invert(*forward, 0),
        "forest_scores": lambda: kernels.forest_scores(features, forest),
        "maximal_marginal_relevance": lambda: kernels.maximal_marginal_relevance(scores, tokens, offsets, 0.7, 10),
    }


def _values(found: Any) -> Any:
    """Scores of a search, as many as it found: past those, arrays hold anything, and ties come in any order."""
    _, values, counts = found
    return values[:, : counts.min()]


def _forward_lists(generator: np.random.Generator, rows: int) -> Any:
    """Term lists as text has them: a few terms in most records, most terms in few (Zipf)."""
    vocabulary = max(1000, rows // 5)
    share = np.cumsum(1 / np.arange(1, vocabulary + 1) ** 1.05)
    drawn = np.searchsorted(share / share[-1], generator.random((rows, _TERMS)))
    drawn = np.sort(generator.permutation(vocabulary)[np.minimum(drawn, vocabulary - 1)], axis=1)
    first = np.ones_like(drawn, np.bool_)
    first[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
    offsets = np.concatenate([[0], np.cumsum(first.sum(axis=1))]).astype(np.int64)
    return drawn[first].astype(np.int32), np.ones(int(first.sum()), np.uint8), offsets


def _query(forward: Any, rows: int) -> Any:
    """Five content words: 13 % of all records hold one of them."""
    _, starts, places, counts = kernels.invert(*forward, 0)
    held = np.diff(starts)
    chosen = np.array([np.argmin(np.abs(held - share * rows)) for share in (0.06, 0.04, 0.02, 0.007, 0.002)])
    lengths = np.diff(forward[2]).astype(np.float32)
    return kernels.Postings(
        rows=places, counts=counts, starts=starts[chosen], ends=starts[chosen + 1],
        idf=np.log(1 + rows / held[chosen]).astype(np.float32), slice_offsets=np.array([0, len(chosen)]),
        lengths=lengths, average_length=float(lengths.mean()), k1=1.2, b=0.75,
    )  # fmt: skip


CASE = Case("kernels", "what each kernel takes, compiled and in Python", _setup, _tables, rounds=20)
