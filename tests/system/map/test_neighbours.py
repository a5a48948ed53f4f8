"""Nearest neighbours and principal components, against definitions in float64."""

from __future__ import annotations

import numpy as np
import pytest

from recallite.review.map import neighbours
from recallite.review.map.layout import lay_out
from recallite.review.map.neighbours import nearest_neighbours, principal_components


def units(count, dimension=16, seed=1):
    values = np.random.default_rng(seed).normal(size=(count, dimension))
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


def nearest_by_definition(vectors, count):
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    np.fill_diagonal(cosines, np.inf)
    return np.argsort(-cosines, axis=1, kind="stable")[:, :count]


def test_few_vectors_are_compared_with_all():
    vectors = units(300)
    found = nearest_neighbours(vectors, 10, seed=1)
    assert (found.places[:, 0] == np.arange(300)).all()
    expected = nearest_by_definition(vectors, 10)
    assert (np.sort(found.places, axis=1) == np.sort(expected, axis=1)).all()
    cosines = np.einsum("ij,ikj->ik", vectors, vectors[found.places])
    assert np.allclose(found.cosines, np.clip(cosines, -1, 1), atol=1e-5)
    assert (np.diff(found.cosines, axis=1) <= 1e-6).all()


def test_each_is_its_own_nearest_among_equals():
    vectors = np.repeat(units(4), 20, axis=0)
    found = nearest_neighbours(vectors, 15, seed=1)
    assert (found.places[:, 0] == np.arange(80)).all()
    assert (found.places // 20 == (np.arange(80) // 20)[:, None]).all()
    assert all(len(set(row)) == 15 for row in found.places.tolist())


def test_of_many_vectors_most_neighbours_are_found(monkeypatch):
    monkeypatch.setattr(neighbours, "_COMPARED", 900)
    monkeypatch.setattr(neighbours, "_CELL", 50)
    centres = units(60, seed=3)
    vectors = np.repeat(centres, 50, axis=0) + 0.6 * units(3_000, seed=4)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    told = []
    found = nearest_neighbours(vectors, 15, seed=1, after=told.append)
    expected = nearest_by_definition(vectors, 15)
    kept = np.mean([len(set(a) & set(b)) / 15 for a, b in zip(found.places.tolist(), expected.tolist(), strict=True)])
    assert kept > 0.9
    assert told == sorted(told)
    assert told[-1] == 1
    again = nearest_neighbours(vectors, 15, seed=1)
    assert (again.places == found.places).all()


@pytest.mark.parametrize("count", [1, 2, 40])
def test_principal_components_are_those_of_a_singular_value_decomposition(count):
    vectors = units(count, 8)
    found = principal_components(vectors, 2)
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    expected = np.zeros((count, 2))
    expected[:, : min(2, count)] = (left * values)[:, :2]
    assert np.allclose(np.abs(found), np.abs(expected), atol=1e-4)


def test_vectors_of_one_dimension_have_one_component():
    found = principal_components(np.array([[1.0], [-1.0], [1.0]], dtype=np.float32), 2)
    assert np.allclose(found[:, 0] - found[0, 0], [0, -2, 0])
    assert (found[:, 1] == 0).all()


@pytest.mark.parametrize("vectors", [units(1), np.repeat(units(1), 40, axis=0)])
def test_what_is_all_the_same_stands_in_the_middle(vectors):
    method, points = lay_out(vectors, "pca", lambda stage, share: None)
    assert method == "pca"
    assert (points == 0.5).all()
