"""Features of candidates: their definition, and that those of a batch are those of each query."""

from __future__ import annotations

import numpy as np
import pytest

import recallite_kernels as kernels
from benchmarks.training.measuring import measure_queries
from recallite.model.records import NewRecord
from recallite.recall.plan import FEATURES
from recallite.recall.request import build_request

TEXTS = [
    "We migrated from PostgreSQL to MySQL", "The office plants are watered on Fridays", "Ada is on call for billing",
    "MySQL backups run at night", "The plants on the second floor died", "Billing moved to a new provider",
]  # fmt: skip
QUESTIONS = ["Which database did we migrate to?", "Who waters the plants?", "unheard-of zebra plants", "MySQL"]


@pytest.fixture
def filled(memory):
    for place, text in enumerate(TEXTS):
        memory.remember(NewRecord(text, source=f"day {place // 3}", position=place % 3))
    return memory


def measured(memory, questions, depth=100):
    return measure_queries(memory._engine, questions, build_request("/", "default"), depth)


def test_each_feature_is_one_row_for_the_best_candidates_best_first(filled):
    for query in measured(filled, QUESTIONS):
        assert query.features.shape == (len(FEATURES), len(query.ids))
        assert np.isfinite(query.features).all()
    hits = filled.recall(QUESTIONS[0], limit=3)
    assert measured(filled, QUESTIONS, depth=3)[0].ids == [hit.id for hit in hits]


def test_the_features_of_a_batch_are_those_of_each_query(filled):
    for query, together in zip(QUESTIONS, measured(filled, QUESTIONS), strict=True):
        (alone,) = measured(filled, [query])
        assert alone.ids == together.ids
        np.testing.assert_allclose(alone.features, together.features, rtol=1e-12, atol=1e-12)


def test_gaps_are_to_the_best_and_coverage_counts_words_that_no_record_has(filled):
    names = list(FEATURES)
    one, other = measured(filled, ["plants", "zebra plants"])
    of = {name: one.features[place] for place, name in enumerate(names)}
    for name in ("cosine", "rerank", "fused", "spread"):
        np.testing.assert_allclose(of[f"{name}_gap"], of[name] - of[name].max(), atol=1e-12)
    assert of["coverage"].max() == 1
    assert 0 < other.features[names.index("coverage")].max() < 1
    assert of["bm25_share"].max() == 1


def test_a_query_without_candidates_has_no_features(memory):
    assert measured(memory, ["anything"])[0].features.shape == (len(FEATURES), 0)


def test_every_feature_of_the_kernel_has_a_reason():
    assert tuple(FEATURES) == kernels.FEATURES._fields
