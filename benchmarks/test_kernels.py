"""Kernels on both backends: pytest benchmarks/test_kernels.py --benchmark-group-by=func

RECALLITE_BENCH_ROWS sets the number of records (100,000). Compile time is a case of its own, in a fresh process.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

import recallite_kernels as kernels
from recallite_kernels import dispatch, python_backend

ROWS = int(os.environ.get("RECALLITE_BENCH_ROWS", "100000"))
DIMENSIONS, TERMS_PER_RECORD = 384, 22
SHORTLIST = 400


@pytest.fixture(scope="module", params=["python", "numba"])
def backend(request):
    if request.param == "numba":
        if kernels.status().selected != "numba":
            pytest.skip(kernels.status().reason)
        kernels.warmup()
        module = importlib.import_module("recallite_kernels.numba_backend")
    else:
        module = python_backend
    before, dispatch.active = dispatch.active, module
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
    postings = np.diff(starts)
    terms = np.array([np.argmin(np.abs(postings - share * ROWS)) for share in (0.06, 0.04, 0.02, 0.007, 0.002)])
    lengths = np.diff(forward_lists[2]).astype(np.float32)
    return kernels.Postings(
        rows=rows,
        counts=counts,
        starts=starts[terms],
        ends=starts[terms + 1],
        idf=np.log(1 + ROWS / postings[terms]).astype(np.float32),
        slice_offsets=np.array([0, len(terms)]),
        lengths=lengths,
        average_length=float(lengths.mean()),
        k1=1.2,
        b=0.75,
    )


def repeated(query, count):
    """A batch of `count` copies of a query."""
    slices = {name: np.tile(getattr(query, name), count) for name in ("starts", "ends", "idf")}
    return query._replace(**slices, slice_offsets=np.arange(count + 1) * len(query.starts))


@pytest.mark.parametrize("queries", [1, 64])
@pytest.mark.parametrize("allowed", [1.0, 0.5, 0.1, 0.01])
def test_hamming_shortlist(benchmark, backend, generator, sketches, allowed, queries):
    rows = None if allowed == 1.0 else np.flatnonzero(generator.random(ROWS) < allowed).astype(np.int64)
    stop = ROWS if rows is None else len(rows)
    blocks = kernels.sketch_blocks(sketches)
    benchmark(kernels.hamming_shortlist, sketches[:queries], blocks, rows, 0, stop, SHORTLIST)


def test_forest_scores(benchmark, backend, generator):
    """100 candidates, 80 trees of depth 5."""
    nodes = generator.integers(0, 16, (80, 31)).astype(np.uint8)
    forest = kernels.Forest(nodes, generator.standard_normal((80, 31)), generator.standard_normal((80, 32)))
    benchmark(kernels.forest_scores, generator.standard_normal((16, 100)), forest)


@pytest.mark.parametrize("queries", [1, 64])
def test_rescore_shortlist(benchmark, backend, generator, vectors, codes, queries):
    rows = generator.integers(0, ROWS, (queries, 2 * SHORTLIST))
    distances = generator.integers(0, 200, rows.shape).astype(np.uint16)
    benchmark(kernels.rescore_shortlist, vectors[:queries], *codes, rows, distances, SHORTLIST, 80)


@pytest.mark.parametrize("queries", [1, 64])
def test_cosine_top_k(benchmark, backend, vectors, queries):
    """Exact cosine with every record, of one query and of a batch."""
    benchmark(kernels.cosine_top_k, vectors[:queries], vectors, 10)


def test_sketch(benchmark, backend, vectors):
    benchmark(kernels.sketch, vectors)


def test_quantize_int8(benchmark, backend, vectors):
    benchmark(kernels.quantize_int8, vectors)


@pytest.mark.parametrize("queries", [1, 64])
def test_bm25_top_k(benchmark, backend, query, queries):
    scratch = np.zeros(ROWS, np.float32)
    benchmark(kernels.bm25_top_k, repeated(query, queries), None, scratch, SHORTLIST)


def test_invert(benchmark, backend, forward_lists):
    benchmark(kernels.invert, *forward_lists, 0)


def test_reciprocal_rank_fusion(benchmark, backend, generator):
    """Two signals of 400 candidates."""
    ranks = np.stack([generator.permutation(SHORTLIST) + 1 for _ in range(2)])
    benchmark(kernels.reciprocal_rank_fusion, ranks, np.array([0.6, 0.4]))


@pytest.mark.parametrize("form", ["half_life", "exp"])
@pytest.mark.parametrize("items", [SHORTLIST, ROWS])
def test_decay(benchmark, backend, generator, items, form):
    benchmark(kernels.decay, 365 * generator.random(items), 90.0, 0.1, form)


@pytest.mark.parametrize("items", [50, 400])
def test_maximal_marginal_relevance(benchmark, backend, generator, items):
    """The best ten by MMR, the similarity being Jaccard's of sets of 30 tokens."""
    sets = [np.unique(generator.integers(0, 5000, 30)) for _ in range(items)]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    tokens = np.concatenate(sets).astype(np.int32)
    benchmark(kernels.maximal_marginal_relevance, generator.random(items), tokens, offsets, 0.7, 10)


@pytest.mark.parametrize("cache", ["empty", "warm"])
def test_warmup_in_a_new_process(benchmark, tmp_path, cache):
    """`empty` is the time to import numba and compile every kernel, `warm` to load them all."""
    if kernels.status().selected != "numba":
        pytest.skip(kernels.status().reason)
    places = iter(range(100))

    def warm(folder):
        code = "import recallite_kernels; recallite_kernels.warmup()"
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "RECALLITE_CACHE_DIR": folder}, check=True)

    def folder():
        name = "0" if cache == "warm" else str(next(places))
        return (str(tmp_path / name),), {}

    if cache == "warm":
        warm(str(tmp_path / "0"))
    benchmark.pedantic(warm, setup=folder, rounds=3)
