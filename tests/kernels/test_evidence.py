from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

import recollect_kernels as kernels
from recollect_kernels import EVIDENCE, SIGNALS, KernelError
from tests.kernels import oracle
from tests.kernels.cases import holds, rng, seeds, weighed

pytestmark = pytest.mark.usefixtures("backend")
COMPARED = ("cosine", "bm25", "similarity", "speaker")


@holds(seed=seeds, sizes=st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 40]), st.integers(0, 5)), max_size=4))
def test_evidence_is_of_a_record_and_of_the_best_other_candidate(seed, sizes):
    signals, offsets, group = weighed(rng(seed), [one for one, _ in sizes], [other for _, other in sizes])
    found = kernels.measure_evidence(signals, offsets, group)
    queries = []
    for query, (first, stop) in enumerate(pairwise(offsets.tolist())):
        own = range(group.offsets[query], group.offsets[query + 1])
        queries.append(
            {
                "candidates": [
                    {name: signals[getattr(SIGNALS, name), i] for name in COMPARED} for i in range(first, stop)
                ],
                "weighed": [
                    {
                        **{name: group.signals[getattr(SIGNALS, name), i] for name in COMPARED},
                        "coverage": group.coverage[i],
                        "length": group.lengths[i],
                        "rank": group.ranks[i],
                    }
                    for i in own
                ],
                "words": group.words[query],
                "records": group.records,
            }
        )
    assert found.shape == (len(EVIDENCE), group.signals.shape[1])
    np.testing.assert_allclose(found.T, np.reshape(oracle.evidence(queries), found.T.shape), rtol=1e-12, atol=1e-15)


def test_the_best_is_weighed_beside_the_second_best_and_twins_beside_each_other():
    for cosines, others in (([0.9, 0.4, 0.1], [0.4, 0.9, 0.9]), ([0.9, 0.9, 0.1], [0.9, 0.9, 0.9]), ([0.9], [0.0])):
        signals = np.zeros((len(SIGNALS), len(cosines)))
        signals[SIGNALS.cosine] = cosines
        offsets = np.array([0, len(cosines)])
        m = np.zeros(len(cosines))
        group = kernels.Weighed(offsets, signals, m, m, m, np.ones(1), 3.0)
        found = kernels.measure_evidence(signals, offsets, group)
        assert found[EVIDENCE.other_cosine].tolist() == others


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"offsets": np.array([0, 3])}, "weighed.offsets: not CSR offsets"),
        ({"coverage": np.zeros(3)}, r"weighed.coverage: shape \(3,\); wanted \(2\)"),
        ({"words": np.array([np.nan])}, "weighed.words: nan"),
        ({"signals": np.zeros((2, 2))}, "weighed.signals: shape"),
    ],
)
def test_what_cannot_be_weighed_is_refused(changed, message):
    signals, offsets, group = weighed(rng(1), [4], [2])
    with pytest.raises(KernelError, match=message):
        kernels.measure_evidence(signals, offsets, group._replace(**changed))
    with pytest.raises(KernelError, match="signals: nan"):
        kernels.measure_evidence(np.full_like(signals, np.nan), offsets, group)
