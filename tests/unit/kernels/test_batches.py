"""A query among others gets, to the last bit, what it gets alone."""

from __future__ import annotations

import numpy as np
import pytest

import recallite_kernels as kernels
from tests.unit.kernels.cases import candidates, holds, mask, postings, rng, seeds, vectors
from tests.unit.kernels.stages import fill_bm25, word_coverage

pytestmark = pytest.mark.usefixtures("backend")
QUERIES, N = 4, 120


def assert_same(together, alone):
    for one, other in zip(together, alone, strict=True):
        assert one.dtype == other.dtype
        assert np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def ends_of(offsets, query):
    """The run of one query, and its offsets when it stands alone."""
    start, stop = offsets[query : query + 2].tolist()
    return slice(start, stop), np.array([0, stop - start])


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
    offsets, some = candidates(generator, N, QUERIES)
    looked_up = np.full(len(some), np.nan, np.float32)
    fill_bm25(query, offsets=offsets, candidates=some, scores=looked_up)
    words, idf = np.arange(20) // 2, query.idf[::2].copy()
    slices = query.rows, query.starts, query.ends
    carried, met = word_coverage(*slices, words, query.slice_offsets, idf, offsets, some)
    for place in range(QUERIES):
        part, own_slices = ends_of(query.slice_offsets, place)
        own, ends = ends_of(offsets, place)
        alone = query._replace(
            starts=query.starts[part], ends=query.ends[part], idf=query.idf[part], slice_offsets=own_slices
        )
        size = counts[place]
        own_found, own_scores, own_counts = kernels.bm25_top_k(alone, mask=allowed, scratch=scratch, k=20)
        assert_same(
            [found[place, :size], scores[place, :size], counts[place : place + 1]],
            [own_found[0, :size], own_scores[0, :size], own_counts],
        )
        filled = np.full(len(some[own]), np.nan, np.float32)
        fill_bm25(alone, offsets=ends, candidates=some[own], scores=filled)
        own_carried, own_met = word_coverage(
            query.rows, alone.starts, alone.ends, words[part], own_slices, idf, ends, some[own]
        )
        own_words = np.unique(words[part])
        assert_same([looked_up[own], carried[own], met[own_words]], [filled, own_carried, own_met[own_words]])
