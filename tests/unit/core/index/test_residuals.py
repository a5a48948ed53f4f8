"""Codes and residuals give back each component to within a 508th of the scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from recallite.store.sql.vectors import pack
from recallite.system.numerics import kernels
from tests.limits import examples

# Finite, and far from the ends of float32, where a scale is subnormal.
components = st.floats(-1e6, 1e6, width=32).filter(lambda value: value == 0 or abs(value) > 1e-6)
matrices = arrays.arrays(np.float32, st.tuples(st.integers(1, 5), st.sampled_from([1, 8, 64, 65])), elements=components)


def packed(values):
    numbers = np.arange(len(values))
    return pack(numbers, numbers, values)


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(values=matrices)
def test_a_component_is_off_by_a_508th_of_the_scale_at_most(values):
    found = packed(values)
    scales = found.scales.astype(np.float64)[:, None]
    given_back = (found.codes + found.residuals / np.float64(kernels.RESIDUAL_STEPS)) * scales
    # Float32 rounds a code's place, up to 127, by 2**-18.
    assert (np.abs(given_back - values) <= scales * (1 / 508 + 2**-16)).all()


@settings(max_examples=examples(50), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_cosine_of_unit_vectors_is_off_by_less_than_packing_says(seed):
    drawn = np.random.default_rng(seed).normal(size=(16, 384))
    values = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    found = packed(values)
    given_back = (found.codes + found.residuals / np.float64(254)) * found.scales.astype(np.float64)[:, None]
    exact = values.astype(np.float64) @ values.astype(np.float64).T
    assert np.abs(given_back @ values.astype(np.float64).T - exact).max() < 7.5e-6


def test_a_vector_of_zeros_leaves_nothing():
    found = packed(np.zeros((2, 8), dtype=np.float32))
    assert not any(each.any() for each in (found.codes, found.residuals, found.scales))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_left_out(value):
    rows = [[0.5, 1.0], [value, 1.0], [-1.0, 0.25]]
    found = packed(np.array(rows, dtype=np.float32))
    assert found.ids.tolist() == found.owners.tolist() == [0, 2]
    alone = packed(np.array([rows[0], rows[2]], dtype=np.float32))
    assert all(np.array_equal(*pair) for pair in zip(found[2:], alone[2:], strict=True))
