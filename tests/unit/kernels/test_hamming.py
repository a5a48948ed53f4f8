from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import frozen, holds, mask, masks, rng, seeds, vectors

pytestmark = pytest.mark.usefixtures("backend")
ROOM = 4096  # what the JIT holds beyond the rows wanted before it drops the farther ones


@holds(seed=seeds, n=st.sampled_from([0, 1, 5]), d=st.sampled_from([1, 7, 8, 63, 64, 65, 100, 384, 4096]))
def test_sketch_sets_the_bits_of_what_is_above_zero(seed, n, d):
    rows = vectors(rng(seed), n, d)
    got = kernels.sketch(frozen(rows))
    assert (got.dtype, got.shape) == (np.uint64, (n, -(-d // 64)))
    assert got.tolist() == oracle.sketch(rows)


def test_sketch_bytes_are_those_of_sqlite_vec():
    # vec_quantize_binary sets bit j % 8 of byte j // 8, least significant first.
    row = np.zeros((1, 128), np.float32)
    row[0, [0, 9, 64, 127]] = 1
    row[0, 1] = -0.0
    packed = kernels.sketch(row).astype("<u8").tobytes()
    assert packed == bytes([1, 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 128])


def shortlist(queries, sketches, size):
    """That of all rows."""
    return kernels.hamming_shortlist(queries, kernels.sketch_blocks(sketches), None, 0, len(sketches), size)


@holds(seed=seeds, n=st.sampled_from([0, 1, 15, 16, 17, 100]), words=st.sampled_from([0, 1, 6]))
def test_a_row_is_found_in_its_block_and_rows_beyond_the_last_are_0(seed, n, words):
    sketches = rng(seed).integers(0, 2**64, (n, words), np.uint64)
    blocks = kernels.sketch_blocks(frozen(sketches))
    assert blocks.shape == (-(-n // 16), words, 16)
    every = blocks.transpose(0, 2, 1).reshape(len(blocks) * 16, words)
    assert every[:n].tolist() == sketches.tolist()
    assert not every[n:].any()


def assert_nearest(queries, sketches, allowed, start, stop, size):
    """What the kernel finds is the definition, in every query."""
    rows, distances = kernels.hamming_shortlist(queries, kernels.sketch_blocks(sketches), allowed, start, stop, size)
    looked_at = (range(len(sketches)) if allowed is None else allowed.tolist())[start:stop]
    assert (rows.dtype, distances.dtype) == (np.int64, np.uint16)
    assert rows.shape == distances.shape == (len(queries), min(size, stop - start))
    words = sketches.tolist()
    for query, own_rows, own_distances in zip(queries.tolist(), rows, distances, strict=True):
        truth = oracle.hamming(query, words)
        wanted = oracle.nearest(truth, looked_at, size)
        assert own_rows.tolist() == wanted
        assert own_distances.tolist() == [truth[row] for row in wanted]


@holds(
    seed=seeds,
    count=st.sampled_from([0, 1, 3]),
    n=st.sampled_from([0, 1, 7, 8, 9, 130]),
    words=st.sampled_from([1, 2, 6, 8, 64]),
    size=st.sampled_from([1, 3, 64, 1000]),
    kind=masks,
    whole=st.booleans(),
)
def test_shortlist_is_the_nearest_of_the_rows_asked_for(seed, count, n, words, size, kind, whole):
    generator = rng(seed)
    sketches = generator.integers(0, 2**64, (n, words), np.uint64)
    sketches[generator.random(n) < 0.5] = generator.integers(0, 4, words, np.uint64)  # many ties
    queries = generator.integers(0, 4, (count, words), np.uint64)
    chosen = mask(generator, n, kind)
    allowed = None if chosen is None else frozen(np.flatnonzero(chosen).astype(np.int64))
    total = n if allowed is None else len(allowed)
    start, stop = (0, total) if whole else sorted(generator.integers(0, total + 1, 2).tolist())
    assert_nearest(*frozen(queries, sketches), allowed, start, stop, size)


@pytest.mark.parametrize("words", [6, 7])
@pytest.mark.parametrize("order", ["random", "nearer and nearer", "farther and farther", "two distances"])
@pytest.mark.parametrize("listed", [False, True])
def test_shortlist_of_more_rows_than_are_held(words, order, listed):
    generator = rng(9)
    n = 3 * ROOM
    sketches = generator.integers(0, 2**64, (n, words), np.uint64)
    sketches[123] = ~sketches[5]
    queries = sketches[[5, 700]].copy()
    if order == "two distances":
        sketches[:] = queries[0]
        sketches[generator.random(n) < 0.5, 0] ^= np.uint64(1)
    elif order != "random":
        distances = np.array(oracle.hamming(queries[0].tolist(), sketches.tolist()))
        by_distance = np.argsort(distances, kind="stable")
        sketches = np.ascontiguousarray(sketches[by_distance if order.startswith("farther") else by_distance[::-1]])
    allowed = np.flatnonzero(generator.random(n) < 0.9).astype(np.int64) if listed else None
    stop = n if allowed is None else len(allowed)
    assert_nearest(queries, sketches, allowed, 17, stop, 50)


def test_a_sample_that_misleads_changes_nothing():
    # Every sixth block is near: the sample is of these alone, and promises more near rows than there are.
    blocks = np.zeros((768, 6, 16), np.uint64)
    blocks[np.arange(768) % 6 > 0] = rng(2).integers(0, 2**64, (640, 6, 16), np.uint64)
    sketches = np.ascontiguousarray(blocks.transpose(0, 2, 1)).reshape(-1, 6)
    assert kernels.sketch_blocks(sketches).tobytes() == blocks.tobytes()
    for allowed in (None, np.arange(5, len(sketches), 2)):
        stop = len(sketches) if allowed is None else len(allowed)
        assert_nearest(np.zeros((2, 6), np.uint64), sketches, allowed, 0, stop, stop // 4)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2, 0.1, 0.01])
def test_shortlist_of_a_share_of_the_rows(share):
    generator = rng(3)
    n = 20_000
    sketches = generator.integers(0, 2**64, (n, 6), np.uint64)
    allowed = np.flatnonzero(generator.random(n) < share).astype(np.int64)
    assert_nearest(sketches[:2].copy(), sketches, allowed, 3, len(allowed) - 1, 40)
    out_of_order = generator.permutation(allowed)
    rows, distances = kernels.hamming_shortlist(
        sketches[:1].copy(), kernels.sketch_blocks(sketches), out_of_order, 0, len(allowed), 40
    )
    truth = np.array(oracle.hamming(sketches[0].tolist(), sketches[out_of_order].tolist()))
    wanted = np.argsort(truth, kind="stable")[:40]
    assert rows[0].tolist() == out_of_order[wanted].tolist()
    assert distances[0].tolist() == truth[wanted].tolist()


@pytest.mark.parametrize("n", [ROOM + 2, ROOM + 3, ROOM + 4])
def test_shortlist_of_as_many_rows_as_are_held(n):
    # All alike: every row is as near as the limit, the lowest win.
    rows, distances = shortlist(np.ones((1, 6), np.uint64), np.ones((n, 6), np.uint64), 3)
    assert (rows.tolist(), distances.tolist()) == ([[0, 1, 2]], [[0, 0, 0]])
    # The nearest come last.
    sketches = np.ones((n, 6), np.uint64)
    sketches[-2:] = 0
    rows, distances = shortlist(np.zeros((1, 6), np.uint64), sketches, 3)
    assert (rows.tolist(), distances.tolist()) == ([[n - 2, n - 1, 0]], [[0, 0, 6]])


def test_the_greatest_distance_is_counted_too():
    sketches = np.full((4, 1023), 2**64 - 1, np.uint64)
    rows, distances = shortlist(np.zeros((1, 1023), np.uint64), sketches, 2)
    assert (rows.tolist(), distances.tolist()) == ([[0, 1]], [[65472, 65472]])


def test_a_numpy_without_popcount_counts_by_table(monkeypatch):
    words = rng(4).integers(0, 2**64, (50, 6), np.uint64)
    wanted = shortlist(words[:2].copy(), words, 50)
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    for got, one in zip(shortlist(words[:2].copy(), words, 50), wanted, strict=True):
        assert got.tolist() == one.tolist()
