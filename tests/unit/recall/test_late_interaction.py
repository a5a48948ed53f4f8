from __future__ import annotations

import numpy as np
import pytest

from recallite.recall.late_interaction import token_weights

IDF = {"carolin": 3.0, "support": 1.0, "group": 2.0, "e": 9.0}


def weights(text, begins, idf=IDF):
    return np.array(token_weights(text, np.array(begins, np.int64), idf))


def test_a_token_weighs_what_its_word_does_and_all_sum_to_one():
    text = "When did Caroline's  support-group meet?"
    found = weights(text, [0, 5, 9, 17, 18, 21, 28, 29, 35, 39])
    # Of "support-group" the rarer term counts, for each of its pieces.
    np.testing.assert_allclose(found, np.array([0, 0, 3, 3, 3, 2, 2, 2, 0, 0]) / 15)


@pytest.mark.parametrize("text", ["", "  ", "?!", "nothing known"])
def test_no_known_word_weighs_nothing(text):
    assert not weights(text, [0, 0]).any()
    assert weights(text, []).tolist() == []


def test_a_token_before_the_first_word_weighs_nothing():
    assert weights("  group", [0, 2]).tolist() == [0.0, 1.0]
