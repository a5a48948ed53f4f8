"""Numbers at the ends of their types, rows out of order, graphs that lead nowhere: both backends give the same result,
which is finite and that of the definition, or both raise KernelError.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels import KernelError
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import forest, holds, postings, rng, seeds
from tests.unit.kernels.test_backends_agree import both
from tests.unit.kernels.test_rank import parameters
from tests.unit.kernels.test_recall import make_asking, make_plan, make_view, recall, told

WIDE = [0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e-308, 1e-30, 1e30, 1e100, 1e200, 1e308, -1e308, np.inf, -np.inf, np.nan]
FINITE = [value for value in WIDE if math.isfinite(value)]
NARROW = np.array([0, 1, -1, 0.5, 1e-45, 1e-30, 1e30, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32)
WHOLE = np.array([0, 1, -1, 2, 10**6, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63)])
wide = st.sampled_from(WIDE)


def answers(jit, call):
    """What both backends answer, no warning among it; None where both refuse."""

    def attempt():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return call()
        except KernelError:
            return None

    one, other = both(jit, attempt)
    assert (one is None) == (other is None)
    return None if one is None else (one, other)


def assert_alike(one, other, **tolerance):
    assert np.isfinite(one).all()
    np.testing.assert_allclose(one, other, **tolerance)


def assert_same_signals(one, other):
    """To the float32 of cosine and BM25, which a great weight multiplies."""
    scale = np.maximum(np.abs(one).max(axis=1, initial=0), 1.0)[:, None]
    assert_alike(one / scale, other / scale, rtol=0, atol=1e-5)


def assume_no_near_ties(signals):
    """Pass over questions whose BM25 or cosines differ by less than float32 holds: their ranks may differ."""
    for values in signals[:, :2].T:
        gaps = np.diff(np.sort(values)) / max(1.0, np.abs(values).max(initial=0))
        assume(not ((gaps > 0) & (gaps < 1e-6)).any())


@holds(seed=seeds, signals=st.integers(0, 3), k=wide, share=st.sampled_from([0.0, 0.3, 1.0]))
def test_reciprocal_rank_fusion(jit, seed, signals, k, share):
    generator = rng(seed)
    ranks = generator.choice(np.array([0, 1, 2, 10**6, 2**62, 2**63 - 1]), (signals, 5))
    weights = np.where(generator.random(signals) < share, generator.choice(np.array(WIDE), signals), 1.0)
    found = answers(jit, lambda: kernels.reciprocal_rank_fusion(ranks, weights, k))
    if found is not None:
        assert found[0].tobytes() == found[1].tobytes()
        wanted = oracle.reciprocal_rank_fusion(ranks.tolist(), weights.tolist(), k) if signals else np.zeros(5)
        assert_alike(found[0], wanted, rtol=1e-12)


@holds(ages=st.lists(wide, max_size=4), half_life=wide, floor=st.sampled_from([0.0, 0.5, 1.0, 2.0, np.nan]))
def test_decay(jit, ages, half_life, floor):
    for form in ("half_life", "exp"):
        found = answers(jit, lambda form=form: kernels.decay(np.array(ages, np.float64), half_life, floor, form))
        if found is not None:
            assert_alike(*found, rtol=1e-12)
            assert_alike(found[0], [oracle.decay(age, half_life, floor, form) for age in ages], rtol=1e-12, atol=1e-300)


@holds(seed=seeds, relevance=st.lists(wide, max_size=6), mmr_lambda=wide)
def test_maximal_marginal_relevance(jit, seed, relevance, mmr_lambda):
    generator = rng(seed)
    sets = [np.unique(generator.integers(0, 5, generator.integers(0, 4))) for _ in relevance]
    token_ids = np.concatenate([*sets, []]).astype(np.int32)
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    arguments = np.array(relevance, np.float64), token_ids, offsets, mmr_lambda, 4
    found = answers(jit, lambda: kernels.maximal_marginal_relevance(*arguments))
    if found is not None:
        wanted = oracle.maximal_marginal_relevance(relevance, [set(each.tolist()) for each in sets], mmr_lambda, 4)
        assert found[0].tolist() == found[1].tolist() == wanted


@holds(seed=seeds, d=st.sampled_from([1, 63, 65, 384]), share=st.sampled_from([0.0, 0.01, 1.0]))
def test_sketches(jit, seed, d, share):
    generator = rng(seed)
    vectors = generator.standard_normal((3, d)).astype(np.float32)
    spoilt = generator.random((3, d)) < share
    vectors[spoilt] = generator.choice(NARROW, int(spoilt.sum()))
    found = answers(jit, lambda: kernels.sketch(vectors))
    assert (found is None) == (not np.isfinite(vectors).all())
    if found is not None:
        assert found[0].tolist() == found[1].tolist() == oracle.sketch(vectors)


@holds(
    seed=seeds, n=st.sampled_from([1, 9, 5000]), spoilt=st.sampled_from([0, 1, 3]), size=st.sampled_from([1, 4, 9999])
)
def test_allowed_rows(jit, seed, n, spoilt, size):
    """Also out of order, twice, and out of range anywhere."""
    generator = rng(seed)
    sketches = generator.integers(0, 4, (n, 6), np.uint64)
    blocks = kernels.sketch_blocks(sketches)
    allowed = generator.integers(0, n, generator.integers(1, 2 * n + 1))
    at = generator.integers(0, len(allowed), spoilt)
    allowed[at] = generator.choice(np.array([-(-n // 16) * 16, -1, 2**62, -(2**63)]), spoilt)
    start, stop = np.sort(generator.integers(0, len(allowed) + 1, 2)).tolist()
    found = answers(jit, lambda: kernels.hamming_shortlist(sketches[:1], blocks, allowed, start, stop, size))
    own = allowed[start:stop]
    assert (found is None) == bool(((own < 0) | (own >= 16 * len(blocks))).any())
    if found is not None:
        truth = oracle.hamming(sketches[0].tolist(), sketches.tolist())
        places = sorted(range(len(own)), key=lambda place: (truth[own[place]], place))[:size]
        for rows, distances in found:
            assert rows.tolist() == [own[places].tolist()]
            assert distances.tolist() == [[truth[row] for row in own[places]]]


def spoil_rows(generator, query, n):
    """Postings of which a slice may be out of order or of range, and whether one is."""
    rows = query.rows.copy()
    for start, end in zip(query.starts.tolist(), query.ends.tolist(), strict=True):
        if start < end and generator.random() < 0.2:
            at = generator.integers(start, end)
            rows[at] = generator.choice(np.array([n, -1, 0, n // 2, 2**31 - 1, -(2**31)]))
    good = True
    for start, end in zip(query.starts.tolist(), query.ends.tolist(), strict=True):
        own = rows[start:end].astype(np.int64)
        good &= bool((np.diff(own) > 0).all()) and bool(((own >= 0) & (own < n)).all())
    return query._replace(rows=rows), good


@holds(seed=seeds, n=st.sampled_from([1, 2, 40]), slices=st.sampled_from([1, 3]))
def test_rows_of_slices(jit, seed, n, slices):
    generator = rng(seed)
    query, good = spoil_rows(generator, postings(generator, n, [3, 0, 2], slices), n)

    def top():
        scratch = np.zeros(n, np.float32)
        try:
            _, scores, counts = kernels.bm25_top_k(query, None, scratch, 5)
        finally:
            assert not scratch.any()
        return np.concatenate([scores[q, : counts[q]] for q in range(3)])

    found = answers(jit, top)
    assert (found is not None) == good
    if found is not None:
        assert_alike(*found, rtol=1e-5, atol=1e-6)


@holds(
    seed=seeds, k1=wide, b=st.sampled_from([0.0, 0.75, 1.0, np.nan]), average=wide, share=st.sampled_from([0.0, 0.2])
)
def test_parameters_of_bm25(jit, seed, k1, b, average, share):
    generator = rng(seed)
    query = postings(generator, 30, [3])._replace(k1=k1, b=b, average_length=average)
    for values in (query.idf, query.lengths):
        spoilt = generator.random(len(values)) < share
        values[spoilt] = generator.choice(NARROW, int(spoilt.sum()))

    def top():
        scores, counts = kernels.bm25_top_k(query, None, np.zeros(30, np.float32), 30)[1:]
        return scores[0, : counts[0]]

    found = answers(jit, top)
    if found is not None:
        assert_alike(*found, rtol=1e-4, atol=1e-6)


@holds(seed=seeds, name=st.sampled_from(kernels.RankParameters._fields), value=wide, summed=st.booleans())
def test_parameters_of_a_ranking(jit, seed, name, value, summed):
    whole = name in ("clock", "expansion_depth", "exponential", "keyword_fallback", "weighted_sum", "rerank_depth")
    value = int(rng(seed).choice(WHOLE)) if whole else value
    chosen = parameters(weighted_sum=int(summed), semantic_weight=0.5)._replace(**{name: value})
    # Of whole numbers of any size those are left out for which a plan has no room.
    assume(name not in ("expansion_depth", "rerank_depth") or value <= 10**6)
    found = answers(jit, lambda: recalled(make_view(seed, 20), make_asking(seed), parameters=chosen))
    if found is not None:
        assert_same_hits(*found)
    if name in ("near", "far", "lone_share", "neighbor_weight", "date_weight"):
        assert (found is not None) == (0.0 <= value <= 1e100)


@pytest.mark.parametrize(
    "spoilt",
    ["strengths", "importance", "created_at", "moments", "moments_until", "previous", "following", "heads", "nexts",
     "targets", "sources", "first_place", "parts", "scales", "lengths"],
)  # fmt: skip
@holds(
    seed=seeds, checked=st.booleans(),
    profile=st.sampled_from([{}, {"rrf_k": 60.0}, {"weighted_sum": 1, "semantic_weight": 1.0}]),
)  # fmt: skip
def test_values_of_an_index(jit, spoilt, seed, checked, profile):
    """Refused by the checks, or by the kernel as it reads them; places are known to be there if nothing is checked."""
    generator = rng(seed)
    view = make_view(seed, 20)
    assume(not checked or spoilt not in ("first_place", "parts"))
    for place, group in view._asdict().items():
        if spoilt in getattr(group, "_fields", ()):
            values = getattr(group, spoilt).copy()
            some = generator.random(values.shape) < 0.15
            ends = NARROW.astype(values.dtype) if values.dtype.kind == "f" else WHOLE
            ends = np.append(ends, [-5, 19, 20]) if values.dtype.kind == "i" else ends
            values[some] = generator.choice(ends, int(some.sum())).astype(values.dtype)
            if checked and spoilt == "lengths":  # the checks refuse negative ones, whose scores depend on rounding
                values = np.abs(values)
            view = view._replace(**{place: group._replace(**{spoilt: values})})
    found = answers(jit, lambda: recalled(view, make_asking(seed), checked, parameters=parameters(**profile)))
    if found is not None:
        assert_same_hits(*found)


def recalled(view, asking, checked=False, **chosen):
    """The hits of each question: all candidates."""
    hits = recall(view, make_plan(limit=200, final=200, **chosen), asking, checked=checked)
    return [told(hits, query) for query in range(len(asking.counting))]


def assert_same_hits(one, other):
    for mine, its in zip(one, other, strict=True):
        assert sorted(mine.rows) == sorted(its.rows)
        assume_no_near_ties(mine.signals)
        assume_no_near_ties(its.signals)
        places, others = np.argsort(mine.rows), np.argsort(its.rows)
        assert_same_signals(mine.signals[places].T, its.signals[others].T)


@holds(seed=seeds, share=st.sampled_from([0.1, 0.5]))
def test_forests(jit, seed, share):
    generator = rng(seed)
    some = forest(generator, 9, 3, features=4)
    thresholds, leaves = some.thresholds.copy(), some.leaves.copy()
    for values in (thresholds, leaves):
        spoilt = generator.random(values.shape) < share * 0.1
        values[spoilt] = generator.choice(np.array(WIDE), int(spoilt.sum()))
    features = generator.choice(np.array(FINITE), (4, 6))
    found = answers(jit, lambda: kernels.forest_scores(features, some._replace(thresholds=thresholds, leaves=leaves)))
    if found is not None:
        assert_alike(*found, rtol=0)
        wanted = oracle.forest_scores(features.T.tolist(), some.nodes.tolist(), thresholds.tolist(), leaves.tolist())
        assert_alike(found[0], wanted, rtol=1e-12)
