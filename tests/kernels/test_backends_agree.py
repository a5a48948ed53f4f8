"""The same input through both backends: ids alike where scores differ by more than 1e-5, float64 to 1e-12."""

from __future__ import annotations

import inspect

import numpy as np

import recollect_kernels as kernels
from recollect_kernels import dispatch, python_backend
from recollect_kernels.protocol import Backend
from tests.kernels.cases import TOLERANCE, forward, holds, mask, postings, rng, seeds, tokens


def both(jit, call):
    answers = []
    before = dispatch.active
    try:
        for dispatch.active in (python_backend, jit):
            answers.append(call())
    finally:
        dispatch.active = before
    return answers


def assert_same_ranking(one, other):
    (rows, scores), (other_rows, other_scores) = one, other
    np.testing.assert_allclose(scores, other_scores, atol=TOLERANCE, rtol=TOLERANCE)
    for place in np.flatnonzero(rows != other_rows):
        # Swapped only with a neighbour that scores the same.
        score = scores[place]
        near = np.abs(np.delete(scores, place) - score)
        assert near.min(initial=np.inf) <= TOLERANCE * max(1, abs(score)) or place == len(rows) - 1


@holds(seed=seeds)
def test_a_recall_of_a_thousand_records(jit, seed):
    generator = rng(seed)
    n, d = 1000, 384
    rows = generator.standard_normal((n, d)).astype(np.float32)
    query = (rows[3] + generator.standard_normal(d)).astype(np.float32)
    query /= np.linalg.norm(query)
    allowed = mask(generator, n, "half")
    one, other = both(jit, lambda: kernels.sketch(rows))
    assert one.tobytes() == other.tobytes()
    shortlists = both(jit, lambda: kernels.hamming_shortlist(one[3], one, allowed, 200))
    assert shortlists[0].tolist() == shortlists[1].tolist()
    (codes, scales), (other_codes, other_scales) = both(jit, lambda: kernels.quantize_int8(rows))
    assert codes.tobytes() == other_codes.tobytes()
    assert scales.tobytes() == other_scales.tobytes()
    short = shortlists[0]
    for answers in (
        both(jit, lambda: kernels.rescore_int8(query, codes, scales, short)),
        both(jit, lambda: kernels.rescore(query, rows, short)),
    ):
        np.testing.assert_allclose(*answers, atol=1e-5)
    assert_same_ranking(*both(jit, lambda: kernels.cosine_top_k(query, rows, 20, allowed)))
    tokens = np.sort(np.append([0, n], generator.integers(0, n, 30))).astype(np.int64)
    weights = generator.random(9, np.float32)
    np.testing.assert_allclose(*both(jit, lambda: kernels.max_sim(one[:9], weights, one, tokens, d)), atol=1e-6)
    lexical = postings(generator, n, 5, 2)
    scratch = np.zeros(n, np.float32)
    assert_same_ranking(*both(jit, lambda: kernels.bm25_top_k(**lexical, mask=allowed, scratch=scratch, k=20)))
    np.testing.assert_allclose(
        *both(jit, lambda: kernels.bm25_for_rows(**lexical, candidates=short)), rtol=1e-5, atol=1e-6
    )
    lists = forward(generator, 200, 300, 20)
    for one_part, other_part in zip(*both(jit, lambda: kernels.invert(*lists, 5)), strict=True):
        assert one_part.tolist() == other_part.tolist()
    np.testing.assert_allclose(*both(jit, lambda: kernels.pool_tokens(*tokens(rng(seed), 50, 300, 96, 40))), atol=1e-6)


@holds(seed=seeds)
def test_the_float64_stages(jit, seed):
    generator = rng(seed)
    m = 150
    signals, weights = generator.random((3, m)), generator.random(3)
    fused = both(jit, lambda: kernels.weighted_fusion(signals, weights, np.array([0, 1, 0], np.uint8)))
    # To the last bit: a tie in one backend is a tie in the other.
    assert fused[0].tobytes() == fused[1].tobytes()
    ranks = generator.integers(0, 30, (3, m))
    fused = both(jit, lambda: kernels.reciprocal_rank_fusion(ranks, weights))
    assert fused[0].tobytes() == fused[1].tobytes()
    offsets = np.concatenate([[0], np.cumsum(generator.integers(0, 4, m))]).astype(np.int64)
    targets, strengths = generator.integers(0, m, offsets[-1]), generator.random(offsets[-1])
    groups = generator.integers(-1, 20, m)
    for answers in (
        both(jit, lambda: kernels.normalise_scores(signals[0])),
        both(jit, lambda: kernels.spread(signals[0], offsets, targets, strengths)),
        both(jit, lambda: kernels.group_top_mean(signals[0], groups, 3)),
    ):
        assert answers[0].tobytes() == answers[1].tobytes()
    for form in ("half_life", "exp"):
        np.testing.assert_allclose(
            *both(jit, lambda form=form: kernels.decay(signals[0] * 300, 30.0, 0.1, form)), rtol=1e-12
        )


def test_both_backends_have_exactly_the_functions_of_the_contract(jit):
    wanted = {name for name in vars(Backend) if not name.startswith("_")}
    for backend in (python_backend, jit):
        assert set(backend.__all__) == wanted
        for name in wanted:
            contract = list(inspect.signature(getattr(Backend, name)).parameters)[1:]
            assert list(inspect.signature(getattr(backend, name)).parameters) == contract, name
