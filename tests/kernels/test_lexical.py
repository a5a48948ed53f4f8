from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recollect_kernels as kernels
from tests.kernels import oracle
from tests.kernels.cases import assert_ranked, forward, frozen, holds, mask, masks, postings, rng, seeds

pytestmark = pytest.mark.usefixtures("backend")
documents = st.sampled_from([0, 1, 2, 40, 150])
terms = st.sampled_from([0, 1, 2, 5])


def freeze(query):
    for value in query.values():
        if isinstance(value, np.ndarray):
            frozen(value)
    return query


@holds(seed=seeds, n=documents, t=terms, slices=st.sampled_from([1, 3]))
def test_bm25_scores_every_document(seed, n, t, slices):
    query = freeze(postings(rng(seed), n, t, slices))
    out = np.zeros(n, np.float32)
    kernels.bm25_scores(**query, out=out)
    np.testing.assert_allclose(out, oracle.bm25(*query.values()), rtol=1e-5, atol=1e-6)


@holds(seed=seeds, n=documents, t=terms, slices=st.sampled_from([1, 3]), k=st.sampled_from([1, 3, 20, 500]), kind=masks)
def test_bm25_top_k_is_the_definition_and_leaves_the_scratch_clear(seed, n, t, slices, k, kind):
    generator = rng(seed)
    query = freeze(postings(generator, n, t, slices))
    allowed = mask(generator, n, kind)
    scratch = np.zeros(n, np.float32)
    rows, scores = kernels.bm25_top_k(**query, mask=allowed, scratch=scratch, k=k)
    assert not scratch.any()
    assert_ranked(rows, scores, oracle.bm25(*query.values()), allowed, k, least=0.0)


@pytest.mark.parametrize("kind", ["none", "half", "few"])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_bm25_top_k_of_many_documents(kind, k):
    # Wide enough for every block and for terms that cannot lift a document into the best k on their own.
    generator = rng(k)
    n = 200_000
    query = postings(generator, n, 4, 2, most=0.02)
    common = postings(generator, n, 2, 3, most=0.8)
    query["starts"] = np.concatenate([query["starts"], common["starts"] + len(query["rows"])])
    query["ends"] = np.concatenate([query["ends"], common["ends"] + len(query["rows"])])
    query["rows"] = np.concatenate([query["rows"], common["rows"]])
    query["counts"] = np.concatenate([query["counts"], common["counts"]])
    query["idf"] = np.concatenate([query["idf"] + 3, np.full(6, 0.25, np.float32)]).astype(np.float32)
    allowed = mask(generator, n, kind)
    scratch, all_scores = np.zeros(n, np.float32), np.zeros(n, np.float32)
    rows, scores = kernels.bm25_top_k(**freeze(query), mask=allowed, scratch=scratch, k=k)
    assert not scratch.any()
    kernels.bm25_scores(**query, out=all_scores)
    if allowed is not None:
        all_scores[allowed == 0] = 0
    order = np.lexsort((np.arange(n), -all_scores))[:k]
    assert rows.tolist() == order.tolist()
    np.testing.assert_allclose(scores, all_scores[order], rtol=1e-6)


def test_documents_with_equal_scores_come_in_ascending_order():
    # Documents alike, spread over segments and terms in any order: exact ties.
    n, stride = 90_000, 3
    held = np.arange(0, n, stride, dtype=np.int32)
    rows = np.concatenate([held, held[:1000], held[1000:]])
    query = {
        "rows": rows,
        "counts": np.ones(len(rows), np.uint8),
        "starts": np.array([0, len(held), len(held) + 1000]),
        "ends": np.array([len(held), len(held) + 1000, len(rows)]),
        "idf": np.array([0.3, 1.7, 1.7], np.float32),
        "lengths": np.full(n, 7, np.float32),
        "average_length": 9.0,
        "k1": 1.2,
        "b": 0.75,
    }
    for k in (1, 5, 2000):
        found, scores = kernels.bm25_top_k(**query, mask=None, scratch=np.zeros(n, np.float32), k=k)
        assert found.tolist() == held[:k].tolist()
        assert len(set(scores.tolist())) == 1


def test_a_lower_row_met_later_wins_the_tie():
    query = {
        "rows": np.concatenate([np.arange(50, 100), np.arange(50)]).astype(np.int32),
        "counts": np.ones(100, np.uint8),
        "starts": np.array([0, 50]),
        "ends": np.array([50, 100]),
        "idf": np.full(2, 1.5, np.float32),
        "lengths": np.full(100, 7, np.float32),
        "average_length": 9.0,
        "k1": 1.2,
        "b": 0.75,
    }
    found, _ = kernels.bm25_top_k(**query, mask=None, scratch=np.zeros(100, np.float32), k=10)
    assert found.tolist() == list(range(10))


@holds(seed=seeds)
def test_the_order_of_slices_never_breaks_a_tie(seed):
    # Every document holds every term; segments list the terms in orders of their own.
    generator = rng(seed)
    n, terms = 30, 5
    segments = np.split(np.arange(n, dtype=np.int32), [7, 16])
    weights, tf = generator.random(terms).astype(np.float32) * 9, generator.integers(1, 9, terms)
    order = [(segment, term) for segment in range(3) for term in generator.permutation(terms)]
    ends = np.cumsum([len(segments[segment]) for segment, _ in order])
    query = {
        "rows": np.concatenate([segments[segment] for segment, _ in order]),
        "counts": np.concatenate([np.full(len(segments[s]), tf[term], np.uint8) for s, term in order]),
        "starts": np.concatenate([[0], ends[:-1]]).astype(np.int64),
        "ends": ends.astype(np.int64),
        "idf": np.array([weights[term] for _, term in order], np.float32),
        "lengths": np.full(n, 11, np.float32),
        "average_length": 9.0,
        "k1": 1.2,
        "b": 0.75,
    }
    found, scores = kernels.bm25_top_k(**query, mask=None, scratch=np.zeros(n, np.float32), k=n)
    assert found.tolist() == list(range(n))
    assert len(set(scores.tolist())) == 1


@holds(seed=seeds, n=documents, t=terms, slices=st.sampled_from([1, 3]), m=st.sampled_from([0, 1, 30]))
def test_bm25_for_rows_looks_candidates_up(seed, n, t, slices, m):
    generator = rng(seed)
    query = freeze(postings(generator, n, t, slices))
    candidates = generator.integers(0, n, m) if n else np.empty(0, np.int64)
    got = kernels.bm25_for_rows(**query, candidates=frozen(candidates))
    assert got.dtype == np.float32
    truth = oracle.bm25(*query.values())
    np.testing.assert_allclose(got, [truth[row] for row in candidates], rtol=1e-5, atol=1e-6)


@holds(seed=seeds, n=st.sampled_from([0, 1, 2, 40]), q=terms)
def test_scan_forward_scores_documents_outside_the_postings(seed, n, q):
    generator = rng(seed)
    term_ids, counts, offsets = forward(generator, n, 30, 12)
    lengths = generator.integers(1, 30, n).astype(np.float32)
    query_terms = generator.integers(0, 33, q).astype(np.int32)
    idf = generator.random(q).astype(np.float32) * 5
    arguments = frozen(term_ids, counts, offsets, query_terms, idf, lengths)
    got = kernels.scan_forward(*arguments, 11.5, 1.2, 0.75)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, oracle.bm25_forward(*arguments, 11.5, 1.2, 0.75), rtol=1e-5, atol=1e-6)


@holds(seed=seeds, n=st.sampled_from([0, 1, 2, 40]), vocabulary=st.sampled_from([1, 20, 500]), first=st.integers(0, 9))
def test_invert_turns_documents_into_postings(seed, n, vocabulary, first):
    term_ids, counts, offsets = frozen(*forward(rng(seed), n, vocabulary, 15))
    got = kernels.invert(term_ids, counts, offsets, first)
    assert [part.dtype.name for part in got] == ["int32", "int64", "int32", "uint8"]
    assert [part.tolist() for part in got] == [
        list(map(int, part)) for part in oracle.invert(term_ids, counts, offsets, first)
    ]


def test_invert_of_ids_far_apart_takes_no_memory_for_the_gap():
    terms, starts, rows, counts = kernels.invert(
        np.array([2**31 - 1, 0], np.int32), np.array([3, 4], np.uint8), np.array([0, 1, 2]), 10
    )
    assert (terms.tolist(), starts.tolist()) == ([0, 2**31 - 1], [0, 1, 2])
    assert (rows.tolist(), counts.tolist()) == ([11, 10], [4, 3])


def test_postings_and_forward_lists_score_alike():
    generator = rng(8)
    term_ids, counts, offsets = forward(generator, 60, 40, 20)
    lengths = np.maximum(np.diff(offsets), 1).astype(np.float32)
    terms, starts, rows, inverted = kernels.invert(term_ids, counts, offsets, 0)
    asked = terms[[1, 5, 9]]
    idf = np.array([1.0, 2.0, 3.0], np.float32)
    out = np.zeros(60, np.float32)
    at = np.searchsorted(terms, asked)
    kernels.bm25_scores(rows, inverted, starts[at], starts[at + 1], idf, lengths, 9.0, 1.2, 0.75, out)
    np.testing.assert_allclose(
        kernels.scan_forward(term_ids, counts, offsets, asked, idf, lengths, 9.0, 1.2, 0.75), out, rtol=1e-5
    )


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
    out = np.zeros(1, np.float32)
    one = {"starts": np.array([0]), "ends": np.array([1]), "idf": np.array([2], np.float32)}
    kernels.bm25_scores(
        np.zeros(1, np.int32), np.array([tf], np.uint8), **one, lengths=np.array([length], np.float32),
        average_length=10.0, k1=k1, b=b, out=out,
    )  # fmt: skip
    assert out[0] == pytest.approx(wanted, rel=1e-6)


def test_a_length_that_is_not_finite_is_refused_with_the_scratch_clear():
    query = postings(rng(1), 50, 3)
    everyone = np.arange(50, dtype=np.int32)
    query.update(rows=everyone, counts=np.ones(50, np.uint8), starts=np.array([0]), ends=np.array([50]))
    query["idf"] = np.ones(1, np.float32)
    query["lengths"][7] = np.nan
    scratch = np.zeros(50, np.float32)
    with pytest.raises(kernels.KernelError, match="lengths"):
        kernels.bm25_top_k(**query, mask=None, scratch=scratch, k=5)
    assert not scratch.any()
