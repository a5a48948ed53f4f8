"""Data for the kernel tests, seeded, and the comparisons that allow for float32."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels.arguments import Statements, Weighed, WordSlices
from tests.limits import examples
from tests.unit.kernels import oracle

TOLERANCE = 1e-5
seeds = st.integers(0, 2**32 - 1)
_examples = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=examples(100),
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
    """Queries of so many terms each over shared buffers, with rubbish before, between and after the slices."""
    rows, counts, starts, ends, weights = [], [], [], [], []
    at = 0

    def put(some):
        nonlocal at
        rows.append(np.asarray(some, np.int32))
        counts.append(generator.integers(1, 6, len(some)).astype(np.uint8))
        at += len(some)

    put(generator.integers(0, 2**31 - 1, 3))
    # Queries share terms; none asks for one twice.
    known = max(terms, default=0) + len(terms) // 2
    for _ in range(known):
        weights.append(generator.choice([0.0, 0.5, 1.0, 2.5, 7.0], p=[0.05, 0.25, 0.25, 0.25, 0.2]))
        held = np.flatnonzero(generator.random(n) < generator.random() * most)
        cuts = np.sort(generator.integers(0, len(held) + 1, slices_per_term - 1))
        for part in np.split(held, cuts):
            starts.append(at)
            put(part)
            ends.append(at)
            put(generator.integers(0, 2**31 - 1, 2))
    asked = [generator.choice(known, count, replace=False) for count in terms if count]
    words = np.concatenate([*asked, []]).astype(np.int64)
    slices = (words[:, None] * slices_per_term + np.arange(slices_per_term)).ravel()
    lengths = generator.integers(1, 40, n).astype(np.float32)
    return kernels.Postings(
        rows=np.concatenate(rows),
        counts=np.concatenate(counts),
        starts=np.array(starts, np.int64)[slices],
        ends=np.array(ends, np.int64)[slices],
        idf=np.repeat(np.array(weights, np.float32)[words], slices_per_term),
        slice_offsets=np.cumsum([0, *terms], dtype=np.int64) * slices_per_term,
        lengths=lengths,
        average_length=float(lengths.mean()) if n else 1.0,
        k1=1.2,
        b=0.75,
    )


def alone(query, place):
    """The postings of one of several queries."""
    part = slice(*query.slice_offsets[place : place + 2])
    offsets = np.array([0, part.stop - part.start])
    return query._replace(
        starts=query.starts[part], ends=query.ends[part], idf=query.idf[part], slice_offsets=offsets
    )  # fmt: skip


def forest(generator, trees, depth, features):
    """Complete trees; thresholds are whole numbers, and some are infinite, as those of shallow branches are."""
    size = trees, 2**depth - 1
    thresholds = generator.integers(-2, 3, size).astype(np.float64)
    thresholds[generator.random(size) < 0.1] = np.inf
    nodes = generator.integers(0, features, size).astype(np.uint8)
    return freeze(kernels.Forest(nodes, thresholds, generator.standard_normal((trees, 2**depth))))


def weighed(generator, candidates, hits, changed=None):
    """The arguments of `assess`: signals of candidates, records to weigh beside them, words and weights.

    Values come from a few numbers, so that the best is often there twice. `changed` are fields of the parameters.
    """
    signals, mine = (generator.integers(0, 5, (len(kernels.SIGNALS), count)) / 4.0 for count in (candidates, hits))
    for each in (signals, mine):
        each[kernels.SIGNALS.cosine] -= 0.5
    words = int(generator.integers(0, 5))
    some = postings(generator, 60, [words], slices_per_term=2)
    slices = WordSlices(
        some.rows, some.starts, some.ends, np.repeat(np.arange(words), 2),
        generator.random(words).astype(np.float32), generator.integers(0, 3, words).astype(np.uint8),
    )  # fmt: skip
    group = Weighed(
        generator.integers(0, 60, hits), mine, generator.integers(0, 100, hits).astype(np.float32),
        generator.integers(0, 500, hits).astype(np.float64), float(words), float(generator.integers(0, 10_000)),
    )  # fmt: skip
    kinds = len(kernels.EVIDENCE) + 1
    weights, word_weights = generator.standard_normal((2, kinds))
    parameters = kernels.RankParameters(0.6, 0.4, -1.0, 0, 0.4, 0.5, 1.0, 0.7, 0.8, 0, 90.0, 0.5, 0, 0.2)
    return (
        frozen(signals), freeze(group), freeze(slices), frozen(weights), frozen(word_weights),
        parameters._replace(**(changed or {})),
    )  # fmt: skip


def statements(generator, m, slots, frames):
    """Statements of candidates, often of the same few frames, with few values and moments."""
    stated, values = generator.integers(0, frames + 1, (m, slots)), generator.integers(0, 4, (m, slots))
    moments = generator.integers(0, 6, m)
    return freeze(Statements(stated.astype(np.uint32), values.astype(np.uint32), moments, generator.permutation(m)))


def freeze(group):
    """A group of arguments whose arrays cannot be written to."""
    for value in group:
        if isinstance(value, np.ndarray):
            frozen(value)
    return group


def plain(group):
    """A group of arguments with lists in place of arrays, as the oracle takes them."""
    return type(group)(*(value.tolist() if isinstance(value, np.ndarray) else value for value in group))


def graph(generator, n, links, allowed=None):
    """Chains within sources, some cut; lists of links, some of them removed."""
    sources = generator.choice(np.array([-(2**31), -2, -1, 0, 3, 64, 2**20, 2**31 - 1], np.int32), n)
    previous, following = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    order = generator.permutation(n)
    order = order[np.argsort(sources[order], kind="stable")]
    for before, after in pairwise(order):
        if sources[before] == sources[after] != -1 and generator.random() < 0.9:
            following[before], previous[after] = after, before
    links = links if n else 0
    heads, nexts = np.full(n, -1, np.int32), np.empty(links, np.int32)
    for link, row in enumerate(generator.integers(0, max(n, 1), links)):
        nexts[link], heads[row] = heads[row], link
    targets = generator.integers(0, max(n, 1), links).astype(np.int32)
    targets[generator.random(links) < 0.2] = -1
    strengths = generator.random(links).astype(np.float32)
    return kernels.Graph(
        previous, following, sources, heads, nexts, targets, strengths,
        np.empty(0, np.uint8) if allowed is None else allowed,
    )  # fmt: skip


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


def shortlist_by_blocks(queries, sketches, allowed, size, blocks, run=map):
    """What a pool of threads does: each block finds its own nearest, and they stand side by side."""
    n = len(sketches) if allowed is None else len(allowed)
    sketches = kernels.sketch_blocks(sketches)
    bounds = pairwise([n * block // blocks for block in range(blocks + 1)])
    found = list(run(lambda some: kernels.hamming_shortlist(queries, sketches, allowed, *some, size), bounds))
    return tuple(np.ascontiguousarray(np.concatenate(column, axis=1)) for column in zip(*found, strict=True))


def assert_ranked(rows, scores, truth, allowed, k, least=None):
    """Rows and scores are the best k of `truth`, exactly wherever two scores differ by more than the tolerance."""
    assert rows.dtype == np.int64
    assert scores.dtype == np.float32
    candidates = [i for i in range(len(truth)) if allowed is None or allowed[i]]
    if least is not None:
        candidates = [i for i in candidates if truth[i] > least]
    assert len(rows) == len(scores) == min(k, len(candidates))
    assert len(set(rows.tolist())) == len(rows)
    held = set(candidates)
    assert set(rows.tolist()) <= held
    for row, score in zip(rows, scores, strict=True):
        assert abs(score - truth[row]) <= TOLERANCE * max(1.0, abs(truth[row]))
    for i in range(len(rows) - 1):
        assert scores[i] > scores[i + 1] or (scores[i] == scores[i + 1] and rows[i] < rows[i + 1])
    best = oracle.ranked(truth, [i in held for i in range(len(truth))], k)
    for got, wanted in zip(rows, best, strict=True):
        assert got == wanted or abs(truth[got] - truth[wanted]) <= TOLERANCE * max(1.0, abs(truth[wanted]))
