from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import strategies as st

import recollect_kernels as kernels
from tests.kernels import oracle
from tests.kernels.cases import frozen, hamming_by_blocks, holds, mask, masks, rng, seeds, vectors

pytestmark = pytest.mark.usefixtures("backend")


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


@holds(
    seed=seeds,
    n=st.sampled_from([0, 1, 7, 8, 9, 130]),
    words=st.sampled_from([1, 2, 6, 8, 64]),
    m=st.sampled_from([1, 3, 64, 1000]),
    kind=masks,
    blocks=st.sampled_from([1, 2, 5]),
)
def test_shortlist_is_the_nearest_rows_however_they_are_blocked(seed, n, words, m, kind, blocks):
    generator = rng(seed)
    sketches = generator.integers(0, 2**64, (n, words), np.uint64)
    sketches[generator.random(n) < 0.5] = generator.integers(0, 4, words, np.uint64)  # many ties
    query = generator.integers(0, 4, words, np.uint64)
    allowed = mask(generator, n, kind)
    frozen(query, sketches)
    distances = oracle.hamming(query, sketches)
    wanted = oracle.nearest(distances, allowed, m)
    got = kernels.hamming_shortlist(query, sketches, allowed, m)
    assert got.dtype == np.int64
    assert got.tolist() == wanted
    rows, out = hamming_by_blocks(query, sketches, allowed, m, blocks)
    assert rows.tolist() == wanted
    assert out.tolist() == [
        distance if allowed is None or allowed[row] else 65535 for row, distance in enumerate(distances)
    ]


def test_the_histogram_counts_allowed_rows_and_is_added_to():
    sketches = np.array([[0], [1], [3], [3]], np.uint64)
    histogram = np.zeros(66, np.int64)
    out = np.empty(4, np.uint16)
    for _ in range(2):
        kernels.hamming_distances(
            np.zeros(1, np.uint64), sketches, np.array([1, 0, 1, 1], np.uint8), 0, 4, out, histogram
        )
    assert out.tolist() == [0, 65535, 2, 2]
    assert {i: int(c) for i, c in enumerate(histogram) if c} == {0: 2, 2: 4}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("words", [2, 6])
def test_masked_out_rows_are_not_counted_however_many_they_are(share, words):
    generator = rng(7)
    n = 1000
    sketches = generator.integers(0, 2**64, (n, words), np.uint64)
    allowed = (generator.random(n) < share).astype(np.uint8)
    out, histogram = np.empty(n, np.uint16), np.zeros(64 * words + 2, np.int64)
    kernels.hamming_distances(sketches[0], sketches, allowed, 0, n, out, histogram)
    distances = np.array(oracle.hamming(sketches[0], sketches))
    assert histogram.tolist() == np.bincount(distances[allowed == 1], minlength=64 * words + 2).tolist()
    assert out.tolist() == np.where(allowed == 1, distances, 65535).tolist()
    wanted = oracle.nearest(distances, allowed, n)
    assert kernels.hamming_shortlist(sketches[0], sketches, allowed, n).tolist() == wanted


def test_a_pool_of_threads_answers_as_one():
    generator = rng(6)
    sketches = generator.integers(0, 2**64, (50_000, 6), np.uint64)
    out = np.empty(50_000, np.uint16)

    def block(start):
        histogram = np.zeros(386, np.int64)
        kernels.hamming_distances(sketches[7], sketches, None, start, start + 2_000, out, histogram)
        return histogram

    with ThreadPoolExecutor(4) as pool:
        histogram = sum(pool.map(block, range(0, 50_000, 2_000)))
    wanted = kernels.hamming_shortlist(sketches[7], sketches, None, 300)
    assert kernels.hamming_select(out, None, histogram, 300).tolist() == wanted.tolist()


@pytest.mark.parametrize("words", [6, 7])
def test_many_rows_with_every_distance(words):
    generator = rng(9)
    sketches = generator.integers(0, 2**64, (20_000, words), np.uint64)
    sketches[123] = ~sketches[5]
    for kind in ("none", "half", "few"):
        allowed = mask(generator, 20_000, kind)
        distances = np.bitwise_count(sketches ^ sketches[5]).sum(axis=1) if hasattr(np, "bitwise_count") else None
        if distances is None:
            distances = np.array(oracle.hamming(sketches[5], sketches))
        got = kernels.hamming_shortlist(sketches[5], sketches, allowed, 400)
        assert got.tolist() == oracle.nearest(distances, allowed, 400)


def test_a_numpy_without_popcount_counts_by_table(monkeypatch):
    words = rng(4).integers(0, 2**64, (50, 6), np.uint64)
    wanted = kernels.hamming_shortlist(words[0], words, None, 50)
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert kernels.hamming_shortlist(words[0], words, None, 50).tolist() == wanted.tolist()
