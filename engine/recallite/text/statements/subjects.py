"""Subjects of common words, so that "I'm vegetarian" and "I eat meat again" are compared."""

from __future__ import annotations

from recallite.text.index_terms import stem_of
from recallite.text.word_tables import read_tables

SUBJECTS: dict[str, str] = {}
"""The name of what a stem is about."""
for _name, _words in read_tables(__file__).items():
    for _word in _words.split():
        SUBJECTS.setdefault(stem_of(_word), _name)
