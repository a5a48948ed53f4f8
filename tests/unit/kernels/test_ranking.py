from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import frozen, holds, rng, seeds

pytestmark = pytest.mark.usefixtures("backend")
lengths = st.sampled_from([0, 1, 2, 9, 60])
EXACT = {"rtol": 1e-12, "atol": 1e-12}


@holds(seed=seeds, s=st.integers(1, 4), m=lengths, k=st.sampled_from([0.0, 1.0, 60.0]))
def test_reciprocal_rank_fusion_is_the_definition(seed, s, m, k):
    generator = rng(seed)
    ranks = generator.integers(0, 8, (s, m))
    weights = generator.random(s) + 0.01
    got = kernels.reciprocal_rank_fusion(*frozen(ranks, weights), k)
    np.testing.assert_allclose(got, oracle.reciprocal_rank_fusion(ranks.tolist(), weights.tolist(), k), **EXACT)


def test_worked_example_of_reciprocal_rank_fusion():
    fused = kernels.reciprocal_rank_fusion(np.array([[1, 2, 0], [2, 0, 1]]), np.ones(2))
    np.testing.assert_allclose(fused, [1 / 61 + 1 / 62, 1 / 62, 1 / 61], rtol=1e-15)


@pytest.mark.parametrize(
    ("age", "form", "floor", "wanted"),
    [
        (0, "half_life", 0.0, 1.0),
        (1, "half_life", 0.5, 0.9771599684342459),
        (30, "half_life", 0.0, 0.5),
        (60, "half_life", 0.0, 0.25),
        (60, "half_life", 0.5, 0.5),
        (-5, "half_life", 0.0, 1.0),
        (1, "exp", 0.0, 0.9672161004820059),
        (30, "exp", 0.0, 0.36787944117144233),
        (30, "exp", 0.5, 0.5),
        (1e300, "exp", 0.0, 0.0),
    ],
)
def test_worked_table_of_decay(age, form, floor, wanted):
    got = kernels.decay(np.array([age], np.float64), 30.0, floor, form)
    assert got[0] == pytest.approx(wanted, rel=1e-14)


def test_an_older_sharper_memory_loses_to_a_fresh_one():
    # The worked example of the fused score times decay: 0.95 x 0.5 = 0.475 against 0.6 x 0.98 = 0.588.
    final = np.array([0.95, 0.6]) * kernels.decay(np.array([30.0, 1.0]), 30.0, 0.5)
    np.testing.assert_allclose(final, [0.475, 0.588], atol=2e-3)


@holds(seed=seeds, m=lengths, floor=st.sampled_from([0.0, 0.5]), form=st.sampled_from(["half_life", "exp"]))
def test_decay_is_the_definition(seed, m, floor, form):
    ages = rng(seed).random(m) * 400 - 20
    got = kernels.decay(frozen(ages), 30.0, floor, form)
    np.testing.assert_allclose(got, [oracle.decay(age, 30.0, floor, form) for age in ages], **EXACT)


@holds(
    seed=seeds,
    m=lengths,
    k=st.sampled_from([1, 3, 100]),
    mmr_lambda=st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]),
    vocabulary=st.sampled_from([1, 5, 30, 4000]),
)
def test_maximal_marginal_relevance_is_the_definition(seed, m, k, mmr_lambda, vocabulary):
    generator = rng(seed)
    relevance = generator.integers(0, 4, m) / 4  # many ties
    sets = [np.unique(generator.integers(0, vocabulary, generator.integers(0, 9))) for _ in range(m)]
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    token_ids = np.concatenate([*sets, []]).astype(np.int32)
    got = kernels.maximal_marginal_relevance(*frozen(relevance, token_ids, offsets), mmr_lambda, k)
    assert got.dtype == np.int64
    wanted = oracle.maximal_marginal_relevance(relevance.tolist(), [set(s.tolist()) for s in sets], mmr_lambda, k)
    assert got.tolist() == wanted


def test_worked_example_of_maximal_marginal_relevance():
    # 1 repeats 0; at lambda 0.5 the less relevant but different 2 comes before it.
    tokens = np.array([1, 2, 3, 1, 2, 3, 8, 9], np.int32)
    offsets = np.array([0, 3, 6, 8])
    relevance = np.array([1.0, 0.9, 0.5])
    assert kernels.maximal_marginal_relevance(relevance, tokens, offsets, 0.5, 3).tolist() == [0, 2, 1]
    assert kernels.maximal_marginal_relevance(relevance, tokens, offsets, 1.0, 3).tolist() == [0, 1, 2]
