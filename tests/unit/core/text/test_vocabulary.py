from __future__ import annotations

from recallite.text.words import PATH, QUESTION_TERMS, STOP_TERMS, share_of, tokenize


def test_common_words_have_a_greater_share_than_rare_ones():
    shares = [share_of(term) for term in tokenize("the work database zanzibar")]
    assert shares == sorted(shares, reverse=True)
    assert all(0 < share <= 1 for share in shares)
    assert share_of("zanzibar") == share_of("xyzzy") < 0.0001
    assert share_of("use") == 0.25


def test_the_file_is_small_and_every_term_is_an_index_term():
    lines = PATH.read_text(encoding="utf-8").splitlines()
    assert PATH.stat().st_size < 200_000
    levels = [int(line.split(" ")[0]) for line in lines]
    assert levels == sorted(set(levels))
    terms = [term for line in lines for term in line.split(" ")[1:]]
    assert len(terms) == len(set(terms)) > 3_000
    assert not any(any(map(str.isdigit, term)) for term in terms)


def test_words_that_ask_are_no_stop_words_and_stay_in_the_query():
    assert QUESTION_TERMS.isdisjoint(STOP_TERMS)
    assert {"use", "rememb", "pleas"} <= QUESTION_TERMS
