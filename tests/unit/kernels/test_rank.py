"""The ranking of candidates is held to the definitions in `oracle`, which imports nothing of ours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels.arguments import NEVER, Codes, Lists, Mentions, Tokens
from recallite_kernels.signals import later_signals
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import freeze, graph, holds, mask, masks, plain, postings, rng, seeds, vectors
from tests.unit.kernels.stages import rank_candidates

DAY_US = 86_400_000_000
AT = kernels.SIGNALS


def case(seed, n=60, kind="none", with_codes=True, links=20, d=16, widths=(9, 7)):
    """Lists, codes, postings, graph and records of a small store."""
    generator = rng(seed)

    def best(k):
        rows = generator.permutation(n)[: generator.integers(0, min(k, n) + 1)]
        return rows, np.sort(generator.random(len(rows), np.float32))[::-1].copy()

    lists = Lists(*best(widths[0]), *best(widths[1]))
    parts = generator.integers(0, 3, n).astype(np.int32)
    first_place = np.where(parts > 0, np.cumsum(parts) - parts, -1).astype(np.int64)
    codes, scales = kernels.quantize_int8(vectors(generator, int(parts.sum()), d))
    scales *= generator.choice(np.array([0.1, 1.0], np.float32))  # some cosines pass 1 and are cut
    (asked,) = vectors(generator, 1, d, zeros=False)
    asked /= np.linalg.norm(asked)
    ceiling = float(np.float32(generator.random()))
    words = postings(generator, n, [3])
    neighbours = graph(generator, n, links, mask(generator, n, kind))
    moments = generator.integers(0, 400 * DAY_US, n)
    untils = np.where(generator.random(n) < 0.5, NEVER, moments + generator.integers(1, 40 * DAY_US, n))
    records = kernels.Records(
        generator.permutation(n).astype(np.int64) - n // 2, generator.integers(0, 400 * DAY_US, n),
        generator.random(n).astype(np.float32), moments, untils, generator.integers(0, 2, n).astype(np.uint8),
        generator.integers(0, 5, n).astype(np.uint8), generator.integers(-1, 6, (n, 2)).astype(np.int32),
    )  # fmt: skip
    measured = Codes(asked, ceiling, first_place, parts, codes, scales) if with_codes else None
    return lists, measured, words, neighbours, records


def nobody(n):
    """Moments and speakers of records without a time and a speaker that a query could name."""
    never = np.full(n, NEVER)
    return np.zeros(n, np.int64), never, np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.full((n, 2), -1, np.int32)


def mentions_of(seed):
    """Some names and times."""
    generator = rng(seed + 1)
    names, spans = generator.integers(0, 4, 2)
    begins = generator.integers(0, 400 * DAY_US, spans)
    lengths, fades = (generator.integers(0, 100 * DAY_US, spans) for _ in range(2))
    return Mentions(generator.integers(0, 6, names).astype(np.int32), begins, begins + lengths, fades)


def parameters(**changed):
    return kernels.RankParameters(
        vector_weight=0.6, keyword_weight=0.4, rrf_k=-1.0, expansion_depth=4, neighbor_weight=0.4, source_weight=0.5,
        near=1.0, far=0.7, lone_share=0.8, clock=400 * DAY_US, half_life_days=90.0, decay_floor=0.5, exponential=0,
        importance_weight=0.2, speaker_weight=0.3, date_weight=0.2,
    )._replace(**changed)  # fmt: skip


def tokens(seed, codes, asked=3, width=128, most=6):
    """Codes of the tokens of a question, and of some of the vectors."""
    generator = rng(seed)
    words = -(-width // 64)
    counts = generator.integers(0, most + 1, len(codes.codes)) * (generator.random(len(codes.codes)) < 0.8)
    queries = kernels.sketch(vectors(generator, asked, width)).reshape(-1, words)
    held = kernels.sketch(vectors(generator, int(counts.sum()), width)).ravel()
    starts = np.concatenate(([0], np.cumsum(counts * words))).astype(np.int64)
    return Tokens(queries, generator.random(asked, np.float32), starts, held, width)


def assert_ranked_as_defined(lists, codes, words, neighbours, records, chosen, rerank=None, mentions=None, tokens=None):
    """Candidates and measured signals to float32, what follows from those to the last digits, and the order exactly."""
    for group in filter(None, (lists, codes, words, neighbours, records, mentions, tokens)):
        freeze(group)
    rows, signals, order = rank_candidates(
        lists, codes, words, neighbours, records, chosen, rerank, mentions, tokens
    )  # fmt: skip
    assert [part.dtype.name for part in (rows, signals, order)] == ["int64", "float64", "int64"]
    assert len(signals) == len(AT)
    lists, words, neighbours, records = map(plain, (lists, words, neighbours, records))
    codes, mentions, tokens = (each and plain(each) for each in (codes, mentions, tokens))
    got, (cosine, bm25) = rows.tolist(), signals[:2].tolist()
    wanted = oracle.candidates(lists, codes, words, neighbours, records.keys, chosen)
    assert got == list(wanted)
    if not got:
        return
    np.testing.assert_allclose(signals[:2].T, list(wanted.values()), rtol=1e-5, atol=2e-6)
    added = [0.0] * len(got) if rerank is None else rerank.tolist()
    parts, alike = codes.parts if codes else None, [0.0] * len(got)
    if tokens:
        fused = oracle.fuse(got, cosine, bm25, parts, records.keys, chosen)
        added, alike = oracle.rerank(got, fused, codes, tokens, chosen)
    later, places = oracle.score(got, cosine, bm25, added, alike, parts, neighbours, records, mentions, chosen)
    np.testing.assert_allclose(signals, later, rtol=1e-12, atol=1e-12)
    scores = signals[AT.score]
    assert order.tolist() == oracle.order_by_score(scores.tolist(), [records.keys[row] for row in got])
    np.testing.assert_allclose(scores[order], scores[places], rtol=1e-12, atol=1e-12)


profiles = st.sampled_from(
    [
        {},
        {"neighbor_weight": 0.0, "source_weight": 0.0},
        {"expansion_depth": 0},
        {"rrf_k": 60.0},
        {"rrf_k": 60.0, "ranked_share": 0.5},
        {"rrf_k": 0.5, "ranked_share": 0.5, "vector_weight": 0.0, "neighbor_weight": 0.0, "source_weight": 0.0},
        {"vector_weight": 0.0},
        {"half_life_days": float("inf"), "decay_floor": 0.0, "importance_weight": 0.0},
        {"exponential": 1, "half_life_days": 10.0, "decay_floor": 0.0},
        {"keyword_fallback": 1, "keyword_weight": 0.0, "vector_weight": 1.0},
        {"keyword_fallback": 1, "expansion_depth": 0, "neighbor_weight": 0.0, "source_weight": 0.0},
        {"keyword_fallback": 1, "rrf_k": 60.0},
        {
            "weighted_sum": 1,
            "semantic_weight": 0.5,
            "recency_weight": 0.3,
            "neighbor_weight": 0.0,
            "source_weight": 0.0,
            "expansion_depth": 0,
            "decay_floor": 0.0,
            "half_life_days": 30.0,
        },
        {
            "weighted_sum": 1,
            "semantic_weight": 2.0,
            "recency_weight": 0.0,
            "importance_weight": 5.0,
            "keyword_fallback": 1,
        },
    ]
)


@holds(
    seed=seeds,
    n=st.sampled_from([1, 2, 9, 60]),
    d=st.sampled_from([1, 16, 100, 384]),
    kind=masks,
    with_codes=st.booleans(),
    links=st.sampled_from([0, 5, 400]),
    depth=st.sampled_from([None, 1, 1000]),
    changed=profiles,
)
def test_every_signal_and_the_order_are_the_definition(seed, n, d, kind, with_codes, links, depth, changed):
    chosen = parameters(**changed)
    if depth is not None and chosen.expansion_depth:
        chosen = chosen._replace(expansion_depth=depth)
    assert_ranked_as_defined(*case(seed, n, kind, with_codes, links, d), chosen)


@holds(
    seed=seeds,
    n=st.sampled_from([1, 60]),
    changed=st.sampled_from([{}, {"speaker_weight": 0.0}, {"weighted_sum": 1, "semantic_weight": 0.5}]),
)
def test_speakers_and_times_that_a_query_names_raise_the_score(seed, n, changed):
    assert_ranked_as_defined(*case(seed, n), parameters(**changed), mentions=mentions_of(seed))


@holds(seed=seeds, widths=st.sampled_from([(0, 0), (0, 5), (30, 0), (1, 60)]))
def test_lists_of_any_length_are_joined(seed, widths):
    assert_ranked_as_defined(*case(seed, widths=widths), parameters())


@holds(seed=seeds)
def test_reranking_is_added_before_spreading(seed):
    arguments = *case(seed), parameters(expansion_depth=0)
    rerank = rng(seed).random(len(rank_candidates(*arguments)[0]))
    assert_ranked_as_defined(*arguments, rerank)


@holds(
    seed=seeds,
    width=st.sampled_from([1, 63, 64, 100, 128, 384]),
    depth=st.sampled_from([0, 1, 5, 1000]),
    changed=profiles,
)
def test_reranking_by_tokens_is_the_definition(seed, width, depth, changed):
    given = case(seed)
    chosen = parameters(**changed, rerank_weight=0.5, rerank_depth=depth)
    assert_ranked_as_defined(*given, chosen, tokens=tokens(seed, given[1], width=width))


def test_a_record_with_the_querys_tokens_is_lifted_and_one_without_codes_stays():
    _, codes, words, _, records = case(3, 3, d=16)
    lists = Lists(np.arange(3), np.zeros(3, np.float32), *NOTHING)
    first_place, parts = np.array([0, 2, 3]), np.array([2, 1, 1], np.int32)
    codes = codes._replace(
        first_place=first_place, parts=parts, codes=np.ones((4, 16), np.int8), scales=np.ones(4, np.float32)
    )
    # Of four bits: the two parts of the first have one token each, the second has one, the third none.
    compared = Tokens(
        np.array([[0b1111], [0b0000]], np.uint64), np.array([0.75, 0.25], np.float32),
        np.array([0, 1, 2, 3, 3]), np.array([0b1111, 0b0000, 0b0011], np.uint64), 4,
    )  # fmt: skip
    chosen = parameters(rerank_weight=0.5, rerank_depth=3, expansion_depth=0)
    given = lists, codes, words, without_neighbours(3), records, chosen
    signals = rank_candidates(*given, tokens=compared)[1]
    # MaxSim is 1 and 0, their mean one half.
    assert signals[AT.rerank].tolist() == [0.25, -0.25, 0.0]
    assert signals[AT.similarity].tolist() == [1.0, 0.0, 0.0]
    for starts in ([0, 1, 2, 4, 3], [0, 1, 2, 9, 9], [-1, 1, 2, 3, 3]):
        assert rank_candidates(*given, tokens=compared._replace(starts=np.array(starts))) is None
    # Codes that are no whole number of tokens count as none.
    wide = kernels.sketch(np.ones((2, 128), np.float32))
    odd = rank_candidates(*given, tokens=compared._replace(queries=wide, width=128))[1]
    assert odd[AT.rerank].tolist() == [0.0, 0.0, 0.0]


def without_neighbours(n):
    return plain_graph(np.full(n, -1, np.int32), np.full(n, -1, np.int32))


@pytest.mark.parametrize("depth", [0, 4])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_empty_is_as_if_every_record_were_listed(seed, depth):
    lists, codes, words, neighbours, records = case(seed, links=0)
    n = len(records.created_at)
    generator = rng(seed)
    int8, scales = kernels.quantize_int8(vectors(generator, n - 5, 16))
    parts = np.repeat(np.array([1, 0], np.int32), [n - 5, 5])
    listed = codes._replace(first_place=np.where(parts > 0, np.arange(n), -1), parts=parts, codes=int8, scales=scales)
    nameless = records._replace(speakers=np.full((n, 2), -1, np.int32))
    chosen = parameters(expansion_depth=depth, rerank_weight=0.5, rerank_depth=9)
    asked = mentions_of(seed), tokens(seed, listed)
    wanted = rank_candidates(lists, listed, words, neighbours, nameless, chosen, None, *asked)
    empty = listed._replace(first_place=np.empty(0, np.int64), parts=np.empty(0, np.int32))
    neighbours = neighbours._replace(heads=np.empty(0, np.int32))
    nameless = nameless._replace(speakers=np.empty((0, 2), np.int32))
    found = rank_candidates(lists, empty, words, neighbours, nameless, chosen, None, *asked)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def plain_graph(previous, following, sources=None, links=None):
    """A graph of these chains; `links` are heads, nexts, targets and strengths."""
    n, nothing = len(previous), np.empty(0, np.int32)
    heads, nexts, targets, strengths = links or (np.full(n, -1, np.int32), nothing, nothing, np.empty(0, np.float32))
    sources = np.full(n, -1, np.int32) if sources is None else sources.astype(np.int32)
    return kernels.Graph(previous, following, sources, heads, nexts, targets, strengths, np.empty(0, np.uint8))


NOTHING = np.empty(0, np.int64), np.empty(0, np.float32)


def ranked(rows, fused, neighbours, records=None, **changed):
    """The ranking of candidates whose fused scores are exactly these."""
    n = len(neighbours.previous)
    if records is None:
        records = kernels.Records(np.arange(n), np.zeros(n, np.int64), np.full(n, 0.5, np.float32), *nobody(n))
    chosen = parameters(**{"expansion_depth": 0, "half_life_days": float("inf"), **changed})
    lists = Lists(np.array(rows, np.int64), np.zeros(len(rows), np.float32), *NOTHING)
    return rank_candidates(
        lists, None, postings(rng(0), n, [0]), neighbours, records, chosen, np.array(fused, np.float64)
    )  # fmt: skip


def test_worked_example_of_spreading():
    # 0 - 1 - 2 are a chain and a source, 3 is linked with 0 and with 1; only 0, 2 and 3 are candidates.
    links = (
        np.array([0, 1, -1, 2], np.int32), np.array([-1, -1, 3, -1], np.int32), np.array([3, 3, 0, 1], np.int32),
        np.array([0.5, 0.5, 0.5, 1.0], np.float32),
    )  # fmt: skip
    chains = np.array([-1, 0, 1, -1], np.int32), np.array([1, 2, -1, -1], np.int32)
    neighbours = plain_graph(*chains, np.array([7, 7, 7, -1]), links)
    _, signals, _ = ranked([0, 2, 3], [0.5, 0.1, 0.9], neighbours)
    # 3 is alone in its chain, so 0.8 of its own score replaces its source.
    gain = [0.4 * 0.45 + 0.5 * 0.6 / 3, 0.4 * 0.35 + 0.5 * 0.6 / 3, 0.4 * 0.25]
    spread = [(0.5 + gain[0]) / 1.9, (0.1 + gain[1] + 0.0) / 1.9, (0.9 + gain[2] + 0.5 * 0.72) / 1.9]
    np.testing.assert_allclose(signals[AT.spread_gain], gain, rtol=1e-12)
    np.testing.assert_allclose(signals[AT.spread], spread, rtol=1e-12)
    np.testing.assert_allclose(signals[AT.linked], [0.4 * 0.45, 0.0, 0.4 * 0.25], rtol=1e-12)


@pytest.mark.parametrize("stride", [1, 2**11, 2**16, 2**22])
def test_sources_whose_numbers_share_their_low_bits_stay_apart(stride):
    n = 900
    rows = np.arange(n)
    pairs = np.where(rows % 2, rows - 1, -1).astype(np.int32), np.where(rows % 2, -1, rows + 1).astype(np.int32)
    scores = rows / n
    _, signals, _ = ranked(rows, scores, plain_graph(*pairs, rows // 2 * stride), neighbor_weight=0.0)
    np.testing.assert_allclose(signals[AT.spread_gain], 0.5 * np.repeat(scores[1::2] + scores[::2], 2) / 2, rtol=1e-12)


def test_a_row_that_leads_to_itself_ends():
    itself, nothing = np.array([0], np.int32), np.array([-1], np.int32)
    links = itself, nothing, itself, np.array([0.5], np.float32)
    for depth in (0, 5):
        arguments = list(case(1, 1))
        arguments[3] = plain_graph(itself, itself, links=links)
        rank_candidates(*arguments, parameters(expansion_depth=depth))
    _, signals, _ = ranked([0], [0.5], plain_graph(itself, itself, links=links), source_weight=0.0)
    assert signals[AT.spread_gain].tolist() == [0.4 * 0.5]


@pytest.mark.parametrize("links", [5, 900, 3000])
@pytest.mark.parametrize("rows", [[0, 700], [5], [3, 9]])
def test_records_with_hundreds_of_links_find_room(links, rows):
    generator = rng(links)
    n = 2000
    heads, nexts = np.full(n, -1, np.int32), np.arange(-1, 2 * links - 1, dtype=np.int32)
    nexts[links] = -1
    heads[3], heads[700] = links - 1, 2 * links - 1
    targets = generator.integers(0, n, 2 * links).astype(np.int32)
    targets[links + links // 2 :] = -1
    none = np.full(n, -1, np.int32)
    lists = Lists(np.array(rows), np.ones(len(rows), np.float32), *NOTHING)
    neighbours = plain_graph(none, none, links=(heads, nexts, targets, np.ones(2 * links, np.float32)))
    records = kernels.Records(np.arange(n), np.zeros(n, np.int64), np.full(n, 0.5, np.float32), *nobody(n))
    words = postings(generator, n, [0])
    assert_ranked_as_defined(lists, None, words, neighbours, records, parameters(expansion_depth=2))


@holds(seed=seeds, n=st.sampled_from([1, 2, 9, 60]), ties=st.booleans(), ascending=st.booleans())
def test_ties_are_broken_by_key(seed, n, ties, ascending):
    generator = rng(seed)
    scores = generator.integers(-3, 4, n) / 3 if ties else generator.standard_normal(n)
    scores[generator.random(n) < 0.2] = -0.0
    keys = generator.permutation(n).astype(np.int64) - n // 2
    keys = np.sort(keys) if ascending else keys * 2**40
    records = kernels.Records(keys, np.zeros(n, np.int64), np.full(n, 0.5, np.float32), *nobody(n))
    alone = {"neighbor_weight": 0.0, "source_weight": 0.0}
    order = ranked(np.arange(n), scores, without_neighbours(n), records, **alone)[2]
    assert order.tolist() == oracle.order_by_score(scores.tolist(), keys.tolist())


def test_equal_keys_keep_their_places():
    records = kernels.Records(np.array([5, 5, 5, 1]), np.zeros(4, np.int64), np.full(4, 0.5, np.float32), *nobody(4))
    alone = {"neighbor_weight": 0.0, "source_weight": 0.0}
    assert ranked(np.arange(4), [1.0, 2.0, 1.0, 1.0], without_neighbours(4), records, **alone)[2].tolist() == [
        1,
        3,
        0,
        2,
    ]


@pytest.mark.parametrize("depth", [0, 3])
def test_chains_and_links_out_of_range_are_refused(depth):
    none, one, beyond = np.full(3, -1, np.int32), np.array([0, -1, -1], np.int32), np.array([1, 3, -1], np.int32)
    strength = np.ones(1, np.float32)
    for neighbours in (
        plain_graph(beyond, none),
        plain_graph(none, beyond),
        plain_graph(np.array([9, -1, -1], np.int32), none),
        plain_graph(none, np.array([2**31 - 1, -1, -1], np.int32)),
        plain_graph(none, none, links=(one, one[1:2], np.array([3], np.int32), strength)),
        plain_graph(none, none, links=(one + 1, one[1:2], one[:1], strength)),
        plain_graph(none, none, links=(one, one[:1], one[1:2], strength)),  # a list without an end
    ):
        arguments = list(case(2, 3))
        arguments[0], arguments[3] = Lists(np.arange(3), np.ones(3, np.float32), *NOTHING), neighbours
        assert rank_candidates(*arguments, parameters(expansion_depth=depth)) is None


def test_later_signals_are_the_rows_from_spread_on():
    # The JIT writes them without a check of bounds.
    one = later_signals(0.5, 0.1, -1.0, 0.5, 2.0, 3.0, 0.5, 1.0, 0.0, parameters())
    assert len(one) == len(AT) - AT.spread
    assert AT._fields[-1] == "score"
    assert tuple(AT) == tuple(range(len(AT)))


def scores_of(similarities, days, importances, **changed):
    """The ranking of records of these similarities and ages."""
    n = len(days)
    clock = 400 * DAY_US
    created = clock - np.round(np.array(days) * DAY_US).astype(np.int64)
    records = kernels.Records(np.arange(n), created, np.array(importances, np.float32), *nobody(n))
    alone = {"neighbor_weight": 0.0, "source_weight": 0.0, "clock": clock, "half_life_days": 90.0}
    return ranked(np.arange(n), similarities, without_neighbours(n), records, **{**alone, **changed})


def test_reeve_worked_example_to_nine_digits():
    """0.95 x 0.5 = 0.475 against 0.6 x 0.98 = 0.588; decay of one day, 30 days and six months."""
    ages = [180, -30 * np.log2(0.98), 1, 30]
    numbers = {"half_life_days": 30.0, "decay_floor": 0.5, "importance_weight": 0.0}
    _, signals, order = scores_of([0.95, 0.6, 1.0, 1.0], ages, [0.9, 0.1, 0.5, 0.5], **numbers)
    np.testing.assert_allclose(signals[AT.score], [0.475, 0.588, 0.9771599684342459, 0.5], rtol=0, atol=1e-9)
    assert order.tolist() == [2, 1, 3, 0]
    _, signals, _ = scores_of([1.0, 1.0], [1, 30], [0.5, 0.5], **{**numbers, "exponential": 1, "decay_floor": 0.0})
    np.testing.assert_allclose(signals[AT.score], [0.9672161004820059, 0.36787944117144233], rtol=0, atol=1e-9)


def ranked_scores(cosines, share):
    """The scores of records of these cosines, which share no word with the query, by rank fusion."""
    n = len(cosines)
    lists = Lists(np.arange(n), np.array(cosines, np.float32), *NOTHING)
    records = kernels.Records(np.arange(n), np.zeros(n, np.int64), np.full(n, 0.5, np.float32), *nobody(n))
    chosen = parameters(
        rrf_k=60.0, ranked_share=share, vector_weight=1.0, keyword_weight=1.0, expansion_depth=0, neighbor_weight=0.0,
        source_weight=0.0, half_life_days=float("inf"),
    )  # fmt: skip
    found = rank_candidates(lists, None, postings(rng(0), n, [0]), without_neighbours(n), records, chosen)
    return found[1][AT.fused].tolist()


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
        "weighted_sum": 1, "semantic_weight": 0.5, "recency_weight": 0.3, "importance_weight": 0.2,
        "half_life_days": 30.0, "decay_floor": 0.0,
    }  # fmt: skip
    table = [(similarity - 0.08, 180, 1.0), (0.4, 1, 0.0), (0.75, 30, 0.5), (-0.5, 365, 0.25), (1.5, 0, 1.0)]
    _, signals, order = scores_of(*zip(*table, strict=True), **numbers)
    wanted = [0.5 * min(max(s, 0.0), 1.0) + 0.3 * 0.5 ** (age / 30) + 0.2 * value for s, age, value in table]
    np.testing.assert_allclose(signals[AT.score], wanted, rtol=0, atol=1e-9)
    assert next(place for place in order.tolist() if place < 2) == first
    # Weights are divided by their sum.
    doubled = {**numbers, "semantic_weight": 1.0, "recency_weight": 0.6, "importance_weight": 0.4}
    np.testing.assert_allclose(scores_of(*zip(*table, strict=True), **doubled)[1][AT.score], wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "changed",
    [
        {"vector_weight": 0.0, "keyword_weight": 0.0},
        {"expansion_depth": -1},
        {"weighted_sum": 1, "semantic_weight": 1.0, "recency_weight": -0.1},
        {"weighted_sum": 1, "semantic_weight": float("inf"), "recency_weight": 0.1},
        {"weighted_sum": 1, "importance_weight": 0.0},
    ],
)
def test_parameters_that_make_no_sense_are_refused(changed):
    with pytest.raises(kernels.KernelError, match="parameters"):
        kernels.check_parameters(parameters(**changed))


def test_rows_and_places_that_are_not_there_are_refused():
    lists, codes, words, graph, records = case(1)
    beyond = Lists(np.array([3, 60]), np.ones(2, np.float32), *NOTHING)
    assert rank_candidates(beyond, codes, words, graph, records, parameters()) is None
    codes.first_place[:] = 10_000
    lists = Lists(np.arange(9), np.full(9, np.nan, np.float32), *NOTHING)
    assert rank_candidates(lists, codes, words, graph, records, parameters()) is None
