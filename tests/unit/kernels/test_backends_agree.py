"""The same input through both backends: ids alike where scores differ by more than 1e-5, float64 to 1e-12."""

from __future__ import annotations

import inspect

import numpy as np

import recallite_kernels as kernels
from recallite_kernels import dispatch, python_backend
from recallite_kernels.protocol import Backend
from tests.unit.kernels.cases import (
    TOLERANCE,
    forest,
    forward,
    holds,
    mask,
    postings,
    rng,
    seeds,
    tokens,
)  # fmt: skip


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
    listed = np.flatnonzero(allowed).astype(np.int64)
    asked, blocks, stop = one[[3, 4]].copy(), kernels.sketch_blocks(one), len(listed)
    shortlists = both(jit, lambda: kernels.hamming_shortlist(asked, blocks, listed, 0, stop, 200))
    for part, other_part in zip(*shortlists, strict=True):
        assert part.tolist() == other_part.tolist()
    (codes, scales), (other_codes, other_scales) = both(jit, lambda: kernels.quantize_int8(rows))
    assert codes.tobytes() == other_codes.tobytes()
    assert scales.tobytes() == other_scales.tobytes()
    queries, short = np.stack([query, -query]), shortlists[0]
    nearest = both(jit, lambda: kernels.rescore_shortlist(queries, codes, scales, *short, 150, 40))
    for i in range(2):
        assert_same_ranking(*((found[i], scores[i]) for found, scores in nearest))
    top = both(jit, lambda: kernels.cosine_top_k(query[None], rows, 20, allowed))
    assert_same_ranking(*((found[0], scores[0]) for found, scores in top))
    lexical = postings(generator, n, [5, 2], 2)
    scratch = np.zeros(n, np.float32)
    found = both(jit, lambda: kernels.bm25_top_k(lexical, allowed, scratch, 20))
    assert found[0][2].tolist() == found[1][2].tolist()
    for i, size in enumerate(found[0][2]):
        assert_same_ranking(*((own[i, :size], scores[i, :size]) for own, scores, _ in found))
    lists = forward(generator, 200, 300, 20)
    for one_part, other_part in zip(*both(jit, lambda: kernels.invert(*lists, 5)), strict=True):
        assert one_part.tolist() == other_part.tolist()
    np.testing.assert_allclose(*both(jit, lambda: kernels.pool_tokens(*tokens(rng(seed), 50, 300, 96, 40))), atol=1e-6)


@holds(seed=seeds)
def test_the_float64_kernels(jit, seed):
    generator = rng(seed)
    m = 150
    weights, ages = generator.random(3), generator.random(m) * 300
    ranks = generator.integers(0, 30, (3, m))
    fused = both(jit, lambda: kernels.reciprocal_rank_fusion(ranks, weights))
    # To the last bit: a tie in one backend is a tie in the other.
    assert fused[0].tobytes() == fused[1].tobytes()
    some, features = forest(generator, 80, 5, features=9), generator.standard_normal((9, m))
    scores = both(jit, lambda: kernels.forest_scores(features, some))
    assert scores[0].tobytes() == scores[1].tobytes()
    for form in ("half_life", "exp"):
        np.testing.assert_allclose(*both(jit, lambda form=form: kernels.decay(ages, 30.0, 0.1, form)), rtol=1e-12)


def test_both_backends_have_exactly_the_functions_of_the_contract(jit):
    wanted = {name for name in vars(Backend) if not name.startswith("_")}
    for backend in (python_backend, jit):
        for name in wanted:
            contract = list(inspect.signature(getattr(Backend, name)).parameters)[1:]
            assert list(inspect.signature(getattr(backend, name)).parameters) == contract, name
