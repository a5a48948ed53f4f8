"""The same input through both backends: ids alike where scores differ by more than 1e-5, float64 to 1e-12."""

from __future__ import annotations

import inspect

import numpy as np
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels import dispatch, python_backend
from recallite_kernels.protocol import Backend
from tests.unit.kernels import test_rank
from tests.unit.kernels.cases import (
    TOLERANCE,
    forest,
    forward,
    holds,
    mask,
    postings,
    rng,
    seeds,
    statements,
    tokens,
    weighed,
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
    offsets, candidates = np.array([0, 200, 400]), np.sort(short[0], axis=1).ravel()

    def filled(kernel, *arguments):
        scores = np.full(400, np.nan, np.float32)
        kernel(*arguments, scores)
        return scores

    top = both(jit, lambda: kernels.cosine_top_k(query[None], rows, 20, allowed))
    assert_same_ranking(*((found[0], scores[0]) for found, scores in top))
    lexical = postings(generator, n, [5, 2], 2)
    scratch = np.zeros(n, np.float32)
    found = both(jit, lambda: kernels.bm25_top_k(lexical, allowed, scratch, 20))
    assert found[0][2].tolist() == found[1][2].tolist()
    for i, size in enumerate(found[0][2]):
        assert_same_ranking(*((own[i, :size], scores[i, :size]) for own, scores, _ in found))
    np.testing.assert_allclose(
        *both(jit, lambda: filled(kernels.bm25_for_rows, lexical, offsets, candidates)), rtol=1e-5, atol=1e-6
    )
    slices = lexical.rows, lexical.starts, lexical.ends
    words, idf = np.repeat(np.arange(7), 2), lexical.idf[::2].copy()
    for answers in (
        both(jit, lambda: kernels.word_coverage(*slices, words, lexical.slice_offsets, idf, offsets, candidates)[0]),
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
    weights, ages = generator.random(3), generator.random(m) * 300
    ranks = generator.integers(0, 30, (3, m))
    fused = both(jit, lambda: kernels.reciprocal_rank_fusion(ranks, weights))
    # To the last bit: a tie in one backend is a tie in the other.
    assert fused[0].tobytes() == fused[1].tobytes()
    some = forest(generator, 80, 5, features=len(kernels.FEATURES))
    signals, offsets, group, slices, _, _, parameters = weighed(generator, [20, 0, 7], [20, 0, 7])
    order = np.concatenate([generator.permutation(20), generator.permutation(7)])
    given = signals, offsets, group.rows, order, slices, group.unknown, some, parameters, 12
    for one_part, other_part in zip(*both(jit, lambda: kernels.rank_by_forest(*given)), strict=True):
        np.testing.assert_allclose(one_part, other_part, rtol=1e-12, atol=1e-12)
    told, when = (
        statements(generator, [20, 0, 7], 3, 8),
        kernels.Asked(np.array([3, 0, 9]), np.array([0, 1, 1], np.uint8)),
    )
    for one_part, other_part in zip(*both(jit, lambda: kernels.order_changes(told, when)), strict=True):
        assert one_part.tolist() == other_part.tolist()
    beside = weighed(generator, [0, 1, 30], [2, 1, 9])
    for one_part, other_part in zip(*both(jit, lambda: kernels.assess(*beside)), strict=True):
        np.testing.assert_allclose(one_part, other_part, rtol=1e-12)
    for form in ("half_life", "exp"):
        np.testing.assert_allclose(*both(jit, lambda form=form: kernels.decay(ages, 30.0, 0.1, form)), rtol=1e-12)


@holds(seed=seeds, rrf_k=st.sampled_from([-1.0, 60.0]), links=st.sampled_from([0, 300]))
def test_the_ranking_of_three_queries(jit, seed, rrf_k, links):
    arguments = test_rank.case(seed, 3, 400, "half", links=links, widths=(60, 40))
    chosen = test_rank.parameters(rrf_k=rrf_k, expansion_depth=9)
    one, other = both(jit, lambda: kernels.rank_candidates(*arguments, chosen))
    for place in (0, 1):
        assert one[place].tolist() == other[place].tolist()
    np.testing.assert_allclose(one[2], other[2], atol=TOLERANCE, rtol=TOLERANCE)
    # Of equal signals the rest is equal to the last bit, so a tie in one backend is a tie in the other.
    rerank, chosen = rng(seed).integers(0, 3, len(one[1])) / 2, chosen._replace(expansion_depth=0)
    lists = relisted(one, kernels.SIGNALS)
    one, other = both(jit, lambda: kernels.rank_candidates(lists, *arguments[1:], chosen, rerank))
    np.testing.assert_array_equal(one[2][:-2], other[2][:-2])
    np.testing.assert_allclose(one[2][-2:], other[2][-2:], rtol=1e-14)


def relisted(found, at):
    """The candidates of a ranking as lists of which every signal is known."""
    offsets, rows, signals, _ = found
    counts = np.diff(offsets)
    held = np.arange(counts.max()) < counts[:, None]
    every = np.zeros(held.shape, np.int64), *np.zeros((2, *held.shape), np.float32)
    for part, values in zip(every, (rows, signals[at.cosine], signals[at.bm25]), strict=True):
        part[held] = values
    return kernels.Lists(every[0], every[1], counts, every[0], every[2], counts)


def test_both_backends_have_exactly_the_functions_of_the_contract(jit):
    wanted = {name for name in vars(Backend) if not name.startswith("_")}
    for backend in (python_backend, jit):
        for name in wanted:
            contract = list(inspect.signature(getattr(Backend, name)).parameters)[1:]
            assert list(inspect.signature(getattr(backend, name)).parameters) == contract, name
