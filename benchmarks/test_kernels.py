"""Kernels on both backends: pytest benchmarks/test_kernels.py --benchmark-group-by=func

RECOLLECT_BENCH_ROWS sets the number of records (100,000). Compile time is a case of its own, in a fresh process.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

import recollect_kernels as kernels
from recollect_kernels import dispatch, python_backend

ROWS = int(os.environ.get("RECOLLECT_BENCH_ROWS", "100000"))
DIMENSIONS, TERMS_PER_RECORD = 384, 22
SHORTLIST = 400


@pytest.fixture(scope="module", params=["python", "numba"])
def backend(request):
    if request.param == "numba":
        if kernels.status().chosen != "numba":
            pytest.skip(kernels.status().reason)
        kernels.warmup()
        chosen = importlib.import_module("recollect_kernels.numba_backend")
    else:
        chosen = python_backend
    before, dispatch.active = dispatch.active, chosen
    yield request.param
    dispatch.active = before


@pytest.fixture(scope="module")
def generator():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def vectors(generator):
    out = generator.standard_normal((ROWS, DIMENSIONS), np.float32)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def sketches(generator):
    return generator.integers(0, 2**64, (ROWS, DIMENSIONS // 64), np.uint64)


@pytest.fixture(scope="module")
def codes(vectors):
    return kernels.quantize_int8(vectors)


@pytest.fixture(scope="module")
def shortlist(generator):
    return np.sort(generator.choice(ROWS, SHORTLIST, replace=False)).astype(np.int64)


@pytest.fixture(scope="module")
def forward_lists(generator):
    """Term lists as text has them: a few terms in most records, most terms in few (Zipf)."""
    vocabulary = max(1000, ROWS // 5)
    share = np.cumsum(1 / np.arange(1, vocabulary + 1) ** 1.05)
    drawn = np.searchsorted(share / share[-1], generator.random((ROWS, TERMS_PER_RECORD)))
    drawn = np.sort(generator.permutation(vocabulary)[np.minimum(drawn, vocabulary - 1)], axis=1)
    first = np.ones_like(drawn, np.bool_)
    first[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
    offsets = np.concatenate([[0], np.cumsum(first.sum(axis=1))]).astype(np.int64)
    return drawn[first].astype(np.int32), np.ones(int(first.sum()), np.uint8), offsets


@pytest.fixture(scope="module")
def query(forward_lists):
    """Five content words: 13 % of all records hold one of them."""
    _, starts, rows, counts = kernels.invert(*forward_lists, 0)
    held = np.diff(starts)
    chosen = np.array([np.argmin(np.abs(held - share * ROWS)) for share in (0.06, 0.04, 0.02, 0.007, 0.002)])
    lengths = np.diff(forward_lists[2]).astype(np.float32)
    return {
        "rows": rows,
        "counts": counts,
        "starts": starts[chosen],
        "ends": starts[chosen + 1],
        "idf": np.log(1 + ROWS / held[chosen]).astype(np.float32),
        "lengths": lengths,
        "average_length": float(lengths.mean()),
        "k1": 1.2,
        "b": 0.75,
    }


@pytest.mark.parametrize("allowed", [1.0, 0.5, 0.1, 0.01])
def test_hamming_shortlist(benchmark, backend, generator, sketches, allowed):
    mask = None if allowed == 1.0 else (generator.random(ROWS) < allowed).astype(np.uint8)
    benchmark(kernels.hamming_shortlist, sketches[5], sketches, mask, SHORTLIST)


def test_max_sim(benchmark, backend, sketches):
    """50 chat turns of 20 tokens, a query of 8."""
    offsets = np.arange(0, 1001, 20)
    benchmark(kernels.max_sim, sketches[:8], np.ones(8, np.float32), sketches[8:1008], offsets, DIMENSIONS)


def test_rescore_int8(benchmark, backend, vectors, codes, shortlist):
    benchmark(kernels.rescore_int8, vectors[5], *codes, shortlist)


def test_rescore(benchmark, backend, vectors, shortlist):
    benchmark(kernels.rescore, vectors[5], vectors, shortlist[:32])


def test_cosine_top_k(benchmark, backend, vectors):
    benchmark(kernels.cosine_top_k, vectors[5], vectors, 10)


def test_cosine_top_k_many(benchmark, backend, vectors):
    benchmark(kernels.cosine_top_k_many, vectors[:64], vectors, 10)


def test_top_k(benchmark, backend, generator):
    benchmark(kernels.top_k, generator.random(ROWS, np.float32), SHORTLIST)


def test_sketch(benchmark, backend, vectors):
    benchmark(kernels.sketch, vectors)


def test_quantize_int8(benchmark, backend, vectors):
    benchmark(kernels.quantize_int8, vectors)


def test_bm25_top_k(benchmark, backend, query):
    scratch = np.zeros(ROWS, np.float32)
    benchmark(kernels.bm25_top_k, **query, mask=None, scratch=scratch, k=SHORTLIST)


def test_bm25_for_rows(benchmark, backend, query, shortlist):
    benchmark(kernels.bm25_for_rows, **query, candidates=shortlist)


def test_invert(benchmark, backend, forward_lists):
    benchmark(kernels.invert, *forward_lists, 0)


def test_fuse_decay_and_spread(benchmark, backend, generator):
    m = SHORTLIST
    signals, weights, normalise = generator.random((2, m)), np.array([0.6, 0.4]), np.array([0, 1], np.uint8)
    offsets = np.arange(0, 4 * m + 1, 4, dtype=np.int64)
    targets, strengths = generator.integers(0, m, 4 * m), generator.random(4 * m)
    ages = generator.random(m) * 100

    def stages():
        fused = kernels.weighted_fusion(signals, weights, normalise)
        return kernels.spread(fused, offsets, targets, strengths) * kernels.decay(ages, 30.0, 0.5)

    benchmark(stages)


@pytest.mark.parametrize("items", [50, 400])
def test_maximal_marginal_relevance(benchmark, backend, generator, items):
    sets = [np.unique(generator.integers(0, 5000, 30)) for _ in range(items)]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    tokens = np.concatenate(sets).astype(np.int32)
    benchmark(kernels.maximal_marginal_relevance, generator.random(items), tokens, offsets, 0.7, 10)


@pytest.mark.parametrize("cache", ["empty", "warm"])
def test_warmup_in_a_new_process(benchmark, tmp_path, cache):
    """`empty` is the time to import numba and compile every kernel, `warm` to load them all."""
    if kernels.status().chosen != "numba":
        pytest.skip(kernels.status().reason)
    places = iter(range(100))

    def warm(folder):
        code = "import recollect_kernels; recollect_kernels.warmup()"
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "RECOLLECT_CACHE_DIR": folder}, check=True)

    def folder():
        name = "0" if cache == "warm" else str(next(places))
        return (str(tmp_path / name),), {}

    if cache == "warm":
        warm(str(tmp_path / "0"))
    benchmark.pedantic(warm, setup=folder, rounds=3)
