"""Shortlists rescored from int8 codes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import (
    assert_ranked,
    frozen,
    holds,
    mask,
    masks,
    rng,
    seeds,
    shortlist_by_blocks,
    vectors,
)

pytestmark = pytest.mark.usefixtures("backend")
counts = st.sampled_from([0, 1, 3])
widths = st.sampled_from([1, 7, 64, 100, 384])


def codes_of(generator, n, d):
    """Codes that reach both ends, scales large enough that some scores pass 1, and exact duplicates."""
    codes = generator.integers(-127, 128, (n, d)).astype(np.int8)
    scales = (generator.random(n) / 100).astype(np.float32)
    if n:
        twins = generator.integers(0, n, n // 3)
        codes[twins], scales[twins] = codes[0], scales[0]
    return codes, scales


def units(generator, count, d):
    queries = generator.standard_normal((count, d)).astype(np.float32)
    return queries / np.linalg.norm(queries, axis=1, keepdims=True)


@holds(
    seed=seeds,
    count=counts,
    n=st.sampled_from([0, 1, 3, 70]),
    d=widths,
    width=st.sampled_from([0, 1, 5, 60]),
    size=st.sampled_from([1, 4, 50, 1000]),
    k=st.sampled_from([1, 3, 100]),
)
def test_rescore_shortlist_ranks_the_nearest_by_their_codes(seed, count, n, d, width, size, k):
    generator = rng(seed)
    codes, scales = codes_of(generator, n, d)
    queries, width = units(generator, count, d), min(width, n)
    rows = np.array([generator.permutation(n)[:width] for _ in range(count)], np.int64).reshape(count, width)
    distances = generator.integers(0, generator.choice([1, 3, 400]), rows.shape).astype(np.uint16)
    found, cosines = kernels.rescore_shortlist(*frozen(queries, codes, scales, rows, distances), size, k)
    assert found.shape == cosines.shape == (count, min(k, size, width))
    for query in range(count):
        truth = [oracle.int8_cosine(queries[query], *one) for one in zip(codes, scales, strict=True)]
        # Of equally near ones those that stand first are looked at.
        places = sorted(range(width), key=lambda place: (distances[query, place], place))[:size]
        looked_at = np.zeros(n, np.uint8)
        looked_at[rows[query, places]] = 1
        assert_ranked(found[query], cosines[query], truth, looked_at, k)


@holds(
    seed=seeds,
    count=counts,
    n=st.sampled_from([0, 1, 9, 200]),
    d=widths,
    size=st.sampled_from([1, 4, 30]),
    kind=masks,
    blocks=st.sampled_from([2, 4]),
)
def test_blocks_side_by_side_answer_as_one(seed, count, n, d, size, kind, blocks):
    generator = rng(seed)
    rows = vectors(generator, n, d)
    rows[generator.random(n) < 0.4] = 1  # ties that cross blocks
    sketches, (codes, scales) = kernels.sketch(rows), kernels.quantize_int8(rows)
    queries = units(generator, count, d)
    chosen = mask(generator, n, kind)
    allowed = None if chosen is None else np.flatnonzero(chosen).astype(np.int64)
    asked = kernels.sketch(queries)
    answers = [
        kernels.rescore_shortlist(
            queries, codes, scales, *shortlist_by_blocks(asked, sketches, allowed, size, some), size, 5
        )
        for some in (1, blocks)
    ]
    assert answers[0][0].tolist() == answers[1][0].tolist()
    assert answers[0][1].tobytes() == answers[1][1].tobytes()


def test_a_pool_of_threads_answers_as_one():
    generator = rng(6)
    n = 50_000
    sketches, codes = generator.integers(0, 2**64, (n, 6), np.uint64), generator.integers(-127, 128, (n, 16), np.int8)
    scales, queries = np.full(n, 1 / 600, np.float32), units(generator, 4, 16)
    asked = sketches[[7, 8, 49_999, 7]].copy()
    with ThreadPoolExecutor(4) as pool:
        many = shortlist_by_blocks(asked, sketches, None, 300, 25, pool.map)
    one = shortlist_by_blocks(asked, sketches, None, 300, 1)
    answers = [kernels.rescore_shortlist(queries, codes, scales, *found, 300, 40) for found in (one, many)]
    assert answers[0][0].tolist() == answers[1][0].tolist()
    assert answers[0][1].tobytes() == answers[1][1].tobytes()


def test_int8_cosines_stay_near_the_exact_ones():
    generator = rng(1)
    rows = generator.standard_normal((200, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    codes = kernels.quantize_int8(rows)
    everyone, no_distance = np.arange(200)[None], np.zeros((1, 200), np.uint16)
    found, cosines = kernels.rescore_shortlist(rows[:1], *codes, everyone, no_distance, 200, 200)
    exact = rows.astype(np.float64) @ rows[0].astype(np.float64)
    np.testing.assert_allclose(cosines[0], exact[found[0]], atol=0.004)
