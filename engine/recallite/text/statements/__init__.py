"""Statements: what a text says of something, so that a later text which says otherwise is noticed.

Pure functions of texts, without a store. A text is parsed once, into a `Statement` of words and clauses
(`statement_words`, `clause`, `statement`), and all else is derived from that:

- keys (`keys`): hashes that statements about the same thing share, by which a store finds candidates
- frames (`keys`): what is given a value, and the value, as hashes: the same thing with another value
- outlines (`keys`): bits that rule out most pairs before they are compared
- properties (`properties`): what each clause states, and of what, as it is compared, and the one value in which two
  differ

`judge` decides about two statements (`judging`): a value replaces a value only if both texts state the same property of
the same subject. Instructions have rules of their own (`instructions`). Rules for English; elsewhere only numbers,
dates, assignments and identical words are compared.
"""

from recallite.text.statements.judging import BY_FORM, Pair, cosine_of_one_topic, judge, judge_all
from recallite.text.statements.keys import MAX_FRAMES, MAX_KEYS, frames_of, keys_of, may_replace, outline_of
from recallite.text.statements.lexicon import SEVERAL, several_valued
from recallite.text.statements.statement import Outcome, Statement, Verdict, statement_of

__all__ = [
    "BY_FORM", "MAX_FRAMES", "MAX_KEYS", "SEVERAL", "Outcome", "Pair", "Statement", "Verdict",
    "cosine_of_one_topic", "frames_of", "judge", "judge_all", "keys_of", "may_replace", "outline_of", "several_valued",
    "statement_of",
]  # fmt: skip
