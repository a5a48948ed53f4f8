from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels.arguments import WordSlices
from recallite_kernels.python_backend.lexical import coverage, fill_bm25
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import (
    alone,
    assert_ranked,
    forward,
    freeze,
    frozen,
    holds,
    mask,
    masks,
    plain,
    postings,
    rng,
    seeds,
)

pytestmark = pytest.mark.usefixtures("backend")
documents = st.sampled_from([0, 1, 2, 40, 150])
terms = st.sampled_from([0, 1, 2, 5])


queries = st.lists(terms, max_size=3)


@holds(
    seed=seeds,
    n=documents,
    asked=queries,
    slices=st.sampled_from([1, 3]),
    k=st.sampled_from([1, 3, 20, 500]),
    kind=masks,
)
def test_bm25_top_k_is_the_definition_and_leaves_the_scratch_clear(seed, n, asked, slices, k, kind):
    generator = rng(seed)
    query = freeze(postings(generator, n, asked, slices))
    allowed = mask(generator, n, kind)
    scratch = np.zeros(n, np.float32)
    rows, scores, counts = kernels.bm25_top_k(query, mask=allowed, scratch=scratch, k=k)
    assert not scratch.any()
    assert rows.shape == scores.shape == (len(asked), min(k, n))
    assert counts.dtype == np.int64
    for one, truth in enumerate(oracle.bm25(*query)):
        assert_ranked(rows[one, : counts[one]], scores[one, : counts[one]], truth, allowed, k, least=0.0)


@pytest.mark.parametrize("kind", ["none", "half", "few"])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_bm25_top_k_of_many_documents(kind, k):
    # Common terms and terms that cannot lift a document into the best k on their own, in two queries.
    generator = rng(k)
    n = 100_000
    query = postings(generator, n, [4], 2, most=0.02)
    common = postings(generator, n, [2], 3, most=0.8)
    weights = np.concatenate([query.idf + 3, np.full(6, 0.25, np.float32)]).astype(np.float32)
    starts = np.concatenate([query.starts, common.starts + len(query.rows)])
    ends = np.concatenate([query.ends, common.ends + len(query.rows)])
    query = query._replace(
        rows=np.concatenate([query.rows, common.rows]),
        counts=np.concatenate([query.counts, common.counts]),
        starts=np.concatenate([starts, starts[::-1]]),
        ends=np.concatenate([ends, ends[::-1]]),
        idf=np.concatenate([weights, weights[::-1]]),
        slice_offsets=np.array([0, 14, 28]),
    )
    allowed = mask(generator, n, kind)
    scratch = np.zeros(n, np.float32)
    rows, scores, counts = kernels.bm25_top_k(freeze(query), mask=allowed, scratch=scratch, k=k)
    assert not scratch.any()
    for one in range(2):
        truth = np.full(n, np.nan, np.float32)
        fill_bm25(alone(query, one), np.arange(n), truth)
        if allowed is not None:
            truth[allowed == 0] = 0
        order = np.lexsort((np.arange(n), -truth))[:k]
        assert counts[one] == k
        np.testing.assert_allclose(scores[one], truth[order], rtol=1e-6)
        swapped = np.flatnonzero(rows[one] != order)
        # The two kernels may round differently: only what is all but a tie may stand elsewhere.
        np.testing.assert_allclose(truth[rows[one, swapped]], truth[order[swapped]], rtol=1e-6)


def test_documents_with_equal_scores_come_in_ascending_order():
    # Documents alike, spread over segments and terms in any order: exact ties.
    n, stride = 90_000, 3
    held = np.arange(0, n, stride, dtype=np.int32)
    rows = np.concatenate([held, held[:1000], held[1000:]])
    query = kernels.Postings(
        rows=rows,
        counts=np.ones(len(rows), np.uint8),
        starts=np.array([0, len(held), len(held) + 1000]),
        ends=np.array([len(held), len(held) + 1000, len(rows)]),
        idf=np.array([0.3, 1.7, 1.7], np.float32),
        slice_offsets=np.array([0, 3]),
        lengths=np.full(n, 7, np.float32),
        average_length=9.0,
        k1=1.2,
        b=0.75,
    )
    for k in (1, 5, 2000):
        found, scores, _ = kernels.bm25_top_k(query, mask=None, scratch=np.zeros(n, np.float32), k=k)
        assert found[0].tolist() == held[:k].tolist()
        assert len(set(scores[0].tolist())) == 1


def test_a_lower_row_met_later_wins_the_tie():
    query = kernels.Postings(
        rows=np.concatenate([np.arange(50, 100), np.arange(50)]).astype(np.int32),
        counts=np.ones(100, np.uint8),
        starts=np.array([0, 50]),
        ends=np.array([50, 100]),
        idf=np.full(2, 1.5, np.float32),
        slice_offsets=np.array([0, 2]),
        lengths=np.full(100, 7, np.float32),
        average_length=9.0,
        k1=1.2,
        b=0.75,
    )
    found, _, _ = kernels.bm25_top_k(query, mask=None, scratch=np.zeros(100, np.float32), k=10)
    assert found.tolist() == [list(range(10))]


@holds(seed=seeds)
def test_segments_in_any_order_never_break_a_tie(seed):
    # Every document holds every term; each term lists the segments in an order of its own.
    generator = rng(seed)
    n, terms = 30, 5
    segments = np.split(np.arange(n, dtype=np.int32), [7, 16])
    weights, tf = generator.random(terms).astype(np.float32) * 9, generator.integers(1, 9, terms)
    order = [(segment, term) for term in generator.permutation(terms) for segment in generator.permutation(3)]
    ends = np.cumsum([len(segments[segment]) for segment, _ in order])
    query = kernels.Postings(
        rows=np.concatenate([segments[segment] for segment, _ in order]),
        counts=np.concatenate([np.full(len(segments[s]), tf[term], np.uint8) for s, term in order]),
        starts=np.concatenate([[0], ends[:-1]]).astype(np.int64),
        ends=ends.astype(np.int64),
        idf=np.array([weights[term] for _, term in order], np.float32),
        slice_offsets=np.array([0, len(order)]),
        lengths=np.full(n, 11, np.float32),
        average_length=9.0,
        k1=1.2,
        b=0.75,
    )
    found, scores, _ = kernels.bm25_top_k(query, mask=None, scratch=np.zeros(n, np.float32), k=n)
    assert found.tolist() == [list(range(n))]
    assert len(set(scores[0].tolist())) == 1


@holds(seed=seeds, n=documents, t=terms, slices=st.sampled_from([1, 3]), known=st.sampled_from([0.0, 0.5, 1.0]))
def test_bm25_of_given_rows_fills_in_what_is_not_known(seed, n, t, slices, known):
    generator = rng(seed)
    query, rows = freeze(postings(generator, n, [t], slices)), np.flatnonzero(generator.random(n) < 0.3)
    before = np.where(generator.random(len(rows)) < known, -generator.random(len(rows)), np.nan).astype(np.float32)
    scores = before.copy()
    fill_bm25(query, frozen(rows), scores)
    (truth,) = oracle.bm25(*query)
    wanted = [truth[row] for row in rows]
    np.testing.assert_allclose(scores, np.where(np.isnan(before), wanted, before), rtol=1e-5, atol=1e-6)


@holds(seed=seeds, n=documents, t=terms, slices=st.sampled_from([1, 3]))
def test_coverage_is_the_idf_of_the_words_carried(seed, n, t, slices):
    generator = rng(seed)
    query, rows = postings(generator, n, [t], slices), np.flatnonzero(generator.random(n) < 0.3)
    words = WordSlices(
        query.rows, query.starts, query.ends, np.repeat(np.arange(t), slices),
        query.idf[::slices].copy(), generator.integers(0, 3, t).astype(np.uint8),
    )  # fmt: skip
    carried, contained = coverage(freeze(words), frozen(rows))
    assert (carried.dtype, contained.dtype) == (np.float64, np.uint8)
    assert (carried.T.tolist(), contained.tolist()) == oracle.word_coverage(*plain(words), rows)


@holds(seed=seeds, n=st.sampled_from([0, 1, 2, 40]), vocabulary=st.sampled_from([1, 20, 500]), first=st.integers(0, 9))
def test_invert_turns_documents_into_postings(seed, n, vocabulary, first):
    term_ids, counts, offsets = frozen(*forward(rng(seed), n, vocabulary, 15))
    got = kernels.invert(term_ids, counts, offsets, first)
    assert [part.dtype.name for part in got] == ["int32", "int64", "int32", "uint8"]
    assert [part.tolist() for part in got] == [
        list(map(int, part)) for part in oracle.invert(term_ids, counts, offsets, first)
    ]
    out = np.empty(len(term_ids), np.int32), np.empty(len(term_ids), np.uint8)
    kernels.invert(term_ids, counts, offsets, first, out)
    assert [part.tolist() for part in out] == [part.tolist() for part in got[2:]]


def test_invert_of_ids_far_apart_takes_no_memory_for_the_gap():
    terms, starts, rows, counts = kernels.invert(
        np.array([2**31 - 1, 0], np.int32), np.array([3, 4], np.uint8), np.array([0, 1, 2]), 10
    )
    assert (terms.tolist(), starts.tolist()) == ([0, 2**31 - 1], [0, 1, 2])
    assert (rows.tolist(), counts.tolist()) == ([11, 10], [4, 3])


def test_inverted_documents_are_found_by_their_words():
    generator = rng(8)
    term_ids, counts, offsets = forward(generator, 60, 40, 20)
    terms, starts, rows, inverted = kernels.invert(term_ids, counts, offsets, 0)
    lengths = np.maximum(np.diff(offsets), 1).astype(np.float32)
    at = np.array([1, 5, 9])
    words = np.array([0, 1, 2])
    idf = np.array([1.0, 2.0, 4.0], np.float32)
    query = kernels.Postings(rows, inverted, starts[at], starts[at + 1], idf, np.array([0, 3]), lengths, 9.0, 1.2, 0.75)
    found = kernels.bm25_top_k(query, None, np.zeros(60, np.float32), 60)
    slices = WordSlices(rows, starts[at], starts[at + 1], words, idf, np.array([0, 1, 2], np.uint8))
    (carried, content, named), _ = coverage(slices, np.arange(60))
    for document in range(60):
        held = set(term_ids[offsets[document] : offsets[document + 1]].tolist())
        met = [int(terms[number]) in held for number in at]
        assert (carried[document], content[document], named[document]) == (met @ idf, met[1] * 2.0, met[2] * 4.0)
    assert sorted(found[0][0, : found[2][0]].tolist()) == np.flatnonzero(carried).tolist()


@pytest.mark.parametrize(
    ("tf", "length", "k1", "b", "wanted"),
    [
        (1, 10, 1.2, 0.75, 2.0),  # an average document with the term once scores its idf
        (2, 10, 1.2, 0.75, 2.75),  # 2 * 2 * 2.2 / (2 + 1.2)
        (1, 20, 1.2, 0.75, 4.4 / 3.1),  # twice as long: 1 + 1.2 * (0.25 + 1.5)
        (3, 20, 1.2, 0.0, 13.2 / 4.2),  # b = 0 ignores length
        (5, 10, 0.0, 0.75, 2.0),  # k1 = 0 ignores frequency
    ],
)
def test_worked_examples_of_bm25(tf, length, k1, b, wanted):
    query = kernels.Postings(
        rows=np.zeros(1, np.int32),
        counts=np.array([tf], np.uint8),
        starts=np.array([0]),
        ends=np.array([1]),
        idf=np.array([2], np.float32),
        slice_offsets=np.array([0, 1]),
        lengths=np.array([length], np.float32),
        average_length=10.0,
        k1=k1,
        b=b,
    )
    _, scores, _ = kernels.bm25_top_k(query, mask=None, scratch=np.zeros(1, np.float32), k=1)
    looked_up = np.full(1, np.nan, np.float32)
    fill_bm25(query, np.array([0]), looked_up)
    assert scores[0, 0] == pytest.approx(wanted, rel=1e-6)
    assert looked_up[0] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("allowed", [None, np.zeros(50, np.uint8)])
def test_a_length_that_is_not_finite_is_refused_with_the_scratch_clear(allowed):
    # In the second of three queries: the others are cleared too.
    query = postings(rng(1), 50, [0])
    everyone = np.arange(50, dtype=np.int32)
    query = query._replace(
        rows=everyone, counts=np.ones(50, np.uint8), idf=np.ones(3, np.float32), starts=np.array([0, 5, 9]),
        ends=np.array([5, 50, 50]), slice_offsets=np.arange(4),
    )  # fmt: skip
    query.lengths[7] = np.nan
    scratch = np.zeros(50, np.float32)
    with pytest.raises(kernels.KernelError, match="lengths"):
        kernels.bm25_top_k(query, mask=allowed, scratch=scratch, k=5)
    assert not scratch.any()
