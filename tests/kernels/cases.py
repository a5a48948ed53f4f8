"""Data for the kernel tests, seeded, and the comparisons that allow for float32."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recollect_kernels as kernels
from tests.kernels import oracle

TOLERANCE = 1e-5
seeds = st.integers(0, 2**32 - 1)
_examples = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def holds(**strategies):
    """`given` with settings of its own: the same examples in every run, whatever profile is loaded."""
    return lambda test: _examples(given(**strategies)(test))


def rng(seed):
    return np.random.default_rng(seed)


def frozen(*arrays):
    for array in arrays:
        array.flags.writeable = False
    return arrays if len(arrays) > 1 else arrays[0]


def vectors(generator, n, d, zeros=True, duplicates=True):
    """Rows with zero vectors and exact duplicates among them."""
    out = generator.standard_normal((n, d)).astype(np.float32)
    if n and zeros:
        out[generator.random(n) < 0.1] = 0
    if n > 1 and duplicates:
        twins = np.flatnonzero(generator.random(n) < 0.2)
        out[twins] = out[generator.integers(0, n, len(twins))]
    return out


def mask(generator, n, kind):
    if kind == "none":
        return None
    share = {"all": 1.0, "half": 0.5, "few": 0.05, "nothing": 0.0}[kind]
    return (generator.random(n) < share).astype(np.uint8)


masks = st.sampled_from(["none", "all", "half", "few", "nothing"])


def postings(generator, n, terms, slices_per_term=1, most=0.6):
    """Query slices over shared buffers, with rubbish before, between and after them."""
    rows, counts, starts, ends, idf = [], [], [], [], []
    at = 0

    def put(some):
        nonlocal at
        rows.append(np.asarray(some, np.int32))
        counts.append(generator.integers(1, 6, len(some)).astype(np.uint8))
        at += len(some)

    put(generator.integers(0, 2**31 - 1, 3))
    for _ in range(terms):
        weight = float(generator.choice([0.0, 0.5, 1.0, 2.5, 7.0], p=[0.05, 0.25, 0.25, 0.25, 0.2]))
        held = np.flatnonzero(generator.random(n) < generator.random() * most)
        cuts = np.sort(generator.integers(0, len(held) + 1, slices_per_term - 1))
        for part in np.split(held, cuts):
            starts.append(at)
            put(part)
            ends.append(at)
            idf.append(weight)
            put(generator.integers(0, 2**31 - 1, 2))
    lengths = generator.integers(1, 40, n).astype(np.float32)
    return {
        "rows": np.concatenate(rows),
        "counts": np.concatenate(counts),
        "starts": np.asarray(starts, np.int64),
        "ends": np.asarray(ends, np.int64),
        "idf": np.asarray(idf, np.float32),
        "lengths": lengths,
        "average_length": float(lengths.mean()) if n else 1.0,
        "k1": 1.2,
        "b": 0.75,
    }


def forward(generator, documents, vocabulary, longest):
    """Forward lists: term ids, counts, offsets; no term twice in a document."""
    sizes = generator.integers(0, min(longest, vocabulary) + 1, documents)
    lists = [np.sort(generator.choice(vocabulary, size, replace=False)) for size in sizes]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    term_ids = np.concatenate([*lists, []]).astype(np.int32)
    return term_ids, generator.integers(1, 9, len(term_ids)).astype(np.uint8), offsets


def tokens(generator, texts, vocabulary, d, longest):
    """Codes, scales, token ids and offsets; some texts have no token, some tokens come twice."""
    codes = generator.integers(-127, 128, (vocabulary, d)).astype(np.int8)
    scales = (generator.random(vocabulary) + 0.01).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(generator.integers(0, longest + 1, texts))]).astype(np.int64)
    return codes, scales, generator.integers(0, vocabulary, offsets[-1]), offsets


def hamming_by_blocks(query, sketches, allowed, m, blocks):
    """What a pool of threads does, one block after the other."""
    n, words = sketches.shape
    out = np.empty(n, np.uint16)
    parts = []
    for block in range(blocks):
        parts.append(np.zeros(64 * words + 2, np.int64))
        start, stop = n * block // blocks, n * (block + 1) // blocks
        kernels.hamming_distances(query, sketches, allowed, start, stop, out, parts[-1])
    return kernels.hamming_select(out, allowed, np.sum(parts, axis=0), m), out


def assert_ranked(rows, scores, truth, allowed, k, least=None):
    """Rows and scores are the best k of `truth`, exactly wherever two scores differ by more than the tolerance."""
    assert rows.dtype == np.int64
    assert scores.dtype == np.float32
    candidates = [i for i in range(len(truth)) if allowed is None or allowed[i]]
    if least is not None:
        candidates = [i for i in candidates if truth[i] > least]
    assert len(rows) == len(scores) == min(k, len(candidates))
    assert len(set(rows.tolist())) == len(rows)
    assert set(rows.tolist()) <= set(candidates)
    for row, score in zip(rows, scores, strict=True):
        assert abs(score - truth[row]) <= TOLERANCE * max(1.0, abs(truth[row]))
    for i in range(len(rows) - 1):
        assert scores[i] > scores[i + 1] or (scores[i] == scores[i + 1] and rows[i] < rows[i + 1])
    best = oracle.ranked(truth, [i in set(candidates) for i in range(len(truth))], k)
    for got, wanted in zip(rows, best, strict=True):
        assert got == wanted or abs(truth[got] - truth[wanted]) <= TOLERANCE * max(1.0, abs(truth[wanted]))
