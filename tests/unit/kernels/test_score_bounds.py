"""Nothing that may reach the floor is left out, and what cannot is not read."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels import python_backend
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import holds, mask, rng, seeds, vectors

pytestmark = pytest.mark.usefixtures("backend")
DAY_US = 86_400_000_000
D = 16


def parameters(**changed):
    return kernels.RankParameters(
        vector_weight=1.0, keyword_weight=0.0, rrf_k=-1.0, expansion_depth=0, neighbor_weight=0.0, source_weight=0.0,
        near=1.0, far=0.7, lone_share=0.8, clock=400 * DAY_US, half_life_days=30.0, decay_floor=0.0, exponential=0,
        importance_weight=0.2, keyword_fallback=1, weighted_sum=1, semantic_weight=0.5, recency_weight=0.3,
    )._replace(**changed)  # fmt: skip


def case(seed, queries, n, kind, with_codes):
    generator = rng(seed)
    parts = generator.integers(0, 3, n).astype(np.int32)
    first_place = (np.cumsum(parts) - parts).astype(np.int64)
    exact = vectors(generator, int(parts.sum()), D, zeros=False)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    codes, scales = kernels.quantize_int8(exact)
    asked = vectors(generator, queries, D, zeros=False)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    records = kernels.Records(
        np.arange(n),
        generator.integers(0, 420 * DAY_US, n),
        generator.random(n).astype(np.float32),
        np.zeros(n, np.int64),
        np.full(n, kernels.NEVER),
        np.zeros(n, np.uint8),
        np.full((n, 2), -1, np.int32),
    )
    rows = [np.flatnonzero(generator.random(n) < 0.1) for _ in range(queries)]
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    measured = kernels.Codes(asked, np.zeros(queries, np.float32), first_place, parts, codes, scales)
    held = np.concatenate([np.empty(0, np.int64), *rows]).astype(np.int64)
    allowed = mask(generator, n, kind)
    return offsets, held, measured if with_codes else None, exact, records, allowed


def bounds(query, row, codes, exact, records, chosen, word_ceiling):
    """The least and the greatest score that a row may have by what it is allowed to say, in float64."""
    age = (chosen.clock - int(records.created_at[row])) / DAY_US
    recency = oracle.decay(age, chosen.half_life_days, chosen.decay_floor, "exp" if chosen.exponential else "half_life")
    share = chosen.vector_weight / (chosen.vector_weight + chosen.keyword_weight)
    if codes is None or codes.parts[row] == 0:
        greatest = word_ceiling if chosen.keyword_fallback else (1 - share) * word_ceiling
    else:
        places = range(codes.first_place[row], codes.first_place[row] + codes.parts[row])
        cosine = max(oracle.dot(codes.queries[query], exact[place]) for place in places)
        greatest = share * max(cosine, 0.0) + (1 - share) * word_ceiling
    return oracle.weighted_sum(
        greatest, recency, float(records.importance[row]), chosen.semantic_weight, chosen.recency_weight,
        chosen.importance_weight,
    )  # fmt: skip


@holds(
    seed=seeds,
    queries=st.sampled_from([0, 1, 3]),
    kind=st.sampled_from(["none", "half", "few"]),
    with_codes=st.booleans(),
    word_ceiling=st.sampled_from([0.0, 0.3, 1.0]),
    changed=st.sampled_from(
        [
            {}, {"keyword_weight": 0.5}, {"keyword_fallback": 0}, {"semantic_weight": 0.0}, {"recency_weight": 0.0},
            {"half_life_days": math.inf}, {"exponential": 1, "decay_floor": 0.2}, {"semantic_weight": 5.0},
        ]
    ),
)  # fmt: skip
def test_every_row_that_may_reach_the_floor_is_found(seed, queries, kind, with_codes, word_ceiling, changed):
    offsets, held, codes, exact, records, allowed = case(seed, queries, 80, kind, with_codes)
    chosen = parameters(**changed)
    generator = rng(seed + 1)
    floors = generator.random(queries)
    ceilings = np.full(queries, word_ceiling)
    ends, found = kernels.score_bound_candidates(offsets, held, floors, ceilings, codes, None, allowed, records, chosen)
    assert ends[0] == 0
    for query in range(queries):
        own = found[ends[query] : ends[query + 1]].tolist()
        known = set(held[offsets[query] : offsets[query + 1]].tolist())
        assert own == sorted(set(own) - known)
        for row in range(80):
            visible = row not in known and (allowed is None or allowed[row])
            bare = codes is None or codes.parts[row] == 0
            score = bounds(query, row, codes, exact, records, chosen, word_ceiling)
            evidence = (
                not bare or (word_ceiling if chosen.keyword_fallback else word_ceiling * chosen.keyword_weight) > 0
            )
            if visible and evidence and score >= floors[query]:
                assert row in own
            # Half a step of each of 16 codes moves a cosine by 0.016 at most, the table of decays a decay by 0.011.
            if row in own:
                assert visible
                assert evidence
                assert score >= floors[query] - 0.06


@holds(seed=seeds)
def test_sketches_that_are_too_far_away_save_reading_codes(seed):
    offsets, held, codes, _, records, _ = case(seed, 2, 80, "none", True)
    exact = codes.codes.astype(np.float32) * codes.scales[:, None]
    sketches = kernels.sketch(exact), kernels.sketch(codes.queries)
    blocks = kernels.sketch_blocks(sketches[0])
    rest = offsets, held, np.full(2, 0.4), np.zeros(2), codes
    whole = kernels.score_bound_candidates(*rest, None, None, records, parameters())
    near_enough = kernels.Sketches(sketches[1], blocks, np.full(101, D, np.int64))
    for one, other in zip(
        whole, kernels.score_bound_candidates(*rest, near_enough, None, records, parameters()), strict=True
    ):
        assert one.tolist() == other.tolist()
    none_near = kernels.Sketches(sketches[1], blocks, np.full(101, -1, np.int64))
    by_rest = kernels.score_bound_candidates(*rest, none_near, None, records, parameters())
    # What reaches the floor without any similarity needs no code; all else is skipped.
    floors = np.array([0.4, 0.4])
    alone = [
        row
        for query in range(2)
        for row in range(80)
        if row not in held[offsets[query] : offsets[query + 1]] and codes.parts[row]
        and bounds(query, row, codes, -exact * 0, records, parameters(), 0.0) >= floors[query]
    ]  # fmt: skip
    assert len(alone) <= len(by_rest[1]) <= len(whole[1])


@holds(
    seed=seeds,
    kind=st.sampled_from(["none", "half"]),
    ordered=st.booleans(),
    floor=st.sampled_from([0.2, 0.5, 0.7, 0.85]),
    changed=st.sampled_from([{}, {"keyword_weight": 0.5}, {"semantic_weight": 0.0}, {"half_life_days": math.inf}]),
)
def test_whole_blocks_of_records_with_one_vector_each(seed, kind, ordered, floor, changed):
    generator, n = rng(seed), 2600
    exact, asked = vectors(generator, n, D, zeros=False), vectors(generator, 1, D, zeros=False)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    codes, scales = kernels.quantize_int8(exact)
    measured = kernels.Codes(
        asked / np.linalg.norm(asked), np.zeros(1, np.float32), np.arange(n), np.ones(n, np.int32), codes, scales
    )
    made, importance = generator.integers(0, 420 * DAY_US, n), generator.random(n).astype(np.float32)
    importance[generator.random(n) < 0.01] = np.nan
    records = kernels.Records(
        np.arange(n), np.sort(made) if ordered else made, importance, np.zeros(n, np.int64),
        np.full(n, kernels.NEVER), np.zeros(n, np.uint8), np.full((n, 2), -1, np.int32),
    )  # fmt: skip
    limits = (D * np.arccos(np.arange(101) / 100) / np.pi + 3).astype(np.int64)
    blocks = kernels.sketch_blocks(kernels.sketch(exact))
    sketches = kernels.Sketches(kernels.sketch(measured.queries), blocks, limits)
    known, allowed = np.sort(generator.choice(n, 40, replace=False)), mask(generator, n, kind)
    allowed = np.ones(n, np.uint8) if allowed is None else allowed
    chosen = kernels.check_parameters(parameters(**changed))

    def of(floor, function):
        known_and_bounds = np.array([0, 40]), known, np.array([floor]), np.array([0.1])
        return set(function(*known_and_bounds, measured, sketches, allowed, records, chosen)[1].tolist())

    found = of(floor, kernels.score_bound_candidates)
    assert of(floor, python_backend.score_bound_candidates) <= found
    # The table of decays gives at most 0.011 too much.
    assert found <= of(floor - 0.011 * chosen.recency_weight, python_backend.score_bound_candidates)


def test_arguments_that_make_no_sense_are_refused():
    offsets, held, codes, _, records, _ = case(1, 2, 30, "none", True)
    good = offsets, held, np.zeros(2), np.zeros(2), codes, None, None, records

    def refused(match, place, value, chosen=None):
        arguments = [*good[:place], value, *good[place + 1 :]]
        with pytest.raises(kernels.KernelError, match=match):
            kernels.score_bound_candidates(*arguments, chosen or parameters())

    refused("floors", 2, np.full(2, np.nan))
    refused("word_ceilings", 3, np.full(2, np.nan))
    refused("rows", 1, held + 30)
    refused("parameters", 2, np.zeros(2), parameters(weighted_sum=0))
    refused("parameters", 2, np.zeros(2), parameters(rrf_k=60.0))
    refused("a place that is not there", 4, codes._replace(first_place=codes.first_place + 1000))
    sketches = kernels.Sketches(np.zeros((2, 1), np.uint64), np.zeros((9, 1, 16), np.uint64), np.zeros(5, np.int64))
    refused("sketches", 5, sketches)


def test_records_of_one_vector_each_need_no_places():
    offsets, held, codes, _, records, _ = case(7, 2, 3000, "none", True)
    exact = vectors(rng(7), 3000, D, zeros=False)
    int8, scales = kernels.quantize_int8(exact)
    listed = codes._replace(
        first_place=np.arange(3000), parts=np.ones(3000, np.int32), codes=int8, scales=scales * np.float32(0.1)
    )
    empty = listed._replace(first_place=np.empty(0, np.int64), parts=np.empty(0, np.int32))
    blocks = kernels.sketch_blocks(kernels.sketch(exact))
    near = kernels.Sketches(kernels.sketch(codes.queries), blocks, np.linspace(D // 2, 0, 101).astype(np.int64))
    for sketches in (None, near):
        wanted, found = (
            kernels.score_bound_candidates(
                offsets, held, np.full(2, 0.4), np.zeros(2), each, sketches, None, records, parameters()
            )
            for each in (listed, empty)
        )
        assert 0 < len(wanted[1]) < 6000
        assert [each.tolist() for each in found] == [each.tolist() for each in wanted]
