"""A query among others gets, to the last bit, what it gets alone."""

from __future__ import annotations

import numpy as np
import pytest

import recollect_kernels as kernels
from tests.kernels.cases import candidates, graph, holds, mask, postings, rng, seeds, vectors

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
    sketches, asked, (codes, scales) = kernels.sketch(rows), kernels.sketch(queries), kernels.quantize_int8(rows)
    allowed = np.flatnonzero(generator.random(N) < 0.8).astype(np.int64)
    short = kernels.hamming_shortlist(asked, sketches, allowed, 3, len(allowed), 30)
    ranked = kernels.rescore_shortlist(queries, codes, scales, *short, 25, 9)
    parts = generator.integers(0, 2, N).astype(np.int32)
    offsets, some = candidates(generator, N, QUERIES)
    cosines = np.where(generator.random(len(some)) < 0.3, 0.5, np.nan).astype(np.float32)
    before = cosines.copy()
    kernels.row_cosines(queries, offsets, some, np.arange(N), parts, codes, scales, cosines)
    for query in range(QUERIES):
        one = slice(query, query + 1)
        alone = kernels.hamming_shortlist(asked[one], sketches, allowed, 3, len(allowed), 30)
        assert_same((part[one] for part in short), alone)
        assert_same(
            (part[one] for part in ranked), kernels.rescore_shortlist(queries[one], codes, scales, *alone, 25, 9)
        )
        own, ends = ends_of(offsets, query)
        filled = before[own].copy()
        kernels.row_cosines(queries[one], ends, some[own], np.arange(N), parts, codes, scales, filled)
        assert_same([cosines[own]], [filled])


@holds(seed=seeds)
def test_words(seed):
    generator = rng(seed)
    query = postings(generator, N, [3, 0, 5, 2], 2)
    allowed, scratch = mask(generator, N, "half"), np.zeros(N, np.float32)
    found, scores, counts = kernels.bm25_top_k(**query, mask=allowed, scratch=scratch, k=20)
    offsets, some = candidates(generator, N, QUERIES)
    looked_up = np.full(len(some), np.nan, np.float32)
    kernels.bm25_for_rows(**query, offsets=offsets, candidates=some, scores=looked_up)
    words, idf = np.arange(20) // 2, query["idf"][::2].copy()
    slices = query["rows"], query["starts"], query["ends"]
    carried, met = kernels.word_coverage(*slices, words, query["slice_offsets"], idf, offsets, some)
    for place in range(QUERIES):
        part, own_slices = ends_of(query["slice_offsets"], place)
        own, ends = ends_of(offsets, place)
        cut = {name: query[name][part] for name in ("starts", "ends", "idf")}
        alone = {**query, **cut, "slice_offsets": own_slices}
        size = counts[place]
        own_found, own_scores, own_counts = kernels.bm25_top_k(**alone, mask=allowed, scratch=scratch, k=20)
        assert_same(
            [found[place, :size], scores[place, :size], counts[place : place + 1]],
            [own_found[0, :size], own_scores[0, :size], own_counts],
        )
        filled = np.full(len(some[own]), np.nan, np.float32)
        kernels.bm25_for_rows(**alone, offsets=ends, candidates=some[own], scores=filled)
        own_carried, own_met = kernels.word_coverage(
            query["rows"], cut["starts"], cut["ends"], words[part], own_slices, idf, ends, some[own]
        )
        own_words = np.unique(words[part])
        assert_same([looked_up[own], carried[own], met[own_words]], [filled, own_carried, own_met[own_words]])


@holds(seed=seeds)
def test_candidates_and_what_reaches_them(seed):
    generator = rng(seed)
    allowed, store = mask(generator, N, "half"), graph(generator, N, 200)
    chains = store.previous, store.following, store.heads, store.nexts, store.targets

    def best(width):
        rows = np.array([generator.permutation(N)[:width] for _ in range(QUERIES)])
        return rows, generator.random(rows.shape, np.float32), generator.integers(0, width + 1, QUERIES)

    lists = *best(20), *best(11)
    joined = kernels.join_candidates(*lists)
    scores = generator.integers(0, 9, len(joined[1])) / 7
    wider = kernels.expand_candidates(*joined, scores, 5, *chains, allowed)
    signals, weights, normalise = generator.random((2, len(wider[1]))), np.array([0.6, 0.3]), np.array([0, 1], np.uint8)
    fused = kernels.weighted_fusion(signals, weights, normalise, wider[0])
    reached = kernels.spread_activation(*wider[:2], fused, *store[:7], allowed, 1.0, 0.7)
    order = kernels.order_by_score(wider[0], fused, wider[1])
    for query in range(QUERIES):
        own, ends = ends_of(joined[0], query)
        alone = kernels.join_candidates(*(part[query : query + 1] for part in lists))
        assert_same([ends, *(part[own] for part in joined[1:])], alone)
        alone = kernels.expand_candidates(*alone, scores[own], 5, *chains, allowed)
        own, ends = ends_of(wider[0], query)
        assert_same([ends, *(part[own] for part in wider[1:])], alone)
        of = np.ascontiguousarray(signals[:, own])
        assert_same([fused[own]], [kernels.weighted_fusion(of, weights, normalise)])
        again = kernels.spread_activation(*alone[:2], fused[own], *store[:7], allowed, 1.0, 0.7)
        assert_same((part[own] for part in reached), again)
        assert_same([order[own]], [kernels.order_by_score(ends, fused[own], alone[1])])
