from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from recallite.embedding.protocol import QueryTokens
from recallite.recall.query import token_arrays
from recallite_kernels import composition

IDF = {"carolin": 3.0, "support": 1.0, "group": 2.0, "e": 9.0}


def weights(text, begins, idf=IDF):
    tokens = QueryTokens(np.zeros((len(begins), 1), np.uint64), np.array(begins, np.int64), 1)
    _, token_offsets, token_words, token_word_offsets, _ = token_arrays([text], [tokens], [list(idf)])
    asking = SimpleNamespace(
        vectors=np.empty((1, 1)),
        word_offsets=[0, len(idf)],
        token_offsets=token_offsets,
        token_words=token_words,
        token_word_offsets=token_word_offsets,
    )
    work = SimpleNamespace(token_weights=np.zeros(len(begins), np.float32), sizes=np.zeros(2, np.int64))
    composition.weigh_tokens(asking, 0, work, SimpleNamespace(idf=np.array(list(idf.values()), np.float32)))
    return work.token_weights[: work.sizes[0]]


def test_a_token_weighs_what_its_word_does_and_all_sum_to_one():
    text = "When did Caroline's  support-group meet?"
    found = weights(text, [0, 5, 9, 17, 18, 21, 28, 29, 35, 39])
    # Of "support-group" the rarer term counts, for each of its pieces.
    np.testing.assert_allclose(found, np.array([0, 0, 3, 3, 3, 2, 2, 2, 0, 0]) / 15, rtol=1e-6)


@pytest.mark.parametrize("text", ["", "  ", "?!", "nothing known"])
def test_without_a_known_word_no_token_is_compared(text):
    assert not len(weights(text, [0, 0]))
    assert not len(weights(text, []))


def test_a_token_before_the_first_word_weighs_nothing():
    assert weights("  group", [0, 2]).tolist() == [0.0, 1.0]
