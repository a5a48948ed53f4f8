"""Statements: what a text says of something, so that a later text which says otherwise is noticed.

A text is read (`statement_words`, `clause`, `statement`), found by what it is about (`traits`, `keys`) and compared
with another (`judging`).

Pure functions of texts, without a store: `statement_of` parses, `keys_of` finds candidates, `frames_of` says what is
the same thing with another value, and `judge` decides. Rules for English; German, French and Spanish words of change
are known (`other_languages`), and elsewhere only numbers, dates, names and identical words are compared.
"""

from recallite.text.statements.judging import Outline, Pair, judge, judge_all, may_relate, outline_of
from recallite.text.statements.keys import MAX_FRAMES, MAX_KEYS, frames_of, keys_of
from recallite.text.statements.lexicon import SEVERAL, several_valued
from recallite.text.statements.statement import Outcome, Statement, Verdict, statement_of

__all__ = [
    "MAX_FRAMES", "MAX_KEYS", "SEVERAL", "Outcome", "Outline", "Pair", "Statement", "Verdict", "frames_of", "judge",
    "judge_all", "keys_of", "may_relate", "outline_of", "several_valued", "statement_of",
]  # fmt: skip
