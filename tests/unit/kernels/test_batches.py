"""A query among others gets, to the last bit, what it gets alone."""

from __future__ import annotations

import numpy as np
import pytest

import recallite_kernels as kernels
from tests.unit.kernels.cases import alone, holds, mask, postings, rng, seeds, vectors

pytestmark = pytest.mark.usefixtures("backend")
QUERIES, N = 4, 120


def assert_same(together, alone):
    for one, other in zip(together, alone, strict=True):
        assert one.dtype == other.dtype
        assert np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


@holds(seed=seeds)
def test_vectors(seed):
    generator = rng(seed)
    rows = vectors(generator, N, 100)
    queries = generator.standard_normal((QUERIES, 100)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    sketches, (codes, scales) = kernels.sketch_blocks(kernels.sketch(rows)), kernels.quantize_int8(rows)
    asked = kernels.sketch(queries)
    allowed = np.flatnonzero(generator.random(N) < 0.8).astype(np.int64)
    short = kernels.hamming_shortlist(asked, sketches, allowed, 3, len(allowed), 30)
    ranked = kernels.rescore_shortlist(queries, codes, scales, *short, 25, 9)
    for query in range(QUERIES):
        one = slice(query, query + 1)
        alone = kernels.hamming_shortlist(asked[one], sketches, allowed, 3, len(allowed), 30)
        assert_same((part[one] for part in short), alone)
        assert_same(
            (part[one] for part in ranked), kernels.rescore_shortlist(queries[one], codes, scales, *alone, 25, 9)
        )


@holds(seed=seeds)
def test_words(seed):
    generator = rng(seed)
    query = postings(generator, N, [3, 0, 5, 2], 2)
    allowed, scratch = mask(generator, N, "half"), np.zeros(N, np.float32)
    found, scores, counts = kernels.bm25_top_k(query, mask=allowed, scratch=scratch, k=20)
    for place in range(QUERIES):
        own_found, own_scores, own_counts = kernels.bm25_top_k(alone(query, place), mask=allowed, scratch=scratch, k=20)
        size = counts[place]
        assert_same(
            [found[place, :size], scores[place, :size], counts[place : place + 1]],
            [own_found[0, :size], own_scores[0, :size], own_counts],
        )
