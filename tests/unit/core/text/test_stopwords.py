from __future__ import annotations

from recallite.text.words import STOP_TERMS, query_terms, tokenize


def test_function_words_are_stop_terms_in_every_spelling() -> None:
    for question in ("What is it?", "Who are they", "don't you", "Don’t you", "ISN'T THIS", "What's he doing?"):
        assert set(query_terms(question)) <= STOP_TERMS


def test_words_that_tell_something_are_not() -> None:
    told = "painting camping database yesterday first new one time people like go get know 2 north why-not"
    assert STOP_TERMS.isdisjoint(tokenize(told.replace("why-not", "")))


def test_stop_terms_are_index_terms() -> None:
    assert all(tokenize(term) for term in STOP_TERMS)
    assert {"the", "we", "dont", "becaus"} <= STOP_TERMS
