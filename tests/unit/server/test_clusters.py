"""Clusters of points, and the words that name them."""

from __future__ import annotations

import numpy as np
import pytest

from recallite_server.memory_map import cluster_names, clusters_of

CENTRES = np.array([[0, 0], [1, 0], [0.5, 1]], np.float32)


def around(each):
    noise = np.random.default_rng(7).normal(0, 0.02, (3, each, 2)).astype(np.float32)
    return (CENTRES[:, None] + noise).reshape(-1, 2)


def test_points_that_lie_together_have_one_cluster():
    clusters = clusters_of(around(9)).reshape(3, 9)
    assert [len(set(row)) for row in clusters.tolist()] == [1, 1, 1]
    assert len(set(clusters[:, 0].tolist())) == 3
    assert clusters_of(around(9)).tolist() == clusters.ravel().tolist()


@pytest.mark.parametrize("points", [np.empty((0, 2), np.float32), np.zeros((11, 2), np.float32)])
def test_few_points_have_none(points):
    assert clusters_of(points).tolist() == [-1] * len(points)


def test_points_at_one_place_are_one_cluster():
    assert set(clusters_of(np.full((40, 2), 0.5, np.float32)).tolist()) == {0}


def test_a_name_is_of_words_that_the_other_clusters_lack():
    texts = ["Mira feeds the goats", "The goats of Mira", "Mira rents a tractor", "A tractor for Mira", "12 34"]
    names = cluster_names(texts, np.array([0, 0, 1, 1, 2], np.int32))
    assert names == ["goats, feeds, mira", "tractor, rents", ""]
    assert cluster_names(texts, np.full(5, -1, np.int32)) == []


def test_no_word_names_two_clusters():
    texts = [
        "billing deploy",
        "billing deploy",
        "billing service",
        "service billing",
        "deploy service",
        "service deploy",
    ]
    names = [name.split(", ") for name in cluster_names(texts, np.array([0, 0, 1, 1, 2, 2], np.int32))]
    words = [word for name in names for word in name if word]
    assert len({*words}) == len(words) == 3
