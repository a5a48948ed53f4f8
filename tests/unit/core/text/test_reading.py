"""What is read in a batch of texts is what is read in each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallite.store.columns import Words
from recallite.text.dates.stated import stated_interval
from recallite.text.reading import read_texts, word_counts, written_words
from tests.limits import examples

properties = settings(derandomize=True, max_examples=examples(60), deadline=None)
NOW = 1_700_000_000_000_000
_words = st.sampled_from(
    [
        "running", "v12", "1,000", "U.S.A", "don't", "l'été", "e-mail", "C++", "日本語", "naïve", "ﬁ", "İx", "\ud800",
        "Anna", "always", "prefer", "yesterday", "7.5.2023", "call me", "a\u0301", "x" * 70, "\u2019s",
    ]
)  # fmt: skip
_marks = st.sampled_from([" ", ",", ".", ", ", ". ", "\n", "'", "-", "_", "+", "#", '"', "\u00a0", "\u2014"])
texts = st.one_of(st.lists(st.one_of(_words, _marks), max_size=8).map("".join), st.text(max_size=12))
contexts = st.one_of(st.none(), st.sampled_from(["Anna Smith", "user", "dr. Zoë", "Notes, of v12."]), texts)
records = st.tuples(texts, contexts, st.lists(texts, max_size=2).map(tuple))
# Too few would be read one by one.
batches = st.lists(records, min_size=1, max_size=6).map(lambda some: some * 16)


def bytes_of(reading, text):
    """The byte of each word of a text."""
    own = slice(reading.offsets[text], reading.offsets[text + 1])
    named = [reading.vocabulary[i] for i in reading.indices[own].tolist()]
    return dict(zip(named, reading.counts[own].tolist(), strict=True))


@properties
@given(batch=batches)
def test_the_words_of_a_batch_are_those_of_each_text(batch):
    reading = read_texts(*zip(*batch, strict=True))
    assert len(set(reading.vocabulary)) == len(reading.vocabulary)
    for place, (text, context, tags) in enumerate(batch):
        written = written_words(text, context)
        assert bytes_of(reading, place) == word_counts(written, context, tags)
        assert set(reading.words(place)) == set(written)


@properties
@given(batch=batches)
def test_what_a_text_cannot_be_it_is_not(batch):
    said, contexts, _ = zip(*batch, strict=True)
    reading = read_texts(said, contexts)
    for place, text in enumerate(said):
        assert reading.may_have_dates[place] or stated_interval(text, reading.words(place), NOW) is None


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("I moved two weeks ago", True), ("The party is on Friday", True), ("Es war am 7.5.2023", True),
        ("The party was fun", False), ("On Friday" + 400 * " ", False),
    ],
)  # fmt: skip
def test_a_text_with_a_word_of_a_time_may_have_a_date(text, may):
    assert read_texts([text] * 16).may_have_dates.tolist() == [may] * 16


def test_a_few_texts_and_many_have_the_same_words():
    said = ["Anna, the user of v12.", "the other one"]
    few, many = (
        read_texts(said, ["Anna", None], [("a tag",), ()]),
        read_texts(said * 16, ["Anna", None] * 16, [("a tag",), ()] * 16),
    )
    assert [bytes_of(few, place) for place in (0, 1)] == [bytes_of(many, place) for place in (0, 1)]
    assert many.may_have_dates.tolist() == [*few.may_have_dates.tolist()] * 16


def test_the_words_of_some_texts_are_theirs():
    reading = read_texts([f"word{number} again again" for number in range(20)])
    words = Words(*reading[:4]).of([7, 3])
    assert {*words.vocabulary} == {"word7", "again", "word3"}
    assert [words.vocabulary[place] for place in words.indices] == ["word7", "again", "word3", "again"]
    assert words.counts.tolist() == [1, 2, 1, 2]
    assert words.offsets.tolist() == [0, 2, 4]
    assert (words.indices.dtype, words.offsets.dtype) == (np.int32, np.int64)


def test_no_texts_have_no_words():
    reading = read_texts([])
    assert (reading.vocabulary, reading.offsets.tolist()) == ([], [0])
