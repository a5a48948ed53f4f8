from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recollect_kernels as kernels
from tests.kernels import oracle
from tests.kernels.cases import candidates, frozen, graph, holds, mask, masks, rng, seeds

pytestmark = pytest.mark.usefixtures("backend")


@holds(
    seed=seeds,
    queries=st.sampled_from([0, 1, 4]),
    n=st.sampled_from([0, 1, 2, 9, 60]),
    links=st.sampled_from([0, 3, 40, 600]),
    share=st.sampled_from([0.1, 0.4, 1.0]),
    kind=masks,
)
def test_spread_activation_is_the_definition(seed, queries, n, links, share, kind):
    generator = rng(seed)
    allowed = mask(generator, n, kind)
    store = frozen(*graph(generator, n, links)[:7])
    offsets, rows = frozen(*candidates(generator, n, queries, share))
    scores = frozen(generator.integers(0, 9, len(rows)) / 8 * generator.random(len(rows)))
    got = kernels.spread_activation(offsets, rows, scores, *store, allowed, 1.0, 0.7)
    everyone = np.ones(n, np.uint8) if allowed is None else allowed
    plain = [part.tolist() for part in (offsets, rows, scores, *store, everyone)]
    assert [part.dtype.name for part in got] == ["float64", "float64", "float64", "int64"]
    assert tuple(part.tolist() for part in got) == oracle.spread_activation(*plain, 1.0, 0.7)


def test_worked_example_of_spread_activation():
    # 0 - 1 - 2 stand in a chain, 3 is linked with 0 and with 1; only 0, 2 and 3 are candidates.
    previous, following = np.array([-1, 0, 1, -1], np.int32), np.array([1, 2, -1, -1], np.int32)
    links = np.array([0, 1, -1, 2], np.int32), np.array([-1, -1, 3, -1], np.int32), np.array([3, 3, 0, 1], np.int32)
    strengths = np.array([0.5, 0.5, 0.5, 1.0], np.float32)
    by_chain, by_link, best_three, company = kernels.spread_activation(
        np.array([0, 3]), np.array([0, 2, 3]), np.array([0.5, 0.1, 0.9]), previous, following,
        np.array([7, 7, 7, -1]), *links, strengths, None, 1.0, 0.7,
    )  # fmt: skip
    assert by_chain.tolist() == [0.7 * 0.1, 0.7 * 0.5, 0.0]
    assert by_link.tolist() == [0.5 * 0.9, -1.0, 0.5 * 0.5]
    assert best_three.tolist() == [0.6, 0.6, 0.0]
    assert company.tolist() == [3, 3, 1]


@pytest.mark.parametrize("stride", [1, 2**11, 2**32, 2**52])
def test_sources_whose_numbers_share_their_low_bits_stay_apart(stride):
    n = 900
    sources = np.arange(n) // 2 * stride
    none = np.full(n, -1, np.int32)
    scores = np.arange(n) / n
    best_three = kernels.spread_activation(
        np.array([0, n]), np.arange(n), scores, none, none, sources, none, none[:0], none[:0], np.empty(0, np.float32),
        None, 1.0, 0.7,
    )[2]  # fmt: skip
    np.testing.assert_array_equal(best_three, np.repeat(scores[1::2] + scores[::2], 2))


def test_a_row_that_leads_to_itself_ends():
    itself, nothing = np.array([0], np.int32), np.array([-1], np.int32)
    got = kernels.spread_activation(
        np.array([0, 1]), np.array([0]), np.array([0.5]), itself, itself, np.array([-1]), itself, nothing, itself,
        np.array([0.5], np.float32), None, 1.0, 0.7,
    )  # fmt: skip
    assert [part.tolist() for part in got] == [[0.5], [0.25], [0.0], [3]]


def test_rows_out_of_order_and_chains_out_of_range_are_refused():
    none, nothing = np.full(3, -1, np.int32), np.empty(0, np.int32)
    rest = np.full(3, -1), none, nothing, nothing, np.empty(0, np.float32), None, 1.0, 0.7

    def spread(rows, previous=none, following=none, offsets=(0, 2)):
        return kernels.spread_activation(np.array(offsets), np.array(rows), np.ones(2), previous, following, *rest)

    for rows in ([1, 0], [1, 1]):
        with pytest.raises(kernels.KernelError, match="ascending"):
            spread(rows)
        spread(rows, offsets=(0, 1, 2))  # of two queries
        spread(rows, offsets=(0, 0, 1, 1, 2, 2))
        with pytest.raises(kernels.KernelError, match="ascending"):
            spread(rows, offsets=(0, 0, 2, 2))
    for chains in (
        {"previous": np.array([-1, 3, -1], np.int32)},
        {"following": np.array([-1, 2**31 - 1, -1], np.int32)},
    ):
        with pytest.raises(kernels.KernelError, match="name a row of 3 or more"):
            spread([1, 2], **chains)
