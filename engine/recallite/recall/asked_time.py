"""The time that a question is about.

Of the best candidates that state one thing with different values, the one that holds leads: "Dana lives in Bergen now"
goes directly before "Dana lives in Oslo", whichever is nearer to the question, if it is the later one. A question about
the past turns that around: what held before, at first, or at the time that it names leads. Statements that were marked
as superseded when they were written are not shown at all, but to such a question they are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from recallite.recall.dates import spans_of
from recallite.text.questions import as_past, in_past_tense
from recallite.text.words import STOP_TERMS, query_terms, tokenize

_FIRST_MOMENT, _LAST_MOMENT = -(2**63), 2**63 - 1


class Asked(NamedTuple):
    """The time that a question is about: a moment in microseconds, or what is former.

    `before` are index terms of what it was before, in a question about what was before something.
    """

    moment: int
    former: bool = False
    before: frozenset[str] = frozenset()


NOW, _FORMER, _FIRST = Asked(_LAST_MOMENT), Asked(_LAST_MOMENT, former=True), Asked(_FIRST_MOMENT)


@lru_cache(maxsize=64)  # a question about the past is looked at again when it is answered
def asked_of(question: str, clock_us: int) -> Asked:
    """The time that a question is about; `NOW` for one that is not recognised as being about the past."""
    past = as_past(question)
    if past is not None and past.which != "before":
        return _FORMER if past.which == "former" else _FIRST
    if past is None and not in_past_tense(question):
        return NOW
    spans = spans_of(question, query_terms(question), clock_us)
    moment = max((span.end for span in spans if span.begin <= clock_us), default=clock_us) - 1
    if spans:
        return Asked(moment) if moment < clock_us else NOW
    return NOW if past is None else _FORMER._replace(before=frozenset(tokenize(past.named)) - STOP_TERMS)
