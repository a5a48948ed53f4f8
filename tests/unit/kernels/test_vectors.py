from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import assert_ranked, frozen, holds, mask, masks, rng, seeds, vectors

pytestmark = pytest.mark.usefixtures("backend")
sizes = st.sampled_from([0, 1, 2, 3, 31, 33, 70])
widths = st.sampled_from([1, 2, 7, 64, 65, 384])


@holds(seed=seeds, n=sizes, d=widths, k=st.sampled_from([1, 3, 50]), kind=masks, count=st.sampled_from([0, 1, 4]))
def test_cosine_top_k_is_the_definition(seed, n, d, k, kind, count):
    generator = rng(seed)
    rows = vectors(generator, n, d)
    queries = vectors(generator, count, d)
    allowed = mask(generator, n, kind)
    found, scores = kernels.cosine_top_k(*frozen(queries, rows), k, allowed)
    assert found.shape == scores.shape == (count, min(k, n if allowed is None else int(allowed.sum())))
    for i, query in enumerate(queries):
        truth = [oracle.cosine(query, row) for row in rows]
        assert_ranked(found[i], scores[i], truth, allowed, k)


def test_cosine_top_k_crosses_blocks():
    generator = rng(5)
    rows = generator.standard_normal((20_000, 16)).astype(np.float32)
    queries = generator.standard_normal((600, 16)).astype(np.float32)
    allowed = (generator.random(20_000) < 0.3).astype(np.uint8)
    for chosen in (None, allowed):
        found, scores = kernels.cosine_top_k(queries, rows, 7, chosen)
        for i in (0, 1, 511, 512, 599):
            truth = rows.astype(np.float64) @ queries[i] / np.linalg.norm(rows, axis=1) / np.linalg.norm(queries[i])
            best = oracle.ranked(truth.tolist(), chosen, 7)
            assert found[i].tolist() == best
            np.testing.assert_allclose(scores[i], truth[best], atol=1e-6)


@pytest.mark.parametrize("d", [5, 16, 100])
@pytest.mark.parametrize("count", [1, 2, 3, 64, 71])
def test_cosine_top_k_of_a_query_is_the_same_alone_and_among_others(d, count):
    generator = rng(d + count)
    rows = generator.standard_normal((300, d)).astype(np.float32)
    rows[7], rows[8] = 0, rows[9] * np.float32(1e-30)
    rows[200:] = rows[:100]  # equal rows tie, wherever they are
    queries = generator.standard_normal((count, d)).astype(np.float32)
    allowed = (generator.random(300) < 0.6).astype(np.uint8)
    for chosen in (None, allowed):
        found, scores = kernels.cosine_top_k(queries, rows, 300, chosen)
        for i, query in enumerate(queries):
            alone, own_scores = kernels.cosine_top_k(query[None], rows, 300, chosen)
            assert (alone[0].tobytes(), own_scores[0].tobytes()) == (found[i].tobytes(), scores[i].tobytes())
            of_row = dict(zip(found[i].tolist(), scores[i].tolist(), strict=True))
            assert all(of_row[row] == of_row[row + 200] for row in range(100) if row in of_row and row + 200 in of_row)
            truth = [oracle.cosine(query, row) for row in rows]
            assert_ranked(found[i], scores[i], truth, chosen, 300)


@pytest.mark.parametrize("order", ["ascending", "descending", "equal", "random"])
def test_cosine_top_k_of_many(order):
    n = 5_000
    places = {
        "ascending": np.arange(n),
        "descending": np.arange(n)[::-1],
        "equal": np.zeros(n, np.int64),
        "random": rng(3).permutation(n) // 3,
    }[order]
    angles = np.pi * (1 - places / n)  # apart by more than float32 rounds
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    truth = np.cos(angles).tolist()
    for k in (1, 10, 777, n, n + 5):
        found, scores = kernels.cosine_top_k(np.array([[1, 0]], np.float32), rows, k)
        assert_ranked(found[0], scores[0], truth, None, k)


@holds(seed=seeds, n=sizes, d=widths)
def test_quantize_int8_is_within_half_a_step(seed, n, d):
    rows = vectors(rng(seed), n, d)
    codes, scales = kernels.quantize_int8(frozen(rows))
    assert (codes.dtype, scales.dtype, codes.shape, scales.shape) == (np.int8, np.float32, (n, d), (n,))
    np.testing.assert_allclose(scales, np.abs(rows).max(axis=1, initial=0) / 127, rtol=1e-6)
    error = np.abs(codes * scales[:, None].astype(np.float64) - rows)
    assert (error <= 0.5001 * scales[:, None] + 1e-12).all()
    assert n == 0 or np.abs(codes.astype(int)).max() <= 127


def test_masked_out_rows_are_never_looked_at():
    rows = np.ones((40, 8), np.float32)
    rows[7], rows[8] = np.nan, np.inf
    allowed = np.ones(40, np.uint8)
    allowed[[7, 8]] = 0
    query = np.ones(8, np.float32)
    assert kernels.cosine_top_k(query[None], rows, 40, allowed)[0][0].tolist() == np.flatnonzero(allowed).tolist()


def test_bool_masks_are_taken_too():
    rows = np.eye(4, dtype=np.float32)
    allowed = np.array([False, True, False, True])
    assert kernels.cosine_top_k(rows[:1], rows, 4, allowed)[0].tolist() == [[1, 3]]


def test_4096_dimensions_and_a_million_to_one():
    generator = rng(11)
    rows = generator.standard_normal((12, 4096)).astype(np.float32)
    rows[3] *= 1e6
    rows[4] *= 1e-6
    query = (rows[3] + rows[4] * 1e12).astype(np.float32)
    truth = [oracle.cosine(query, row) for row in rows]
    found, scores = kernels.cosine_top_k(query[None], rows, 5)
    assert_ranked(found[0], scores[0], truth, None, 5)


def test_squares_that_leave_float32_lose_nothing():
    # Squares of 1e-30 and 1e30 are 0 and infinity in float32; these are neither zero vectors nor overflow.
    rows = np.array([[1e-30, 2e-30], [1e30, 2e30], [-3e-23, 1e-23], [0, 0], [1e-45, 0]], np.float32)
    query = np.array([1e-30, 1e-30], np.float32)
    truth = [oracle.cosine(query, row) for row in rows]
    np.testing.assert_allclose(kernels.cosine_top_k(query[None], rows, 5)[1][0], sorted(truth)[::-1], atol=1e-6)


def test_a_zero_vector_scores_zero():
    rows = np.array([[0, 0], [1, 0], [-1, 0]], np.float32)
    found, scores = kernels.cosine_top_k(np.array([[1, 0], [0, 0]], np.float32), rows, 3)
    assert found.tolist() == [[1, 0, 2], [0, 1, 2]]
    # On some processors a compiled 1 / sqrt(1) is a unit in the last place below 1.
    np.testing.assert_allclose(scores, [[1, 0, -1], [0, 0, 0]], rtol=2e-7)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 17, 99])
def test_what_is_not_finite_is_refused(bad, at):
    rows = rng(2).standard_normal((100, 70)).astype(np.float32)
    query = rows[0].copy()
    rows[at, 69] = bad
    scores = np.zeros(100, np.float32)
    scores[at] = bad
    spoilt = query.copy()
    spoilt[3] = bad
    everything = np.arange(100)
    clean, codes = np.ones((100, 70), np.float32), np.ones((100, 70), np.int8)
    near = np.zeros((1, 100), np.uint16)
    for refused, name in (
        (lambda: kernels.cosine_top_k(query[None], rows, 3), "vectors"),
        (lambda: kernels.quantize_int8(rows), "vectors"),
        (lambda: kernels.cosine_top_k(spoilt[None], clean, 3), "queries"),
        (lambda: kernels.rescore_shortlist(spoilt[None], codes, scores, everything[None], near, 9, 3), "queries"),
        (lambda: kernels.rescore_shortlist(query[None], codes, scores, everything[None], near, 100, 100), "scales"),
    ):
        with pytest.raises(kernels.KernelError, match=f"^{name}"):
            refused()
