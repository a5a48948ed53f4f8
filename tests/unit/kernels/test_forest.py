from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels import FEATURES, SIGNALS, KernelError
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import forest, frozen, holds, plain, rng, seeds, weighed
from tests.unit.kernels.stages import rank_by_forest

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


@holds(
    seed=seeds,
    size=st.sampled_from([0, 1, 2, 30]),
    depth=st.sampled_from([0, 1, 5, 20]),
    trees=st.sampled_from([0, 20]),
    changed=st.sampled_from([{}, {"speaker_weight": 0.3, "date_weight": 0.5}]),
)
def test_the_best_are_ranked_by_what_the_forest_says_of_their_features(seed, size, depth, trees, changed):
    given = ranked(rng(seed), size, trees, changed)
    signals, rows, order, slices, some, parameters = given
    found = rank_by_forest(*given, depth)
    carried, _ = oracle.word_coverage(*plain(slices), rows.tolist())
    covered = [shares[0] for shares in carried]
    every = [dict(zip(SIGNALS._fields, each, strict=True)) for each in signals.T.tolist()]
    best = {name: max((each[name] for each in every), default=0.0) for name in SIGNALS._fields}
    mass, places = sum(map(float, slices.idf)), order.tolist()
    shares = [covered[place] / mass if mass else 0.0 for place in places[:depth]]
    features = [oracle.features(every[place], best, share) for place, share in zip(places[:depth], shares, strict=True)]
    added = [oracle.unseen(every[place], parameters._asdict()) for place in places[:depth]]
    outputs = [one + other for one, other in zip(oracle.forest_scores(features, *plain(some)), added, strict=True)]
    new_order, scores = oracle.reordered(places, outputs, shares), signals[SIGNALS.score].copy()
    for before, after in zip(places, new_order, strict=True):
        scores[after] = signals[SIGNALS.score, before]
    assert found.features.shape == (len(FEATURES), len(features))
    np.testing.assert_allclose(found.features.T, np.reshape(features, found.features.T.shape), rtol=1e-12)
    np.testing.assert_allclose(found.outputs, outputs, rtol=1e-9, atol=1e-12)
    assert found.order.tolist() == new_order
    assert found.scores.tolist() == scores.tolist()


def test_a_record_that_alone_has_all_words_stays_first():
    signals, rows, order, slices, *others = ranked(rng(3), 8, 20, {})
    first = slices.rows[slices.starts[0]]
    apart = np.setdiff1d(np.arange(10_000), slices.rows)[: len(rows)]
    rows = np.where(np.arange(len(rows)) == order[0], first, apart)
    for missing, stays in ((0.0, True), (1.0, False)):  # the IDF of a second word, which no record has
        idf = np.array([slices.idf[0] + 1, missing], np.float32)
        one = slices._replace(
            starts=slices.starts[:1],
            ends=slices.ends[:1],
            words=np.zeros(1, np.int64),
            idf=idf,
            roles=np.zeros(2, np.uint8),
        )
        found = rank_by_forest(signals, rows, order, one, *others, 8)
        most = found.outputs[0] == found.outputs.max()
        assert (found.order[0] == order[0]) == (stays or most)


def ranked(generator, size, trees, changed):
    """Arguments of `rank_by_forest` for so many candidates."""
    signals, group, slices, _, _, parameters = weighed(generator, size, size, changed)
    order = generator.permutation(size)
    some = forest(generator, trees, 3, features=len(FEATURES))
    return signals, group.rows, order, slices, some, parameters
