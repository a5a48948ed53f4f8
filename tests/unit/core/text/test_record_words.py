from __future__ import annotations

import pytest

from recallite.text.reading import MOST, NAME, TAG_ONLY, name_words, word_counts, written_words


def counts(text, context=None, tags=()):
    return word_counts(written_words(text, context), context, tags)


def test_words_are_counted_and_flagged():
    assert counts("hotel hotel Rome", "Anna", ["hotel", "trip"]) == {
        "anna": 1 | NAME, "hotel": 3, "rome": 1, "trip": 1 | TAG_ONLY
    }  # fmt: skip
    assert counts("Anna paid", "Anna Smith") == {"anna": 2 | NAME, "smith": 1 | NAME, "paid": 1}
    assert counts("word " * 500, tags=["other"] * 100) == {"word": MOST, "other": MOST | TAG_ONLY}
    assert counts("") == {}


@pytest.mark.parametrize(
    ("context", "names"),
    [
        ("Caroline", ("carolin",)),
        ("caroline", ("carolin",)),
        ("Anna Smith", ("anna", "smith")),
        ("Monica E. Geller", ("monica", "geller")),
        ("Prof. Ada Lovelace", ("ada", "lovelac")),
        ("O'Brien", ("obrien",)),
        ("Al", ()),
        ("user", ()),
        ("Assistant", ()),
        ("#general", ()),
        ("Guide > Install", ()),
        ("deploy notes", ()),
        ("A heading of many words here", ()),
        ("2026", ()),
        ("", ()),
        ("x" * 2000, ()),
    ],
)
def test_names(context, names):
    assert name_words(context) == names
