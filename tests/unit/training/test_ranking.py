"""The learned ranking's training: what a model becomes, how an order is judged, and what is measured."""

from __future__ import annotations

import numpy as np
import pytest

import recallite_kernels as kernels
from benchmarks.training import ranking
from benchmarks.training.forests import complete_trees
from benchmarks.training.measured import MeasuredQuestion

LEAF = {"leaf_value": 0.5}
DUMPED = {
    "tree_info": [
        {
            "tree_structure": {
                "split_feature": 2, "threshold": 0.25, "decision_type": "<=", "internal_value": 0.1,
                "left_child": LEAF,
                "right_child": {
                    "split_feature": 0, "threshold": -1.0, "decision_type": "<=", "internal_value": -0.3,
                    "left_child": {"leaf_value": -1.0}, "right_child": {"leaf_value": 2.0},
                },
            }
        },
        {"tree_structure": {"leaf_value": 0.125}},
    ]
}  # fmt: skip


class Dumped:
    """A model as LightGBM dumps it."""

    def __init__(self, dumped):
        self.dump_model = lambda: dumped


def question(answers, wanted=None, features=None, name="a", kind="own"):
    answers = np.array(answers, dtype=bool)
    features = np.zeros((len(ranking.FEATURES), len(answers))) if features is None else features
    wanted = int(answers.sum()) if wanted is None else wanted
    return MeasuredQuestion(name, kind, f"{name}/0", "?", True, features, answers, wanted)


def test_trees_are_completed_to_the_depth_of_the_deepest():
    trees = complete_trees(Dumped(DUMPED))
    assert trees.nodes.tolist() == [[2, 0, 0], [0, 0, 0]]
    assert trees.thresholds.tolist() == [[0.25, np.inf, -1.0], [np.inf] * 3]
    assert trees.leaves.tolist() == [[0.5, 0.5, -1.0, 2.0], [0.125] * 4]
    np.testing.assert_allclose(trees.values, [[0.1, 0.5, -0.3], [0.125] * 3])
    forest = kernels.Forest(trees.nodes, trees.thresholds.astype(np.float64), trees.leaves.astype(np.float64))
    features = np.array([[0.0, -1.0, 0.0], [9.0, 9.0, 9.0], [0.25, 0.26, 0.26]])
    assert kernels.forest_scores(features, forest).tolist() == [0.625, -0.875, 2.125]


def test_a_decision_that_is_not_a_threshold_is_refused():
    node = {**DUMPED["tree_info"][0]["tree_structure"], "decision_type": "=="}
    with pytest.raises(ValueError, match="decides by '=='"):
        complete_trees(Dumped({"tree_info": [{"tree_structure": node}]}))


def test_an_order_is_judged_by_what_it_puts_first():
    questions = [question([0, 1, 0, 1]), question([0, 0]), question([1], wanted=2)]
    figures = ranking.judge(questions[:1] + questions[2:], ranking.by_formula)
    assert figures == ranking.Figures(recall=0.75, mrr=0.75, first=0.5)
    turned = ranking.judge(questions[:1], lambda question: np.arange(4.0))
    assert turned == ranking.Figures(recall=1.0, mrr=1.0, first=1.0)
    assert ranking.judge([question([], wanted=1)], ranking.by_formula) == ranking.Figures(0.0, 0.0, 0.0)


def test_only_the_best_are_put_in_a_new_order():
    answers = [0] * ranking.DEPTH + [1]
    assert ranking.judge([question(answers)], lambda question: np.arange(float(len(answers)))).recall == 0


def test_folds_keep_a_conversation_together():
    questions = [question([1, 0])._replace(store=f"a/{place % 7}") for place in range(40)]
    fold = ranking.folds(questions)
    assert {fold(each) for each in questions} == set(range(ranking.FOLDS))
    assert all(len({fold(each) for each in questions if each.store == f"a/{place}"}) == 1 for place in range(7))


def test_a_model_is_trained_and_exported_to_the_same_outputs():
    pytest.importorskip("lightgbm")
    generator = np.random.default_rng(0)
    questions = []
    for _ in range(60):
        features = generator.normal(size=(len(ranking.FEATURES), 20))
        questions.append(question(features[0] > 1, features=features))
    model = ranking.train(questions, trees=5)
    trees = complete_trees(model)
    forest = kernels.Forest(trees.nodes, trees.thresholds.astype(np.float64), trees.leaves.astype(np.float64))
    features = questions[0].features
    np.testing.assert_allclose(kernels.forest_scores(features, forest), model.predict(features.T), atol=1e-6)
