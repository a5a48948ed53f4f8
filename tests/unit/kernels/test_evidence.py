from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from recallite_kernels import EVIDENCE, REASONS, SIGNALS
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import holds, rng, seeds, weighed
from tests.unit.kernels.stages import assess

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
    found = assess(*given)
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
        found = assess(signals, given[1], given[2]._replace(signals=signals), *given[3:])
        assert found.evidence[EVIDENCE.other_cosine].tolist() == others
