"""The times that statements are about, and what is left alone."""

from __future__ import annotations

import re
import textwrap
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallite.text.dates.languages import TIME_TERMS, fold, languages, literals_of, time_terms
from recallite.text.dates.periods import KINDS
from recallite.text.dates.stated import stated_interval
from recallite.text.words import tokenize
from tests.unit.core.text.dates import phrases_english as english
from tests.unit.core.text.dates import phrases_other as other

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
THURSDAY = datetime(2023, 8, 17, 15, 30, tzinfo=UTC)


def microseconds(moment):
    return (moment - EPOCH) // timedelta(microseconds=1)


def stated(text, written=THURSDAY):
    """The interval as `begin..end` in days, or minutes where it has them, or `-`."""
    found = stated_interval(text, tokenize(text), microseconds(written))
    if found is None:
        return "-"
    ends = ("" if each is None else f"{EPOCH + timedelta(microseconds=each):%Y-%m-%d %H:%M}" for each in found)
    return "..".join(end.removesuffix(" 00:00") for end in ends)


def lines(table):
    return [tuple(map(str.strip, line.rsplit("|", 1))) for line in table.strip().splitlines()]


@pytest.mark.parametrize(("text", "interval"), lines(english.CLEAR))
def test_a_clear_time_in_english(text, interval):
    assert stated(text) == interval


@pytest.mark.parametrize("text", english.LEFT_ALONE.strip().splitlines())
def test_english_without_a_clear_time_is_left_alone(text):
    assert stated(text) == "-"


@pytest.mark.parametrize(("text", "interval"), lines(other.CLEAR))
def test_a_clear_time_in_other_languages(text, interval):
    assert stated(text) == interval


@pytest.mark.parametrize("text", other.LEFT_ALONE.strip().splitlines())
def test_other_languages_without_a_clear_time_are_left_alone(text):
    assert stated(text) == "-"


WORDS = """
    in on since until by last next this two 3 a weeks days ago years May march 7 31 29 February 2023 1999 9999-12-31
    Friday weekend yesterday tomorrow spring from to between and will went , . ? vor in letzte il y a hace 0 999 Wochen
    gestern nächsten Jahr hier ieri domani amanhã passado vorige
"""
MIXED = st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join)
TEXTS = st.text(max_size=60) | MIXED
MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(TEXTS, MOMENTS)
def test_any_text_at_any_time_gives_an_interval_in_order_or_none(text, written):
    found = stated_interval(text, tokenize(text), microseconds(written))
    if found is not None:
        begin = EPOCH + timedelta(microseconds=found.at)
        assert found.until is None or begin < EPOCH + timedelta(microseconds=found.until)


def test_an_english_an_is_not_looked_up_as_a_french_year():
    terms = frozenset(["an"])
    assert literals_of(terms) is not None
    assert not any(literal in "it takes an hour" for literal in literals_of(terms))


def test_a_language_file_has_known_kinds_and_placeholders_only():
    for language in languages():
        for table in (language.stated_forms, language.question_forms, language.literals):
            assert table.keys() <= KINDS.keys(), language.code
        for form in language.forms:
            assert not re.search(r"\{[a-z_]+\}", form.pattern.pattern), (language.code, form.kind)


def test_no_form_asks_for_a_term_that_is_not_kept():
    for language in languages():
        for form in language.forms:
            assert form.terms <= language.gates, (language.code, form.kind)


@pytest.mark.parametrize("text", sorted({text for some in (english, other) for text, _ in lines(some.CLEAR)}))
def test_what_a_pattern_matches_has_its_literals(text):
    folded = fold(text)
    for form in (form for language in languages() for form in language.forms):
        if form.literals and form.pattern.search(folded):
            assert any(each in folded for each in form.literals), form.kind
        if form.kind in ("days", "date", "month_year") and (match := form.pattern.search(folded)):
            assert any(map(str.isdigit, match[0]))


def test_the_terms_that_are_listed_are_those_of_every_language():
    assert time_terms() == {term for language in languages() for term in language.terms}


if __name__ == "__main__":
    listed = sorted({term for language in languages() for term in language.terms})
    TIME_TERMS.write_text(textwrap.fill(" ".join(listed), 120, break_on_hyphens=False) + "\n", "utf-8")
