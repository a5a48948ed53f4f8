from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from recallite_kernels import EVIDENCE, REASONS, SIGNALS
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import holds, plain, rng, seeds, weighed
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
    candidates=st.sampled_from([0, 1, 2, 3, 40]),
    hits=st.integers(0, 5),
    changed=st.sampled_from(PARAMETERS),
)
def test_a_record_is_weighed_by_its_words_and_beside_the_best_other_candidate(seed, candidates, hits, changed):
    given = weighed(rng(seed), candidates, hits, changed)
    signals, group, slices, weights, word_weights, parameters = given
    found = assess(*given)
    every = [dict(zip(SIGNALS._fields, values, strict=True)) for values in group.signals.T.tolist()]
    carried, contained = oracle.word_coverage(*plain(slices), group.rows.tolist())
    every_idf = [(float(idf), role) for idf, role in zip(slices.idf, slices.roles, strict=True)]
    mass, content, names = (sum(idf for idf, role in every_idf if role in of) for of in ((0, 1, 2), (1,), (2,)))
    query = {
        "candidates": [
            {name: signals[getattr(SIGNALS, name), i] for name in COMPARED} for i in range(signals.shape[1])
        ],
        "weighed": [
            {
                **each,
                "coverage": share[0] / mass if mass else 0.0,
                "content": share[1] / content if content else 0.0,
                "unnamed": (names - share[2]) / mass if mass else 0.0,
                "length": length,
                "rank": rank,
            }
            for each, share, length, rank in zip(every, carried, group.lengths, group.ranks, strict=True)
        ],
        "words": group.words,
        "records": group.records,
    }
    evidence = oracle.evidence(query)
    assert found.evidence.shape == (len(EVIDENCE), hits)
    np.testing.assert_allclose(found.evidence.T, np.reshape(evidence, found.evidence.T.shape), rtol=1e-12, atol=1e-15)
    chances = [
        oracle.confidence(each, (word_weights if own["cosine"] == 0 else weights).tolist())
        for each, own in zip(evidence, every, strict=True)
    ]
    np.testing.assert_allclose(found.confidence, chances, rtol=1e-9)
    best = max(signals[SIGNALS.bm25], default=0.0)
    wanted = [oracle.reasons(each, best if best > 0 else 1.0, parameters._asdict()) for each in every]
    assert [_named(bits) for bits in found.reasons.tolist()] == wanted
    assert found.contained.tolist() == contained


def _named(bits):
    return {name for bit, name in enumerate(REASONS) if bits >> bit & 1}


def test_the_best_is_weighed_beside_the_second_best_and_twins_beside_each_other():
    for cosines, others in (([0.9, 0.4, 0.1], [0.4, 0.9, 0.9]), ([0.9, 0.9, 0.1], [0.9, 0.9, 0.9]), ([0.9], [0.0])):
        given = weighed(rng(3), len(cosines), len(cosines))
        signals = np.zeros((len(SIGNALS), len(cosines)))
        signals[SIGNALS.cosine] = cosines
        found = assess(signals, given[1]._replace(signals=signals), *given[2:])
        assert found.evidence[EVIDENCE.other_cosine].tolist() == others
