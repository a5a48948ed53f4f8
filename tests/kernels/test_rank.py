"""The kernel of a recall is the other kernels, one after the other; those are held to the definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st

import recollect_kernels as kernels
from tests.kernels import oracle
from tests.kernels.cases import graph, holds, mask, postings, rng, seeds, vectors

pytestmark = pytest.mark.usefixtures("backend")
DAY_US = 86_400_000_000


def case(seed, queries=2, n=60, kind="none", with_codes=True, links=20):
    """Lists, codes, postings, graph and records of a small store."""
    generator = rng(seed)
    d = 16

    def best(k):
        rows = np.stack([generator.permutation(n)[:k] for _ in range(queries)]) if queries else np.empty((0, k), int)
        values = np.sort(generator.random((queries, k), np.float32))[:, ::-1]
        return rows.astype(np.int64), np.ascontiguousarray(values), generator.integers(0, k + 1, queries)

    lists = kernels.Lists(*best(min(9, n)), *best(min(7, n)))
    parts = generator.integers(0, 3, n).astype(np.int32)
    first_place = (np.cumsum(parts) - parts).astype(np.int64)
    codes, scales = kernels.quantize_int8(vectors(generator, int(parts.sum()), d))
    asked = vectors(generator, queries, d, zeros=False)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    ceilings = generator.random(queries).astype(np.float32)
    words = kernels.Postings(**postings(generator, n, [3] * queries))
    neighbours = graph(generator, n, links, mask(generator, n, kind))
    records = kernels.Records(
        generator.permutation(n).astype(np.int64), generator.integers(0, 400 * DAY_US, n),
        generator.random(n).astype(np.float32),
    )  # fmt: skip
    measured = kernels.Codes(asked, ceilings, first_place, parts, codes, scales) if with_codes else None
    return lists, measured, words, neighbours, records


def choices(**changed):
    return kernels.Choices(
        vector_weight=0.6, keyword_weight=0.4, rrf_k=-1.0, expanded=4, neighbor_weight=0.4, source_weight=0.5, near=1.0,
        far=0.7, lone_share=0.8, clock=400 * DAY_US, half_life_days=90.0, decay_floor=0.5, exponential=0,
        importance_weight=0.2,
    )._replace(**changed)  # fmt: skip


def composed(lists, codes, words, graph, records, chosen, look=None):
    """What `rank_candidates` says it is."""

    def measure(joined):
        offsets, rows, cosine, bm25 = joined
        unknown = np.isnan(cosine)
        if codes is None:
            cosine[unknown] = 0
        else:
            kernels.row_cosines(codes.queries, offsets, rows, *codes[2:], cosine)
            ceilings = np.repeat(codes.ceilings, np.diff(offsets))
            cosine[unknown] = np.minimum(cosine, ceilings)[unknown]
        kernels.bm25_for_rows(*words, offsets, rows, bm25)

    def fuse(joined):
        offsets, rows, cosine, bm25 = joined
        weights = np.array([chosen.vector_weight, chosen.keyword_weight])
        if chosen.rrf_k < 0:
            signals = np.stack([cosine, bm25]).astype(np.float64)
            fused = kernels.weighted_fusion(signals, weights, np.array([0, 1], np.uint8), offsets)
            for start, stop in itertools.pairwise(offsets):
                greatest = max(bm25[start:stop], default=0.0)
                for i in range(start, stop):
                    if chosen.stand_in and (codes is None or codes.parts[rows[i]] == 0):
                        fused[i] = float(bm25[i]) / float(greatest) if greatest > 0 else 0.0
            return fused
        scores = []
        for start, stop in itertools.pairwise(offsets):
            some, keys = slice(start, stop), records.keys[rows[start:stop]].tolist()
            scores += oracle.rank_fusion(
                cosine[some].tolist(), bm25[some].tolist(), keys, weights.tolist(), chosen.rrf_k, chosen.ranked_share
            )
        return np.array(scores, dtype=np.float64)

    joined = kernels.join_candidates(*lists)
    measure(joined)
    allowed = graph.mask if graph.mask.size else None
    spreading = chosen.neighbor_weight + chosen.source_weight > 0
    if chosen.expanded:
        chains = graph.previous, graph.following, graph.heads, graph.nexts, graph.targets
        joined = kernels.expand_candidates(*joined, fuse(joined), chosen.expanded, *chains, allowed)
        measure(joined)
    offsets, rows, cosine, bm25 = joined
    look = np.zeros(len(rows)) if look is None else look
    fused = fuse(joined) + look
    spread, lift, linked = fused, np.zeros(len(rows)), np.zeros(len(rows))
    if spreading:
        own = np.maximum(fused, 0)
        by_chain, by_link, best_three, company = kernels.spread_activation(
            offsets, rows, own, *graph[:7], allowed, chosen.near, chosen.far
        )
        link, lonely = np.maximum(by_link, 0), company == 1
        near, source = chosen.neighbor_weight, chosen.source_weight
        lift = near * np.maximum(by_chain, link) + source * np.where(lonely, 0, best_three / company)
        stand_in = np.where(lonely, chosen.lone_share * own, 0)
        stand_in = source * stand_in + near * np.where(by_link < 0, stand_in, 0)
        spread = (fused + lift + stand_in) / (1 + near + source)
        linked = np.where(link > by_chain, near * link, 0)
    form = "exp" if chosen.exponential else "half_life"
    ages = (chosen.clock - records.created_at[rows]) / DAY_US
    weight = np.ones(len(rows))
    if np.isfinite(chosen.half_life_days):
        weight = kernels.decay(ages, chosen.half_life_days, chosen.decay_floor, form)
    importance = records.importance[rows].astype(np.float64)
    score = [
        oracle.weighted_sum(
            similarity, recency, value, chosen.semantic_weight, chosen.recency_weight, chosen.importance_weight
        )
        if chosen.additive
        else similarity * recency * (1 + chosen.importance_weight * (2 * value - 1))
        for similarity, recency, value in zip(spread, weight, importance, strict=True)
    ]
    score = np.array(score, dtype=np.float64)
    signals = np.stack([cosine, bm25, look, fused, spread, lift, linked, weight, score])
    return offsets, rows, signals, kernels.order_by_score(offsets, score, records.keys[rows])


profiles = st.sampled_from(
    [
        {},
        {"neighbor_weight": 0.0, "source_weight": 0.0},
        {"expanded": 0},
        {"rrf_k": 60.0},
        {"rrf_k": 60.0, "ranked_share": 0.5},
        {"rrf_k": 0.5, "ranked_share": 0.5, "vector_weight": 0.0, "neighbor_weight": 0.0, "source_weight": 0.0},
        {"vector_weight": 0.0},
        {"half_life_days": float("inf"), "decay_floor": 0.0, "importance_weight": 0.0},
        {"exponential": 1, "half_life_days": 10.0, "decay_floor": 0.0},
        {"stand_in": 1, "keyword_weight": 0.0, "vector_weight": 1.0},
        {"stand_in": 1, "expanded": 0, "neighbor_weight": 0.0, "source_weight": 0.0},
        {"stand_in": 1, "rrf_k": 60.0},
        {
            "additive": 1,
            "semantic_weight": 0.5,
            "recency_weight": 0.3,
            "neighbor_weight": 0.0,
            "source_weight": 0.0,
            "expanded": 0,
            "decay_floor": 0.0,
            "half_life_days": 30.0,
        },
        {"additive": 1, "semantic_weight": 2.0, "recency_weight": 0.0, "importance_weight": 5.0, "stand_in": 1},
    ]
)


@holds(
    seed=seeds,
    queries=st.sampled_from([0, 1, 3]),
    kind=st.sampled_from(["none", "half", "few"]),
    with_codes=st.booleans(),
    links=st.sampled_from([0, 5, 400]),
    changed=profiles,
)
def test_it_is_the_other_kernels_in_turn(seed, queries, kind, with_codes, links, changed):
    arguments = *case(seed, queries, kind=kind, with_codes=with_codes, links=links), choices(**changed)
    offsets, rows, signals, order = kernels.rank_candidates(*arguments)
    wanted = composed(*arguments)
    assert offsets.tolist() == wanted[0].tolist()
    assert rows.tolist() == wanted[1].tolist()
    np.testing.assert_allclose(signals, wanted[2], rtol=1e-12, atol=1e-12)
    assert order.tolist() == wanted[3].tolist()


@holds(seed=seeds, queries=st.sampled_from([1, 3]))
def test_a_look_is_added_before_spreading(seed, queries):
    arguments = *case(seed, queries), choices(expanded=0)
    look = rng(seed).random(len(kernels.rank_candidates(*arguments)[1]))
    _, rows, signals, order = kernels.rank_candidates(*arguments, look)
    wanted = composed(*arguments, look)
    assert rows.tolist() == wanted[1].tolist()
    np.testing.assert_allclose(signals, wanted[2], rtol=1e-12, atol=1e-12)
    assert order.tolist() == wanted[3].tolist()
    with pytest.raises(kernels.KernelError, match="one for each of"):
        kernels.rank_candidates(*arguments, np.append(look, 0.0))
    with pytest.raises(kernels.KernelError, match="look: with expansion"):
        kernels.rank_candidates(*arguments[:-1], choices(), look)


def scores_of(similarities, days, importances, **changed):
    """What records of these similarities score, which a look gives to the last bit, at these ages."""
    n = len(days)
    empty = np.empty((1, 0), np.int64), np.empty((1, 0), np.float32), np.zeros(1, np.int64)
    rows = np.arange(n)[None, :], np.zeros((1, n), np.float32), np.array([n])
    words = kernels.Postings(**postings(rng(0), n, [0]))
    neighbours = graph(rng(0), n, 0)
    clock = 400 * DAY_US
    created = clock - np.round(np.array(days) * DAY_US).astype(np.int64)
    records = kernels.Records(np.arange(n), created, np.array(importances, np.float32))
    chosen = choices(expanded=0, neighbor_weight=0.0, source_weight=0.0, clock=clock, **changed)
    look = np.array(similarities, np.float64)
    return kernels.rank_candidates(kernels.Lists(*rows, *empty), None, words, neighbours, records, chosen, look)


def test_reeve_worked_example_to_nine_digits():
    """0.95 x 0.5 = 0.475 against 0.6 x 0.98 = 0.588; decay of one day, 30 days and six months."""
    ages = [180, -30 * np.log2(0.98), 1, 30]
    numbers = {"half_life_days": 30.0, "decay_floor": 0.5, "importance_weight": 0.0}
    _, _, signals, order = scores_of([0.95, 0.6, 1.0, 1.0], ages, [0.9, 0.1, 0.5, 0.5], **numbers)
    np.testing.assert_allclose(signals[-1], [0.475, 0.588, 0.9771599684342459, 0.5], rtol=0, atol=1e-9)
    assert order.tolist() == [2, 1, 3, 0]
    _, _, signals, _ = scores_of([1.0, 1.0], [1, 30], [0.5, 0.5], **{**numbers, "exponential": 1, "decay_floor": 0.0})
    np.testing.assert_allclose(signals[-1], [0.9672161004820059, 0.36787944117144233], rtol=0, atol=1e-9)


def ranked_scores(cosines, share):
    """The scores of records of these cosines, which share no word with the query, by rank fusion."""
    n = len(cosines)
    lists = kernels.Lists(
        np.arange(n)[None, :], np.array([cosines], np.float32), np.array([n]),
        np.empty((1, 0), np.int64), np.empty((1, 0), np.float32), np.zeros(1, np.int64),
    )  # fmt: skip
    records = kernels.Records(np.arange(n), np.zeros(n, np.int64), np.full(n, 0.5, np.float32))
    chosen = choices(
        rrf_k=60.0, ranked_share=share, vector_weight=1.0, keyword_weight=1.0, expanded=0, neighbor_weight=0.0,
        source_weight=0.0, half_life_days=float("inf"),
    )  # fmt: skip
    found = kernels.rank_candidates(lists, None, kernels.Postings(**postings(rng(0), n, [0])), graph(rng(0), n, 0),
                                    records, chosen)  # fmt: skip
    return found[2][3].tolist()


def test_what_carries_no_evidence_does_not_stretch_the_normalisation_of_ranks():
    # By 1/61, 1/62 and 1/63: the least of what is ranked has 0.4, whatever is not ranked.
    middle = 0.4 + 0.6 * (1 / 62 - 1 / 63) / (1 / 61 - 1 / 63)
    assert ranked_scores([0.6, 0.5, 0.4], 0.0) == pytest.approx([1.0, middle, 0.4], abs=1e-12)
    assert ranked_scores([0.6, 0.5, 0.4, 0.0, -0.2], 0.0) == pytest.approx([1.0, middle, 0.4, 0.0, 0.0], abs=1e-12)
    assert ranked_scores([0.6, 0.5, 0.4, 0.2, -0.2], 0.5) == pytest.approx([1.0, middle, 0.4, 0.4, 0.0], abs=1e-12)
    assert ranked_scores([0.6, 0.2, 0.1], 0.5) == [1.0, 0.4, 0.4]
    assert ranked_scores([-0.1, 0.0], 0.5) == [0.0, 0.0]


@pytest.mark.parametrize(("similarity", "first"), [(0.65693, 0), (0.65691, 1)])
def test_hermes_worked_example_to_nine_digits(similarity, first):
    """Half a year and importance 1 against a day and importance 0: 0.3 * (0.5^(1/30) - 0.5^6) - 0.2 = 0.5 * 0.17692;
    importances are float32, so those of the sum's table are powers of two."""
    numbers = {
        "additive": 1, "semantic_weight": 0.5, "recency_weight": 0.3, "importance_weight": 0.2, "half_life_days": 30.0,
        "decay_floor": 0.0,
    }  # fmt: skip
    table = [(similarity - 0.08, 180, 1.0), (0.4, 1, 0.0), (0.75, 30, 0.5), (-0.5, 365, 0.25), (1.5, 0, 1.0)]
    _, _, signals, order = scores_of(*zip(*table, strict=True), **numbers)
    wanted = [0.5 * min(max(s, 0.0), 1.0) + 0.3 * 0.5 ** (age / 30) + 0.2 * value for s, age, value in table]
    np.testing.assert_allclose(signals[-1], wanted, rtol=0, atol=1e-9)
    assert next(place for place in order.tolist() if place < 2) == first
    # Weights are divided by their sum.
    doubled = {**numbers, "semantic_weight": 1.0, "recency_weight": 0.6, "importance_weight": 0.4}
    np.testing.assert_allclose(scores_of(*zip(*table, strict=True), **doubled)[2][-1], wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "changed",
    [
        {"vector_weight": 0.0, "keyword_weight": 0.0},
        {"expanded": -1},
        {"additive": 1, "semantic_weight": 1.0, "recency_weight": -0.1},
        {"additive": 1, "semantic_weight": float("inf"), "recency_weight": 0.1},
        {"additive": 1, "importance_weight": 0.0},
    ],
)
def test_choices_that_make_no_sense_are_refused(changed):
    with pytest.raises(kernels.KernelError, match="choices"):
        kernels.rank_candidates(*case(1, 1), choices(**changed))


@holds(seed=seeds)
def test_a_query_alone_scores_as_among_others(seed):
    lists, codes, words, graph, records = case(seed, 3)
    offsets, rows, signals, order = kernels.rank_candidates(lists, codes, words, graph, records, choices())
    for query in range(3):
        one = slice(query, query + 1)
        slices = words.slice_offsets[query : query + 2]
        some = slice(*slices)
        alone = kernels.rank_candidates(
            kernels.Lists(*(column[one] for column in lists)),
            codes._replace(queries=codes.queries[one], ceilings=codes.ceilings[one]),
            words._replace(
                starts=words.starts[some], ends=words.ends[some], idf=words.idf[some], slice_offsets=slices - slices[0]
            ),
            graph, records, choices(),
        )  # fmt: skip
        own = slice(offsets[query], offsets[query + 1])
        assert alone[1].tolist() == rows[own].tolist()
        assert alone[2].tobytes() == np.ascontiguousarray(signals[:, own]).tobytes()
        assert alone[3].tolist() == order[own].tolist()


def test_rows_and_places_that_are_not_there_are_refused():
    lists, codes, words, graph, records = case(1, 1)
    lists.vector_counts[:] = 3
    lists.vector_rows[0, 0] = 60
    with pytest.raises(kernels.KernelError, match="row of 60 or more"):
        kernels.rank_candidates(lists, codes, words, graph, records, choices())
    lists.vector_rows[0, 0] = 5
    codes.first_place[:] = 10_000
    with pytest.raises(kernels.KernelError, match="a place that is not there"):
        kernels.rank_candidates(lists, codes, words, graph, records, choices())


def test_groups_of_other_sizes_are_refused():
    lists, codes, words, graph, records = case(1, 2)
    with pytest.raises(kernels.KernelError, match="wanted 2 queries and 60 records"):
        kernels.rank_candidates(lists, codes, case(1, 1)[2], graph, records, choices())
    with pytest.raises(kernels.KernelError, match="keys"):
        kernels.rank_candidates(lists, codes, words, graph, records._replace(keys=records.keys[:3]), choices())
