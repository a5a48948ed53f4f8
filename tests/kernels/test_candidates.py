from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recollect_kernels as kernels
from tests.kernels import oracle
from tests.kernels.cases import candidates, frozen, graph, holds, mask, masks, rng, seeds

pytestmark = pytest.mark.usefixtures("backend")
counts = st.sampled_from([0, 1, 4])
sizes = st.sampled_from([0, 1, 2, 9, 60])


def assert_joined(got, wanted):
    offsets, rows, first, second = got
    assert [part.dtype.name for part in got] == ["int64", "int64", "float32", "float32"]
    assert all(part.flags.c_contiguous and part.flags.writeable for part in got)
    assert offsets.tolist() == wanted[0]
    assert rows.tolist() == [row for row, _, _ in wanted[1]]
    np.testing.assert_array_equal(first, np.array([value for _, value, _ in wanted[1]], np.float32))
    np.testing.assert_array_equal(second, np.array([value for _, _, value in wanted[1]], np.float32))


def lists(generator, queries, n, width):
    """Rows in random order, of which only some count; what follows is never read."""
    width = min(width, n)
    rows = np.array([generator.permutation(n)[:width] for _ in range(queries)], np.int64).reshape(queries, width)
    lengths = generator.integers(0, width + 1, queries)
    for query, length in enumerate(lengths):
        rows[query, length:] = -(2**62)
    return rows * generator.choice([1, 2**30]), generator.random(rows.shape, np.float32), lengths


@holds(seed=seeds, queries=counts, n=sizes, first=st.sampled_from([0, 1, 30]), second=st.sampled_from([0, 5]))
def test_join_candidates_is_the_union(seed, queries, n, first, second):
    generator = rng(seed)
    arguments = frozen(*lists(generator, queries, n, first), *lists(generator, queries, n, second))
    assert_joined(kernels.join_candidates(*arguments), oracle.join_candidates(*(part.tolist() for part in arguments)))


def joined(generator, n, queries):
    offsets, rows = candidates(generator, n, queries)
    signals = generator.random((2, len(rows)), np.float32)
    signals[generator.random(signals.shape) < 0.3] = np.nan
    return offsets, rows, signals[0], signals[1]


def assert_expanded(of, scores, best, chains, allowed):
    got = kernels.expand_candidates(*of, scores, best, *chains, allowed)
    everyone = np.ones(len(chains[0])) if allowed is None else allowed
    plain = [part.tolist() for part in (*of, scores)], [part.tolist() for part in (*chains, everyone)]
    assert_joined(got, oracle.expand_candidates(*plain[0], best, *plain[1]))


@holds(
    seed=seeds,
    queries=counts,
    n=sizes,
    links=st.sampled_from([0, 3, 40, 600]),
    best=st.sampled_from([1, 3, 1000]),
    kind=masks,
)
def test_expand_candidates_adds_the_neighbours_of_the_best(seed, queries, n, links, best, kind):
    generator = rng(seed)
    allowed = mask(generator, n, kind)
    store = graph(generator, n, links)
    of = frozen(*joined(generator, n, queries))
    scores = generator.integers(-2, 3, len(of[1])) / 7  # many ties
    chains = frozen(store.previous, store.following, store.heads, store.nexts, store.targets)
    assert_expanded(of, frozen(scores), best, chains, allowed)


@pytest.mark.parametrize("links", [5, 900, 3000])
def test_records_with_hundreds_of_links_find_room(links):
    # The first query needs more room than is set aside, the second none, the third most.
    generator = rng(links)
    n = 2000
    heads, nexts = np.full(n, -1, np.int32), np.arange(-1, 2 * links - 1, dtype=np.int32)
    nexts[links] = -1
    heads[3], heads[700] = links - 1, 2 * links - 1
    targets = generator.integers(0, n, 2 * links).astype(np.int32)
    targets[links + links // 2 :] = -1
    none = np.full(n, -1, np.int32)
    rows = np.array([0, 700, 5, 3, 9])
    offsets = np.array([0, 2, 3, 5])
    of = offsets, rows, *np.ones((2, 5), np.float32)
    assert_expanded(of, np.ones(5), 2, (none, none, heads, nexts, targets), None)


@holds(seed=seeds, queries=counts, m=sizes, ties=st.booleans(), ascending=st.booleans())
def test_order_by_score_breaks_ties_by_key(seed, queries, m, ties, ascending):
    generator = rng(seed)
    offsets = np.concatenate([[0], np.sort(generator.integers(0, m + 1, queries))]).astype(np.int64)
    total = int(offsets[-1])
    scores = generator.integers(-3, 4, total) / 3 if ties else generator.standard_normal(total)
    scores[generator.random(total) < 0.2] = -0.0
    keys = generator.permutation(total).astype(np.int64) - total // 2
    keys = np.sort(keys) if ascending else keys * 2**40
    got = kernels.order_by_score(*frozen(offsets, scores, keys))
    assert got.dtype == np.int64
    assert got.tolist() == oracle.order_by_score(offsets.tolist(), scores.tolist(), keys.tolist())


def test_equal_keys_keep_their_places():
    order = kernels.order_by_score(np.array([0, 4]), np.array([1.0, 2.0, 1.0, 1.0]), np.array([5, 5, 5, 1]))
    assert order.tolist() == [1, 3, 0, 2]


def test_chains_and_links_out_of_range_are_refused():
    none, links = np.full(3, -1, np.int32), (np.array([0, -1, -1], np.int32), np.array([-1], np.int32))
    one = np.array([0, 1]), np.array([0]), *np.ones((2, 1), np.float32), np.ones(1), 5
    beyond = np.array([1, 3, -1], np.int32)
    for chains in ((beyond, none), (none, beyond), (np.array([9, -1, -1], np.int32), none)):
        with pytest.raises(kernels.KernelError, match="name a row of 3 or more"):
            kernels.expand_candidates(*one, *chains, *links, np.zeros(1, np.int32), None)
    for allowed in (None, np.ones(3, np.uint8)):
        with pytest.raises(kernels.KernelError, match="name a row of 3 or more"):
            kernels.expand_candidates(*one, none, none, *links, np.array([3], np.int32), allowed)
