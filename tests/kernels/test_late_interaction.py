from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recollect_kernels as kernels
from tests.kernels import oracle
from tests.kernels.cases import TOLERANCE, frozen, holds, rng, seeds, vectors

pytestmark = pytest.mark.usefixtures("backend")
counts = st.sampled_from([0, 1, 2, 7, 20])


@holds(seed=seeds, records=counts, asked=counts, dimension=st.sampled_from([1, 63, 64, 100, 384, 512]))
def test_max_sim_is_the_definition(seed, records, asked, dimension):
    generator = rng(seed)
    offsets = np.concatenate([[0], np.cumsum(generator.integers(0, 6, records))]).astype(np.int64)
    query = kernels.sketch(vectors(generator, asked, dimension))
    codes = kernels.sketch(vectors(generator, int(offsets[-1]), dimension))
    weights = generator.random(asked, np.float32)
    scores = kernels.max_sim(*frozen(query, weights, codes, offsets), dimension)
    assert scores.dtype == np.float32
    wanted = oracle.max_sim(query.tolist(), weights.tolist(), codes.tolist(), offsets.tolist(), dimension)
    np.testing.assert_allclose(scores, wanted, atol=TOLERANCE)


def test_the_same_tokens_in_any_order_score_the_sum_of_the_weights():
    codes = kernels.sketch(vectors(rng(7), 5, 384, zeros=False, duplicates=False))
    weights = np.array([1.0, 0.5, 0.25, 0.0, 2.0], np.float32)
    scores = kernels.max_sim(codes, weights, np.ascontiguousarray(codes[::-1]), np.array([0, 0, 5, 5]), 384)
    assert scores.tolist() == [0.0, 3.75, 0.0]


def test_opposite_tokens_score_minus_the_weights():
    token = np.array([[0b0110]], np.uint64)
    scores = kernels.max_sim(token, np.ones(1, np.float32), token ^ np.uint64(0b1111), np.array([0, 1]), 4)
    assert scores.tolist() == [-1.0]
