from __future__ import annotations

import pytest

from recallite.text import words
from recallite.text.patterns import read_tables
from recallite.text.words import (
    ASKED_APART,
    FOREIGN_PATH,
    PATH,
    QUESTION_TERMS,
    STOP_TERMS,
    is_foreign,
    query_terms,
    rarity_of,
    share_of,
    tokenize,
)


def test_common_words_have_a_greater_share_than_rare_ones():
    shares = [share_of(term) for term in tokenize("the work database zanzibar")]
    assert shares == sorted(shares, reverse=True)
    assert all(0 < share <= 1 for share in shares)
    assert share_of("zanzibar") == share_of("xyzzy") < 0.0001
    assert share_of("use") == 0.25


@pytest.mark.parametrize("path", [PATH, FOREIGN_PATH])
def test_the_file_is_small_and_every_term_is_an_index_term(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert path.stat().st_size < 200_000
    levels = [int(line.split(" ")[0]) for line in lines]
    assert levels == sorted(set(levels))
    terms = [term for line in lines for term in line.split(" ")[1:]]
    assert len(terms) == len(set(terms)) > 3_000
    assert not any(any(map(str.isdigit, term)) for term in terms)


def test_words_that_ask_are_no_stop_words_and_stay_in_the_query():
    assert QUESTION_TERMS.isdisjoint(STOP_TERMS)
    assert {"use", "rememb", "pleas"} <= QUESTION_TERMS


def test_words_that_ask_in_other_scripts_are_listed_as_their_terms():
    tables = read_tables(words.__file__)
    unspaced = {term for word in tables["asking_words_unspaced"].split() for term in query_terms(word)}
    assert unspaced == ASKED_APART < QUESTION_TERMS
    assert all(term in tokenize(term) for term in QUESTION_TERMS if not term.isascii())


@pytest.mark.parametrize(
    "text",
    [
        "Quelle est la hauteur de la tour ?", "perché non parte?", "súbelo ya", "Wie hoch ist der Turm?",
        "这座塔有多高?", "Em que dia cai a festa?", "Какой высоты башня?",
    ],
)  # fmt: skip
def test_what_is_not_english_is_known_by_its_words(text):
    assert is_foreign(query_terms(text))


@pytest.mark.parametrize(
    "text",
    [
        "How tall is the tower in Paris?", "What did Ilaria say about La Scala?",
        "Uncommitted tissue macrophages lack inductive cytokine properties.", "rename this function",
    ],
)  # fmt: skip
def test_english_with_rare_words_or_foreign_names_is_english(text):
    assert not is_foreign(query_terms(text))


def test_frequent_words_of_other_languages_say_little_where_these_are_spoken():
    assert share_of("che") < 2**-10 < share_of("che", foreign=True)
    assert rarity_of("che") < 0.6 < rarity_of("violoncello") == 1
