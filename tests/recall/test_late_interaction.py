from __future__ import annotations

import numpy as np
import pytest

from recollect.embedding import QueryTokens
from recollect.profiles import Profile
from recollect.recall.candidates import SIGNALS, Candidates
from recollect.recall.late_interaction import rerank_one, token_weights

IDF = {"carolin": 3.0, "support": 1.0, "group": 2.0, "e": 9.0}


def weights(text, begins, idf=IDF):
    return token_weights(text, np.array(begins, np.int64), idf)


def test_a_token_weighs_what_its_word_does_and_all_sum_to_one():
    text = "When did Caroline's  support-group meet?"
    found = weights(text, [0, 5, 9, 17, 18, 21, 28, 29, 35, 39])
    assert found.dtype == np.float32
    # Of "support-group" the rarer term counts, for each of its pieces.
    np.testing.assert_allclose(found, np.array([0, 0, 3, 3, 3, 2, 2, 2, 0, 0], np.float32) / 15)


@pytest.mark.parametrize("text", ["", "  ", "?!", "nothing known"])
def test_no_known_word_weighs_nothing(text):
    assert not weights(text, [0, 0]).any()
    assert weights(text, []).tolist() == []


def test_a_token_before_the_first_word_weighs_nothing():
    assert weights("  group", [0, 2]).tolist() == [0.0, 1.0]


def candidates(fused):
    m = len(fused)
    signals = np.zeros((len(SIGNALS), m))
    signals[SIGNALS.fused] = signals[SIGNALS.spread] = signals[SIGNALS.score] = fused
    return Candidates(np.array([0, m]), np.arange(m), np.arange(m)[::-1] + 10, np.arange(m), signals)


def test_the_best_part_counts_against_the_mean_of_those_with_codes_in_the_shortlist():
    code = np.array([[0b1111]], np.uint64)
    alike, half, unlike = (np.array([bits], "<u8").tobytes() for bits in (0b1111, 0b0011, 0b0000))
    stored = {14: [alike], 13: [unlike, half], 12: [], 11: [b"odd"], 10: [alike]}
    asked = []

    def read(keys):
        asked.extend(keys.tolist())
        return [(key, part) for key in sorted(keys.tolist()) for part in stored[key]]

    # Keys 14 to 10; the last is below the shortlist of four.
    found = candidates([0.9, 0.8, 0.7, 0.6, 0.5])
    profile = Profile(rerank_weight=0.5, rerank_depth=4)
    tokens = QueryTokens(code, np.zeros(1, np.int64), 4)
    added = rerank_one(found, "group", tokens, {"group": 2.0}, read, profile)
    assert sorted(asked) == [11, 12, 13, 14]
    # Similarities 1 and 0, their mean 0.5, half weight.
    np.testing.assert_allclose(added, [0.25, -0.25, 0, 0, 0])


@pytest.mark.parametrize("changed", [{"rerank_weight": 0.0}, {"rerank_depth": 0}])
def test_without_weight_or_shortlist_nothing_is_read(changed):
    found = candidates([0.9, 0.8])
    tokens = QueryTokens(np.ones((1, 1), np.uint64), np.zeros(1, np.int64), 4)
    profile = Profile(**changed)
    added = rerank_one(found, "group", tokens, {"group": 2.0}, lambda keys: pytest.fail("read"), profile)
    assert added.tolist() == [0.0, 0.0]
