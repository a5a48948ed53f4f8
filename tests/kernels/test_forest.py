from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recollect_kernels as kernels
from recollect_kernels import KernelError
from tests.kernels import oracle
from tests.kernels.cases import forest, frozen, holds, plain, rng, seeds

pytestmark = pytest.mark.usefixtures("backend")


@holds(seed=seeds, trees=st.sampled_from([0, 1, 5, 80]), depth=st.integers(1, 5), m=st.sampled_from([0, 1, 7, 100]))
def test_a_score_is_the_sum_of_the_leaves_that_a_walk_reaches(seed, trees, depth, m):
    generator = rng(seed)
    some = forest(generator, trees, depth, features=6)
    # Whole numbers: half of the comparisons are of equal values, which go left.
    features = generator.integers(-2, 3, (6, m)).astype(np.float64)
    scores = kernels.forest_scores(frozen(features), some)
    assert scores.tolist() == oracle.forest_scores(features.T.tolist(), *plain(some))


def test_a_threshold_of_infinity_always_goes_left():
    some = kernels.Forest(np.zeros((1, 1), np.uint8), np.full((1, 1), np.inf), np.array([[3.0, -1.0]]))
    assert kernels.forest_scores(np.array([[1e308, -1e308]]), some).tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nodes": np.zeros((2, 2), np.uint8)}, "nodes: 2 a tree; wanted complete trees"),
        ({"nodes": np.full((2, 3), 6, np.uint8)}, "nodes: name feature 6; wanted 0 to 5"),
        ({"thresholds": np.zeros((2, 3), np.float32)}, "thresholds: dtype float32; wanted float64"),
        ({"leaves": np.zeros((2, 3))}, r"leaves: shape \(2, 3\); wanted \(2, 4\)"),
        ({"leaves": np.full((2, 4), np.nan)}, r"leaves: nan at \(0, 0\)"),
    ],
)
def test_a_forest_that_cannot_be_walked_is_refused(changed, message):
    some = forest(rng(1), 2, 2, features=6)._replace(**changed)
    with pytest.raises(KernelError, match=message):
        kernels.forest_scores(np.zeros((6, 3)), some)


def test_features_that_are_not_finite_are_refused():
    with pytest.raises(KernelError, match="features: inf"):
        kernels.forest_scores(np.full((6, 3), np.inf), forest(rng(1), 2, 2, features=6))
