"""The kernel of a recall, held to the definitions in `oracle`: the order of its hits, alone and in a group."""

from __future__ import annotations

import importlib
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels import dispatch, python_backend
from recallite_kernels.arguments import NEVER, Lists, Mentions
from recallite_kernels.signals import REASONS
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import forest, forward, graph, holds, mask, masks, plain, rng, seeds, vectors
from tests.unit.kernels.test_rank import DAY_US, parameters

AT, FIGURE = kernels.SIGNALS, kernels.FIGURES
K1, B, D, VOCABULARY = 0.9, 0.4, 64, 12
NO_TREES = kernels.Forest(np.empty((0, 1), np.uint8), np.empty((0, 1)), np.empty((0, 2)))


def make_view(seed, n=60, kind="none", parts=False, tokens=False):
    """A view of a small index of two segments; with `parts` rows have none to two vectors."""
    generator = rng(seed)
    visible = mask(generator, n, kind)
    counts = generator.integers(0, 3, n).astype(np.int32) if parts else np.ones(n, np.int32)
    places = int(counts.sum())
    held = vectors(generator, places, D, zeros=False)
    held /= np.linalg.norm(held, axis=1, keepdims=True)
    codes, scales = kernels.quantize_int8(held)
    left = np.rint((held / scales[:, None] - codes) * kernels.RESIDUAL_STEPS)
    owners = np.repeat(np.arange(n), counts)
    admitted = np.arange(places) if visible is None else np.flatnonzero(visible[owners])
    segments = []
    for first, stop in ((0, n // 2), (n // 2, n)):
        terms, tf, offsets = forward(generator, stop - first, VOCABULARY, 6)
        segments.append((*kernels.invert(terms, tf, offsets, first), tf.sum()))
    lengths = np.zeros(n, np.float32)
    for _, _, rows, tf, _ in segments:
        np.add.at(lengths, rows, tf)
    starts, at = [], 0
    for _, own, rows, _, _ in segments:
        starts.append(own + at)
        at += len(rows)
    words = kernels.Terms(
        np.concatenate([each[0] for each in segments]), np.concatenate(starts),
        np.cumsum([0, *(len(each[0]) for each in segments)]), np.concatenate([each[2] for each in segments]),
        np.concatenate([each[3] for each in segments]), lengths, float(lengths.sum()) / max(n, 1) or 1.0, float(n),
        np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.uint8),
    )  # fmt: skip
    token_counts = generator.integers(0, 4, places) * tokens
    own_tokens = kernels.Vectors(
        kernels.sketch_blocks(kernels.sketch(held)), np.empty(0, np.uint16), admitted, len(admitted),
        np.where(counts > 0, np.cumsum(counts) - counts, -1), counts, owners if parts else np.empty(0, np.int64),
        codes, scales, np.clip(left, -127, 127).astype(np.int8),
        np.concatenate([[0], np.cumsum(2 * token_counts)]) if tokens else np.empty(0, np.int64),
        generator.integers(0, 2**63, int(2 * token_counts.sum())).astype(np.uint64),
    )  # fmt: skip
    created = generator.integers(0, 400 * DAY_US, n)
    moments = created + generator.integers(-20 * DAY_US, 20 * DAY_US, n)
    untils = np.where(generator.random(n) < 0.5, NEVER, moments + generator.integers(1, 10 * DAY_US, n))
    records = kernels.Records(
        generator.permutation(n).astype(np.int64), created, generator.random(n).astype(np.float32), moments,
        untils, generator.integers(0, 2, n).astype(np.uint8), generator.integers(0, 5, n).astype(np.uint8),
        generator.integers(-1, VOCABULARY, (n, 2)).astype(np.int32),
    )  # fmt: skip
    chains = np.sort(generator.integers(0, max(n, 1), (2, 5 if n else 0)), axis=1)
    stated = kernels.Stated(
        generator.integers(0, 4, (n, 3, 2)).astype(np.uint32), generator.integers(0, 2, n).astype(np.uint8),
        generator.integers(0, 2, n).astype(np.int32), chains,
    )  # fmt: skip
    standing = np.sort(generator.choice(n, min(n, 6), replace=False))
    if visible is not None:
        standing = standing[visible[standing] == 1]
    instructions = (generator.random(len(standing)) < 0.5).astype(np.uint8)
    beside = graph(generator, n, 15, visible)
    return kernels.View(words, own_tokens, beside, records, stated, standing, instructions)


def make_plan(seed=0, **changed):
    kinds = len(kernels.EVIDENCE) + 1
    plan = kernels.Plan(
        by_vector=1, by_words=1, wanted=12, shortlist=40, measured=4, exact=0, exhaustive=0, top=5, depth=0, changes=0,
        marked=0, omit=0, grouped=0, least=-np.inf, least_of=AT.score, least_confidence=0.0, ranked=0, shared=0,
        limit=8, final=8, standing=0, k1=K1, b=B, parameters=parameters(), forest=NO_TREES,
        weights=rng(seed).standard_normal((4, kinds)),
    )  # fmt: skip
    return plan._replace(**changed)


def make_asking(seed, questions=3, by_vector=True, tokens=False):
    generator = rng(seed + 1)
    counts = generator.integers(0, 5, questions)
    words = [generator.choice(VOCABULARY + 2, count, replace=False) for count in counts]
    numbers = np.concatenate([*words, []]).astype(np.int32)
    numbers[numbers >= VOCABULARY] = -2
    asked = vectors(generator, questions, D if by_vector else 0, zeros=False)
    if by_vector:
        asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    spans = generator.integers(0, 2, questions)
    begins = generator.integers(0, 300 * DAY_US, spans.sum())
    of_tokens = generator.integers(0, 4, questions) * tokens * (counts > 0)
    standing_for = [generator.integers(0, counts[q]) for q in range(questions) for _ in range(of_tokens[q])]
    zeros = np.zeros(questions + 1, np.int64)
    moments = np.where(generator.random(questions) < 0.5, NEVER, generator.integers(0, 400 * DAY_US, questions))
    former = generator.integers(0, 2, questions).astype(np.uint8)
    return kernels.Asking(
        asked, numbers, generator.random(len(numbers)) * 0.1, (numbers % 3).astype(np.uint8), np.cumsum([0, *counts]),
        counts.astype(np.float64), begins, begins + 20 * DAY_US, np.full(len(begins), 5 * DAY_US),
        np.cumsum([0, *spans]),
        moments, former, np.empty(0, np.int32), zeros,
        generator.integers(0, 2**63, (int(of_tokens.sum()), 2)).astype(np.uint64), np.cumsum([0, *of_tokens]),
        np.array(standing_for, np.int64), np.arange(len(standing_for) + 1), 128,
    )  # fmt: skip


def only(asking, query):
    """One of some questions."""

    def part(offsets, *columns):
        begin, end = offsets[query], offsets[query + 1]
        return [column[begin:end] for column in columns], np.array([0, end - begin])

    (numbers, shares, roles), words = part(asking.word_offsets, asking.numbers, asking.shares, asking.roles)
    (begins, ends, fades), spans = part(asking.span_offsets, asking.begins, asking.ends, asking.fades)
    one = slice(query, query + 1)
    (codes,), tokens = part(asking.token_offsets, asking.token_codes)
    begin, end = asking.token_offsets[query : query + 2]
    return asking._replace(
        vectors=asking.vectors[one], numbers=numbers, shares=shares, roles=roles, word_offsets=words,
        counting=asking.counting[one],
        begins=begins, ends=ends, fades=fades, span_offsets=spans, moments=asking.moments[one],
        former=asking.former[one], before_offsets=np.zeros(2, np.int64), token_codes=codes, token_offsets=tokens,
        token_words=asking.token_words[begin:end], token_word_offsets=np.arange(end - begin + 1),
    )  # fmt: skip


def recall(view, plan, asking, room=400, checked=False):
    questions, longest = len(asking.counting), int(np.diff(asking.word_offsets).max(initial=0))
    while True:
        work = kernels.workspace(view, plan, questions, longest, len(asking.token_codes), room)
        hits = kernels.hits(plan, work, questions, len(asking.numbers), longest)
        status = kernels.recall(view, plan, asking, work, hits, checked=checked)
        if status == kernels.DONE:
            return hits
        assert status == kernels.ROOM
        room = int(work.needed[0])


def told(hits, query=0):
    """The hits of a question as plain values."""
    count, brought = hits.figures[query, FIGURE.hits], hits.figures[query, FIGURE.brought]
    own = slice(0, count + brought)
    return SimpleNamespace(
        count=count, brought=brought, rows=hits.rows[query, own].tolist(), keys=hits.keys[query, own].tolist(),
        scores=hits.scores[query, own], confidence=hits.confidence[query, own], signals=hits.signals[query, own],
        reasons=hits.reasons[query, own].tolist(), successors=hits.successors[query, own].tolist(),
        held=hits.contained[query, :count].tolist(), figures=hits.figures[query].tolist(),
    )  # fmt: skip


def words_by_hand(view, asking):
    """The IDF of the words of one question, and the BM25 of each row."""
    words, n = plain(view.terms), len(view.terms.lengths)
    whole, weights = [0.0] * n, []
    for number, share in zip(asking.numbers.tolist(), asking.shares.tolist(), strict=True):
        found = {}
        for segment in range(len(words.segments) - 1):
            for place in range(words.segments[segment], words.segments[segment + 1]):
                if words.terms[place] == number:
                    begin, end = words.starts[place + segment : place + segment + 2]
                    found |= dict(zip(words.rows[begin:end], words.counts[begin:end], strict=True))
        held = len(found) + 10 * share
        weights.append(math.log(1 + (words.records + 10 - held + 0.5) / (held + 0.5)))
        for row, tf in found.items():
            whole[row] += oracle.impact(weights[-1], tf, words.lengths[row], words.average_length, K1, B)
    return weights, whole


def lists_by_hand(view, plan, asking, bm25):
    """The best rows by vector and by words, and the ceiling of other cosines."""
    own, visible = plain(view.vectors), view.graph.mask
    rough, exact = {}, {}
    for row, count in enumerate(own.parts):
        if count and (not len(visible) or visible[row]):
            places = range(own.first_place[row], own.first_place[row] + count)
            query = asking.vectors[0].tolist()
            rough[row] = max(oracle.int8_cosine(query, own.codes[place], own.scales[place]) for place in places)
            finer = [
                [code + left / 254 for code, left in zip(own.codes[place], own.residuals[place], strict=True)]
                for place in places
            ]
            exact[row] = max(
                min(1.0, oracle.dot(query, each) * own.scales[place]) for each, place in zip(finer, places, strict=True)
            )
    nearest = sorted(rough, key=lambda row: (-rough[row], row))[: plan.wanted]
    cosines = [exact[row] if plan.exact or rank < plan.measured else rough[row] for rank, row in enumerate(nearest)]
    ceiling = math.inf
    if not plan.exact and plan.measured and cosines:
        ceiling = min(cosines[: plan.measured])
        cosines[plan.measured :] = [min(each, ceiling) for each in cosines[plan.measured :]]
    best = [row for row in range(len(bm25)) if bm25[row] > 0 and (not len(visible) or visible[row])]
    best = sorted(best, key=lambda row: (-bm25[row], row))[: plan.wanted]
    return Lists(nearest, cosines, best, [bm25[row] for row in best]), ceiling


def by_hand(view, plan, asking):
    """The rows of all candidates of one question, best first, with their scores."""
    _, bm25 = words_by_hand(view, asking)
    lists, ceiling = lists_by_hand(view, plan, asking, bm25)
    beside, records = plain(view.graph), plain(view.records)
    known = oracle.join((lists.vector_rows, lists.cosines), (lists.keyword_rows, lists.bm25))
    own = plain(view.vectors)

    def measured(rows):
        found = {}
        for row in rows:
            cosine = known.get(row, (math.nan,))[0]
            if math.isnan(cosine):
                places = range(own.first_place[row], own.first_place[row] + own.parts[row])
                query = asking.vectors[0].tolist()
                every = [oracle.int8_cosine(query, own.codes[at], own.scales[at]) for at in places]
                cosine = min(max(every, default=0.0), ceiling)
            found[row] = cosine, bm25[row]
        return found

    signals = measured(sorted(known))
    p = plan.parameters
    if p.expansion_depth and signals:
        fused = oracle.fuse(list(signals), *map(list, zip(*signals.values(), strict=True)), own.parts, records.keys, p)
        signals = measured(oracle.expand(list(signals), fused, p.expansion_depth, beside))
    if not signals:
        return [], []
    rows = list(signals)
    cosine, words = map(list, zip(*signals.values(), strict=True))
    mentions = plain(Mentions(asking.numbers, asking.begins, asking.ends, asking.fades))
    zeros = [0.0] * len(rows)
    later, order = oracle.score(rows, cosine, words, zeros, zeros, own.parts, beside, records, mentions, p)
    scores = later[AT.score]
    return [rows[place] for place in order], [scores[place] for place in order]


rankings = st.sampled_from(
    [
        {},
        {"parameters": parameters(rrf_k=60.0)},
        {"parameters": parameters(neighbor_weight=0.0, source_weight=0.0, expansion_depth=0)},
        {"parameters": parameters(keyword_fallback=1)},
        {"measured": 0},
        {"least": 0.3},
        {"grouped": 1},
        {"limit": 100, "final": 100},
    ]
)


@pytest.mark.usefixtures("backend")
@holds(seed=seeds, kind=masks, parts=st.booleans(), chosen=rankings)
def test_the_hits_are_those_of_the_definition(seed, kind, parts, chosen):
    view, plan, asking = make_view(seed, kind=kind, parts=parts), make_plan(**chosen), make_asking(seed)
    hits = recall(view, plan, asking)
    for query in range(len(asking.counting)):
        got = told(hits, query)
        rows, scores = by_hand(view, plan, only(asking, query))
        assert got.figures[FIGURE.candidates] == len(rows)
        kept, sources = [], set()
        for row, score in zip(rows, scores, strict=True):
            source = view.graph.sources[row]
            if score < plan.least - 1e-5 or (plan.grouped and source in sources):
                continue
            kept.append((row, min(max(score, 0.0), 1.0)))
            sources |= {source} if source >= 0 else set()
        # Scores that are nearly equal may stand in another order: those of each rank are as defined.
        if abs(len(kept) - got.count) and len(kept) < plan.limit:
            assert abs(kept[-1][1] - plan.least) < 1e-4
        wanted = [score for _, score in kept[: got.count]]
        if not plan.grouped:
            np.testing.assert_allclose(got.scores, wanted, rtol=2e-5, atol=2e-5)
        of_row = dict(kept)
        for row, score in zip(got.rows, got.scores.tolist(), strict=True):
            assert row not in of_row or score == pytest.approx(of_row[row], abs=2e-5)
        assert got.keys == view.records.keys[got.rows].tolist()


@pytest.mark.usefixtures("backend")
@holds(seed=seeds, kind=masks)
def test_changes_are_in_the_order_of_the_definition(seed, kind):
    view, asking, count = make_view(seed, kind=kind), make_asking(seed), 12
    frames = view.stated.frames.copy()
    frames[..., 0] += frames[..., 0] > 0  # none is `OVER`
    view = view._replace(stated=view.stated._replace(frames=frames, positioned=np.zeros(len(frames), np.uint8)))
    records, plan = plain(view.records), make_plan(limit=100, final=100, parameters=parameters(clock=200 * DAY_US))
    ranked, changed = recall(view, plan, asking), recall(view, plan._replace(changes=count), asking)
    for query, moment in enumerate(asking.moments.tolist()):
        rows = told(ranked, query).rows
        best = rows[:count]
        scopes = view.stated.scopes[best].tolist()
        stated = [
            [((scope, frame), value) if frame else (0, value) for frame, value in frames[row].tolist()]
            for scope, row in zip(scopes, best, strict=True)
        ]
        began = [(oracle.began(row, records, moment, plan.parameters.clock), records.keys[row]) for row in best]
        order, _ = oracle.order_changes(stated, began, moment, asking.former[query])
        assert told(changed, query).rows == [*(best[place] for place in order), *rows[count:]]


@pytest.mark.usefixtures("backend")
@holds(seed=seeds)
def test_words_weigh_by_the_rows_of_their_corpus(seed):
    """Under a mask rows are counted once, and a word that only rows outside have is unknown."""
    view, asking = make_view(seed), only(make_asking(seed), 0)
    generator = rng(seed)
    counted, held = ((generator.random(60) < share).astype(np.uint8) for share in (0.4, 0.3))
    terms = view.terms._replace(
        frequencies=np.full(len(view.terms.terms), kernels.UNCOUNTED), counted=counted, present=held, records=24.0
    )
    hits = recall(view._replace(terms=terms), make_plan(), asking)
    for word, number in enumerate(asking.numbers.tolist()):
        rows = [
            row
            for segment in range(2)
            for place in range(terms.segments[segment], terms.segments[segment + 1])
            if terms.terms[place] == number
            for row in terms.rows[terms.starts[place + segment] : terms.starts[place + segment + 1]]
        ]
        count = int(counted[rows].sum()) if rows else 0
        share = 10 * asking.shares[word]
        smoothed = math.log(1 + (34 - count - share + 0.5) / (count + share + 0.5))
        assert hits.idf[word] == pytest.approx(smoothed, abs=1e-6)
        assert bool(hits.known[word]) == bool(rows and (counted[rows].any() or held[rows].any()))


VARIANTS = [
    {},
    {"depth": 6, "forest": "trees"},
    {"changes": 8},
    {"changes": 8, "marked": 1, "omit": 1},
    {"standing": 2},
    {"standing": 3, "least_confidence": 0.4},
    {"least_confidence": 0.3, "grouped": 1},
    {"shared": 1, "depth": 6, "forest": "trees", "standing": 2},
    {"shared": 1, "changes": 8, "least_confidence": 0.2},
    {"exact": 1, "by_words": 0},
    {"by_vector": 0},
    {"by_vector": 0, "shared": 1, "standing": 2},
    {"parameters": parameters(rrf_k=60.0), "ranked": 1, "least_of": AT.spread, "least": 0.1},
    {"parameters": parameters(rerank_weight=1.0, rerank_depth=9), "changes": 8, "standing": 2},
    {"parameters": parameters(rrf_k=0.5, ranked_share=0.5, vector_weight=0.0)},
    {"parameters": parameters(exponential=1, half_life_days=10.0, decay_floor=0.0, keyword_fallback=1)},
    {
        "exact": 1, "exhaustive": 1, "top": 8,
        "parameters": parameters(
            weighted_sum=1, semantic_weight=0.5, recency_weight=0.3, neighbor_weight=0.0, source_weight=0.0,
            expansion_depth=0,
        ),
    },
]  # fmt: skip


def variant(seed, chosen):
    chosen = dict(chosen)
    if chosen.get("forest") == "trees":
        chosen["forest"] = forest(rng(seed), 9, 3, len(kernels.FEATURES))
    return make_plan(seed, **chosen)


@pytest.mark.parametrize("chosen", VARIANTS)
@holds(seed=seeds, kind=masks, parts=st.booleans())
def test_both_backends_find_the_same(jit, chosen, seed, kind, parts):
    view, plan = make_view(seed, kind=kind, parts=parts, tokens=True), variant(seed, chosen)
    assert_both_find_the_same(jit, view, plan, make_asking(seed, by_vector=plan.by_vector == 1, tokens=True))


def assert_both_find_the_same(jit, view, plan, asking):
    found = []
    for backend in (python_backend, jit):
        before, dispatch.active = dispatch.active, backend
        try:
            hits = recall(view, plan, asking)
        finally:
            dispatch.active = before
        found.append([told(hits, query) for query in range(1 if plan.shared else len(asking.counting))])
    for one, other in zip(*found, strict=True):
        assert one.figures == other.figures
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-5, atol=1e-5)
        if (np.abs(np.diff(one.scores)) > 1e-4).all():  # no near ties
            assert one.rows == other.rows
            np.testing.assert_allclose(one.confidence, other.confidence, rtol=1e-4, atol=1e-5)
            assert one.successors == other.successors
            assert one.held == other.held


def odd_graph(kind, n):
    """A graph of itself, of one row with hundreds of links, or of sources whose numbers share their low bits."""
    none, rows = np.full(n, -1, np.int32), np.arange(n, dtype=np.int32)
    links = np.arange(900, dtype=np.int32)
    previous, following, sources, heads, nexts, targets = none, none, none, none, links[:0], links[:0]
    if kind == "itself":
        previous, following, sources, heads, nexts, targets = rows, rows, rows, rows, none, rows
    elif kind == "links":
        heads, nexts, targets = np.where(rows % 7 == 0, len(links) - 1, -1).astype(np.int32), links - 1, links % n
    else:
        previous, following = np.where(rows % 2, rows - 1, -1), np.where(rows % 2, -1, rows + 1)
        sources = rows // 2 * int(kind)
    chains = (each.astype(np.int32) for each in (previous, following, sources, heads, nexts, targets))
    return kernels.Graph(*chains, np.full(len(targets), 0.5, np.float32), np.empty(0, np.uint8))


@pytest.mark.parametrize("kind", ["itself", "links", "2048", "65536", "4194304"])
def test_both_backends_find_the_same_by_an_odd_graph(jit, kind):
    for seed in range(5):
        view = make_view(seed, n=400)
        plan = make_plan(wanted=100, limit=200, final=200, parameters=parameters(expansion_depth=20))
        assert_both_find_the_same(jit, view._replace(graph=odd_graph(kind, 400)), plan, make_asking(seed))


SUM = parameters(
    weighted_sum=1, semantic_weight=0.5, recency_weight=0.3, neighbor_weight=0.0, source_weight=0.0, expansion_depth=0,
    decay_floor=0.0, half_life_days=30.0, speaker_weight=0.0, date_weight=0.0,
)  # fmt: skip


@pytest.mark.usefixtures("backend")
@holds(
    seed=seeds, kind=masks, parts=st.booleans(), wanted=st.sampled_from([1, 3]), grouped=st.integers(0, 1),
    changed=st.sampled_from(
        [{}, {"keyword_weight": 0.0, "keyword_fallback": 1}, {"keyword_fallback": 1}, {"exponential": 1},
         {"semantic_weight": 5.0}, {"recency_weight": 0.0}, {"half_life_days": math.inf}, {"semantic_weight": 0.0}]
    ),
)  # fmt: skip
def test_the_best_by_a_weighted_sum_are_those_of_all_visible_rows(seed, kind, parts, wanted, grouped, changed):
    view, asking, p = make_view(seed, kind=kind, parts=parts), make_asking(seed), SUM._replace(**changed)
    plan = make_plan(exact=1, exhaustive=1, top=4, limit=4, final=4, wanted=wanted, grouped=grouped, parameters=p)
    hits, records, visible = recall(view, plan, asking), plain(view.records), view.graph.mask
    for query in range(len(asking.counting)):
        one = only(asking, query)
        _, bm25 = words_by_hand(view, one)
        every = [row for row in range(len(bm25)) if not len(visible) or visible[row]]
        lists, _ = lists_by_hand(view, plan._replace(wanted=len(bm25)), one, bm25)
        cosines = dict(zip(lists.vector_rows, lists.cosines, strict=True))
        own = [bm25[row] for row in every]
        fused = oracle.fuse(every, [cosines.get(row, 0.0) for row in every], own, view.vectors.parts, records.keys, p)
        best = {}
        for row, similarity in zip(every, fused, strict=True):
            age, form = (p.clock - records.created_at[row]) / DAY_US, "exp" if p.exponential else "half_life"
            recency = oracle.decay(age, p.half_life_days, p.decay_floor, form)
            weights = p.semantic_weight, p.recency_weight, p.importance_weight
            total = oracle.weighted_sum(similarity, recency, records.importance[row], *weights)
            source = view.graph.sources[row].item()
            group = source if grouped and source >= 0 else f"row {row}"
            if row in cosines or similarity > 0:
                best[group] = max(best.get(group, 0.0), total)
        count = hits.figures[query, FIGURE.hits]
        wanted_scores = sorted(best.values(), reverse=True)[:4]
        assert count == len(wanted_scores)
        np.testing.assert_allclose(hits.scores[query, :count], wanted_scores, atol=2e-5)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("chosen", [each for each in VARIANTS if not each.get("shared")])
def test_a_question_finds_the_same_alone_and_among_others(chosen):
    for seed in range(4):
        view, plan = make_view(seed, tokens=True), variant(seed, chosen)
        asking = make_asking(seed, questions=5, by_vector=plan.by_vector == 1, tokens=True)
        together = recall(view, plan, asking)
        for query in range(5):
            alone, among = told(recall(view, plan, only(asking, query))), told(together, query)
            longest = len(alone.held[0]) if alone.held else 0
            among.held = [each[:longest] for each in among.held]
            assert vars(alone).keys() == vars(among).keys()
            for name, value in vars(alone).items():
                np.testing.assert_array_equal(value, getattr(among, name), err_msg=name)


@pytest.mark.usefixtures("backend")
def test_an_empty_index_and_questions_without_words_have_answers():
    for n in (0, 1, 2):
        view, asking = make_view(0, n=n), make_asking(0)
        for chosen in VARIANTS:
            plan = variant(0, chosen)
            if plan.by_vector == 0:
                continue
            hits = recall(view, plan, asking)
            assert hits.figures[0, FIGURE.hits] <= n


@pytest.mark.usefixtures("backend")
def test_values_that_are_not_finite_are_refused():
    """By the kernel itself, which measures them."""
    view, asking = make_view(1), make_asking(1)
    scales = view.vectors.scales.copy()
    scales[:] = np.nan
    with pytest.raises(kernels.KernelError, match="codes"):
        recall(view._replace(vectors=view.vectors._replace(scales=scales)), make_plan(), asking, checked=True)
    lengths = np.full_like(view.terms.lengths, np.nan)
    several = next(only(asking, query) for query in range(3) if (only(asking, query).numbers >= 0).any())
    with pytest.raises(kernels.KernelError, match="postings"):
        recall(view._replace(terms=view.terms._replace(lengths=lengths)), make_plan(), several, checked=True)
    asked = np.full_like(asking.vectors, np.inf)
    with pytest.raises(kernels.KernelError, match="queries"):
        recall(view, make_plan(), asking._replace(vectors=asked), checked=True)


def test_reasons_of_the_engine_follow_those_of_the_kernel():
    composition = importlib.import_module("recallite_kernels.composition")
    from recallite.model.match_reasons import CHANGE_BIT, MATCH_REASONS, STANDING_BIT

    assert MATCH_REASONS[: len(REASONS)] == REASONS
    assert (composition.CHANGED, composition.STANDING) == (CHANGE_BIT, STANDING_BIT)


def test_all_signals_of_a_candidate_are_read():
    composition = importlib.import_module("recallite_kernels.composition")
    assert composition.signals_at(np.arange(len(AT))[:, None], 0) == tuple(AT)
