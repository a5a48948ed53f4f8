"""The same input through both backends: ids alike where scores differ by more than 1e-5, float64 to 1e-12."""

from __future__ import annotations

import inspect

import numpy as np

import recollect_kernels as kernels
from recollect_kernels import dispatch, python_backend
from recollect_kernels.protocol import Backend
from tests.kernels.cases import TOLERANCE, forward, graph, holds, mask, postings, rng, seeds, tokens


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
    asked, stop = one[[3, 4]].copy(), len(listed)
    shortlists = both(jit, lambda: kernels.hamming_shortlist(asked, one, listed, 0, stop, 200))
    for part, other_part in zip(*shortlists, strict=True):
        assert part.tolist() == other_part.tolist()
    (codes, scales), (other_codes, other_scales) = both(jit, lambda: kernels.quantize_int8(rows))
    assert codes.tobytes() == other_codes.tobytes()
    assert scales.tobytes() == other_scales.tobytes()
    queries, short = np.stack([query, -query]), shortlists[0]
    nearest = both(jit, lambda: kernels.rescore_shortlist(queries, codes, scales, *short, 150, 40))
    for i in range(2):
        assert_same_ranking(*((found[i], scores[i]) for found, scores in nearest))
    offsets, candidates = np.array([0, 200, 400]), np.sort(short[0], axis=1).ravel()

    def filled(kernel, *arguments):
        scores = np.full(400, np.nan, np.float32)
        kernel(*arguments, scores)
        return scores

    parts = np.arange(n), np.ones(n, np.int32)
    for answers in (
        both(jit, lambda: filled(kernels.row_cosines, queries, offsets, candidates, *parts, codes, scales)),
        both(jit, lambda: kernels.rescore(query, rows, candidates)),
    ):
        np.testing.assert_allclose(*answers, atol=1e-5)
    assert_same_ranking(*both(jit, lambda: kernels.cosine_top_k(query, rows, 20, allowed)))
    ends = np.sort(np.append([0, n], generator.integers(0, n, 30))).astype(np.int64)
    weights = generator.random(9, np.float32)
    np.testing.assert_allclose(*both(jit, lambda: kernels.max_sim(one[:9], weights, one, ends, d)), atol=1e-6)
    lexical = postings(generator, n, [5, 2], 2)
    scratch = np.zeros(n, np.float32)
    found = both(jit, lambda: kernels.bm25_top_k(**lexical, mask=allowed, scratch=scratch, k=20))
    assert found[0][2].tolist() == found[1][2].tolist()
    for i, size in enumerate(found[0][2]):
        assert_same_ranking(*((own[i, :size], scores[i, :size]) for own, scores, _ in found))
    np.testing.assert_allclose(
        *both(jit, lambda: filled(kernels.bm25_for_rows, *lexical.values(), offsets, candidates)), rtol=1e-5, atol=1e-6
    )
    slices = lexical["rows"], lexical["starts"], lexical["ends"]
    words, idf = np.repeat(np.arange(7), 2), lexical["idf"][::2].copy()
    for answers in (
        both(jit, lambda: kernels.word_coverage(*slices, words, lexical["slice_offsets"], idf, offsets, candidates)[0]),
        both(jit, lambda: kernels.allowed_in_slices(*slices, allowed)),
    ):
        assert answers[0].tobytes() == answers[1].tobytes()
    lists = forward(generator, 200, 300, 20)
    for one_part, other_part in zip(*both(jit, lambda: kernels.invert(*lists, 5)), strict=True):
        assert one_part.tolist() == other_part.tolist()
    np.testing.assert_allclose(*both(jit, lambda: kernels.pool_tokens(*tokens(rng(seed), 50, 300, 96, 40))), atol=1e-6)


@holds(seed=seeds)
def test_the_float64_stages(jit, seed):
    generator = rng(seed)
    m = 150
    signals, weights = generator.random((3, m)), generator.random(3)
    offsets = np.array([0, 20, 20, m])
    fused = both(jit, lambda: kernels.weighted_fusion(signals, weights, np.array([0, 1, 0], np.uint8), offsets))
    # To the last bit: a tie in one backend is a tie in the other.
    assert fused[0].tobytes() == fused[1].tobytes()
    ranks = generator.integers(0, 30, (3, m))
    fused = both(jit, lambda: kernels.reciprocal_rank_fusion(ranks, weights))
    assert fused[0].tobytes() == fused[1].tobytes()
    scaled = both(jit, lambda: kernels.normalise_scores(signals[0]))
    assert scaled[0].tobytes() == scaled[1].tobytes()
    for form in ("half_life", "exp"):
        np.testing.assert_allclose(
            *both(jit, lambda form=form: kernels.decay(signals[0] * 300, 30.0, 0.1, form)), rtol=1e-12
        )


@holds(seed=seeds)
def test_the_candidates_of_three_queries(jit, seed):
    generator = rng(seed)
    n = 400
    allowed = mask(generator, n, "half")
    store = graph(generator, n, 300)
    rows = np.stack([generator.permutation(n)[:60] for _ in range(3)])
    nearest = rows[:, :40].copy(), generator.random((3, 40), np.float32), np.array([40, 0, 17])
    best = rows[:, 20:].copy(), generator.random((3, 40), np.float32), np.array([25, 5, 0])
    union = both(jit, lambda: kernels.join_candidates(*nearest, *best))
    joined = union[0]
    scores = generator.integers(0, 9, len(joined[1])) / 8
    chains = store.previous, store.following, store.heads, store.nexts, store.targets
    wider = both(jit, lambda: kernels.expand_candidates(*joined, scores, 9, *chains, allowed))
    offsets, found = wider[0][:2]
    own = generator.integers(0, 9, len(found)) / 8
    for answers in (
        union,
        wider,
        both(jit, lambda: kernels.spread_activation(offsets, found, own, *store[:7], allowed, 1.0, 0.7)),
        both(jit, lambda: (kernels.order_by_score(offsets, own, -found),)),
    ):
        for one, other in zip(*answers, strict=True):
            np.testing.assert_array_equal(one, other)


def test_both_backends_have_exactly_the_functions_of_the_contract(jit):
    wanted = {name for name in vars(Backend) if not name.startswith("_")}
    for backend in (python_backend, jit):
        assert set(backend.__all__) == wanted
        for name in wanted:
            contract = list(inspect.signature(getattr(Backend, name)).parameters)[1:]
            assert list(inspect.signature(getattr(backend, name)).parameters) == contract, name
