from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels import EVIDENCE, REASONS, SIGNALS, KernelError
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import holds, rng, seeds, weighed

pytestmark = pytest.mark.usefixtures("backend")
COMPARED = ("cosine", "bm25", "similarity", "speaker")
PARAMETERS = (
    {},
    {"keyword_fallback": 1, "speaker_weight": 0.3, "date_weight": 0.2},
    {"weighted_sum": 1, "semantic_weight": 0.5, "recency_weight": 0.3, "date_weight": 0.5},
    {"weighted_sum": 1, "semantic_weight": 0.5, "half_life_days": np.inf},
)


@holds(
    seed=seeds,
    sizes=st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 40]), st.integers(0, 5)), max_size=4),
    changed=st.sampled_from(PARAMETERS),
)
def test_a_record_is_weighed_by_its_words_and_beside_the_best_other_candidate(seed, sizes, changed):
    given = weighed(rng(seed), [one for one, _ in sizes], [other for _, other in sizes], changed)
    signals, offsets, group, slices, weights, word_weights, parameters = given
    found = kernels.assess(*given)
    queries, met, wanted = [], set(), []
    for query, (first, stop) in enumerate(pairwise(offsets.tolist())):
        words = range(*slices.word_offsets[query : query + 2])
        holders = {
            word: {
                row
                for each in range(*slices.slice_offsets[query : query + 2])
                if slices.words[each] == word
                for row in slices.rows[slices.starts[each] : slices.ends[each]].tolist()
            }
            for word in words
        }
        mass = sum(float(slices.idf[word]) for word in words) + group.unknown[query]
        own = range(*group.offsets[query : query + 2])
        every = [dict(zip(SIGNALS._fields, group.signals[:, i].tolist(), strict=True)) for i in own]
        held = [{word for word in words if group.rows[i] in holders[word]} for i in own]
        met.update(*held)
        queries.append(
            {
                "candidates": [
                    {name: signals[getattr(SIGNALS, name), i] for name in COMPARED} for i in range(first, stop)
                ],
                "weighed": [
                    {
                        **each,
                        "coverage": sum(float(slices.idf[word]) for word in words) / mass if mass else 0.0,
                        "length": group.lengths[i],
                        "rank": group.ranks[i],
                    }
                    for i, each, words in zip(own, every, held, strict=True)
                ],
                "words": group.words[query],
                "records": group.records,
            }
        )
        best = max(signals[SIGNALS.bm25, first:stop], default=0.0)
        wanted += [
            (query, each, oracle.reasons(each, best if best > 0 else 1.0, parameters._asdict())) for each in every
        ]
    evidence = oracle.evidence(queries)
    assert found.evidence.shape == (len(EVIDENCE), group.signals.shape[1])
    np.testing.assert_allclose(found.evidence.T, np.reshape(evidence, found.evidence.T.shape), rtol=1e-12, atol=1e-15)
    chances = [
        oracle.confidence(each, (word_weights if own["cosine"] == 0 else weights[query]).tolist())
        for each, (query, own, _) in zip(evidence, wanted, strict=True)
    ]
    np.testing.assert_allclose(found.confidence, chances, rtol=1e-9)
    assert [_named(bits) for bits in found.reasons.tolist()] == [each for *_, each in wanted]
    assert set(np.flatnonzero(found.held.any(axis=0)).tolist()) == met


def _named(bits):
    return {name for bit, name in enumerate(REASONS) if bits >> bit & 1}


def test_the_best_is_weighed_beside_the_second_best_and_twins_beside_each_other():
    for cosines, others in (([0.9, 0.4, 0.1], [0.4, 0.9, 0.9]), ([0.9, 0.9, 0.1], [0.9, 0.9, 0.9]), ([0.9], [0.0])):
        given = weighed(rng(3), [len(cosines)], [len(cosines)])
        signals = np.zeros((len(SIGNALS), len(cosines)))
        signals[SIGNALS.cosine] = cosines
        found = kernels.assess(signals, given[1], given[2]._replace(signals=signals), *given[3:])
        assert found.evidence[EVIDENCE.other_cosine].tolist() == others


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"offsets": np.array([0, 3])}, "weighed.offsets: not CSR offsets"),
        ({"rows": np.array([0, -1])}, "weighed.rows: holds -1"),
        ({"lengths": np.zeros(3, np.float32)}, r"weighed.lengths: shape \(3,\); wanted \(2\)"),
        ({"words": np.array([np.nan])}, "weighed.words: nan"),
        ({"unknown": np.array([np.inf])}, "weighed.unknown: inf"),
        ({"signals": np.zeros((2, 2))}, "weighed.signals: shape"),
    ],
)
def test_what_cannot_be_weighed_is_refused(changed, message):
    signals, offsets, group, *others = weighed(rng(1), [4], [2])
    with pytest.raises(KernelError, match=message):
        kernels.assess(signals, offsets, group._replace(**changed), *others)
    with pytest.raises(KernelError, match="signals: nan"):
        kernels.assess(np.full_like(signals, np.nan), offsets, group, *others)


def test_slices_and_weights_that_do_not_fit_are_refused():
    signals, offsets, group, slices, weights, word_weights, parameters = weighed(rng(5), [4, 3], [2, 2])
    for others, message in (
        ((slices._replace(words=slices.words + 90), weights, word_weights), "slices.words: holds"),
        ((slices._replace(ends=slices.ends + 2**40), weights, word_weights), "starts, ends: a slice is out of order"),
        ((slices, weights[:1].copy(), word_weights), r"weights: shape \(1, 15\); wanted \(2, 15\)"),
        ((slices, weights, word_weights * np.nan), "word_weights: nan"),
    ):
        with pytest.raises(KernelError, match=message):
            kernels.assess(signals, offsets, group, *others, parameters)
