from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

import recollect_kernels as kernels
from tests.kernels import oracle
from tests.kernels.cases import frozen, holds, rng, seeds

pytestmark = pytest.mark.usefixtures("backend")
lengths = st.sampled_from([0, 1, 2, 9, 60])


@holds(seed=seeds, m=lengths)
def test_spread_is_the_strongest_of_one_step(seed, m):
    generator = rng(seed)
    offsets = np.concatenate([[0], np.cumsum(generator.integers(0, 5, m))]).astype(np.int64)
    scores = generator.random(m) - 0.2
    targets = generator.integers(0, m, offsets[-1]) if m else np.empty(0, np.int64)
    arguments = frozen(scores, offsets, targets, generator.random(offsets[-1]))
    assert kernels.spread(*arguments).tolist() == oracle.spread(*arguments)


def chains(generator, n):
    """Rows in random order, cut into chains; some rows stand in none."""
    previous, following = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    order = generator.permutation(n)
    for before, after in pairwise(order):
        if generator.random() < 0.8:
            following[before], previous[after] = after, before
    return previous, following


@holds(seed=seeds, n=lengths, share=st.sampled_from([0.0, 0.4, 1.0]), masked=st.booleans())
def test_spread_chain_is_the_definition(seed, n, share, masked):
    generator = rng(seed)
    previous, following = chains(generator, n)
    rows = np.flatnonzero(generator.random(n) < share).astype(np.int64)
    scores = generator.random(len(rows)) - 0.1
    mask = (generator.random(n) < 0.7).astype(np.uint8) if masked else None
    strongest, company = kernels.spread_chain(*frozen(scores, rows, previous, following), mask, 1.0, 0.7)
    allowed = [1] * n if mask is None else mask.tolist()
    wanted = oracle.spread_chain(
        scores.tolist(), rows.tolist(), previous.tolist(), following.tolist(), allowed, 1.0, 0.7
    )
    assert (strongest.tolist(), company.tolist()) == wanted


def test_worked_example_of_spread_chain():
    previous, following = np.array([-1, 0, 1, -1], np.int32), np.array([1, 2, -1, -1], np.int32)
    strongest, company = kernels.spread_chain(
        np.array([0.5, 0.1, 0.9]), np.array([0, 2, 3]), previous, following, None, 1.0, 0.7
    )
    assert strongest.tolist() == [0.7 * 0.1, 0.7 * 0.5, 0.0]
    assert company.tolist() == [3, 3, 1]


def test_spread_chain_refuses_rows_out_of_order_and_links_out_of_range():
    links = np.array([-1, 0], np.int32)
    with pytest.raises(kernels.KernelError, match="ascending"):
        kernels.spread_chain(np.ones(2), np.array([1, 0]), links, links, None, 1.0, 0.7)
    with pytest.raises(kernels.KernelError, match="following"):
        kernels.spread_chain(np.ones(1), np.array([1]), links, np.array([-1, 9], np.int32), None, 1.0, 0.7)
