from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import frozen, holds, rng, seeds, tokens

pytestmark = pytest.mark.usefixtures("backend")


@holds(
    seed=seeds,
    texts=st.sampled_from([0, 1, 2, 9]),
    vocabulary=st.sampled_from([1, 7, 40]),
    d=st.sampled_from([1, 3, 16, 65]),
    longest=st.sampled_from([0, 1, 5, 30]),
)
def test_pool_tokens_is_the_definition(seed, texts, vocabulary, d, longest):
    arguments = frozen(*tokens(rng(seed), texts, vocabulary, d, longest))
    pooled = kernels.pool_tokens(*arguments)
    assert (pooled.dtype, pooled.shape) == (np.float32, (texts, d))
    np.testing.assert_allclose(pooled, np.array(oracle.pool_tokens(*arguments)).reshape(texts, d), atol=1e-6)


@holds(seed=seeds)
def test_a_row_does_not_depend_on_the_other_texts(seed):
    codes, scales, token_ids, offsets = tokens(rng(seed), 12, 30, 48, 20)
    together = kernels.pool_tokens(codes, scales, token_ids, offsets)
    for i, row in enumerate(together):
        own = token_ids[offsets[i] : offsets[i + 1]]
        alone = kernels.pool_tokens(codes, scales, own, np.array([0, len(own)]))
        assert alone[0].tobytes() == row.tobytes()


def test_tokens_that_cancel_out_pool_to_zero():
    codes = np.array([[3, -4], [-3, 4]], np.int8)
    pooled = kernels.pool_tokens(codes, np.ones(2, np.float32), np.array([0, 1, 0]), np.array([0, 2, 2, 3]))
    np.testing.assert_allclose(pooled, [[0, 0], [0, 0], [0.6, -0.8]], atol=1e-7)


def test_a_text_of_a_million_tokens_keeps_its_precision():
    generator = rng(4)
    codes = generator.integers(1, 128, (50, 8)).astype(np.int8)
    scales = (generator.random(50) + 0.01).astype(np.float32)
    token_ids = generator.integers(0, 50, 1_000_000)
    pooled = kernels.pool_tokens(codes, scales, token_ids, np.array([0, len(token_ids)]))[0]
    summed = np.bincount(token_ids, minlength=50).astype(np.float64) * scales @ codes
    np.testing.assert_allclose(pooled, summed / np.linalg.norm(summed), rtol=1e-6)


def test_scales_of_any_size_give_unit_rows():
    codes = np.array([[1, 2], [127, -3]], np.int8)
    for size in (1e-38, 1e-20, 1e30):
        pooled = kernels.pool_tokens(codes, np.full(2, size, np.float32), np.array([0, 1]), np.array([0, 2]))
        np.testing.assert_allclose(pooled, [np.array([128, -1]) / np.hypot(128, 1)], atol=1e-6)
