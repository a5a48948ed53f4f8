"""Names that a question has whole: of a hit's tags, and its context.

"Is the Worcester 30i all right?" is about a memory with this tag, whatever its text says. The more memories have the
words of a name, the less does it say of one of them: the odds of a hit are raised by what a name counts, shared out
among those that have its rarest word. A question that names several things is asked for each: each has all of its odds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recallite.recall.asking import read_question
from recallite.system.numerics import kernels
from recallite.text.reading import ROLES, name_terms
from recallite.text.words import QUESTION_TERMS

if TYPE_CHECKING:
    from recallite.recall.answering import Answer
    from recallite.recall.evidence_gaps import Missing
    from recallite.store.values import Found

# Chosen on stores of our own (`benchmarks.quality --set named`) among 2 to 5.
COUNTS = 3.0
"""Logit that the name of one memory alone adds to that of its confidence."""
SUREST = 0.95
"""Most that a name makes a confidence."""
_MOST_THINGS = 8
_LONGEST = 60  # characters: a longer context is no name


class Name(NamedTuple):
    """The rarest word of a name that a question has, and what it adds to the logit of a hit's confidence."""

    word: str
    added: float


def names_of(question: str, missing: Missing | None, hits: Sequence[Found | None]) -> list[Name | None]:
    """The name of each hit that the question has, the one that counts most; nothing is known of no words."""
    if missing is None:
        return [None] * len(hits)
    one = float(kernels.smoothed_idf(missing.records, 1.0, 0.0))
    words = zip(missing.words, missing.idf, strict=True)
    counts = {word: COUNTS + idf - one for word, idf in words if word not in ROLES and word not in QUESTION_TERMS}
    terms = set(read_question(question).terms)
    by_bearer: dict[object, Name | None] = {}  # turns of one speaker are many
    names = []
    for hit in hits:
        bearer = None if hit is None else (hit.tags, hit.context)
        if bearer not in by_bearer:
            of_hit = () if hit is None else _names(hit, terms, counts)
            by_bearer[bearer] = max(of_hit, key=lambda name: name.added, default=None)
        names.append(by_bearer[bearer])
    things = math.log(min(max(len({name.word for name in names if name is not None}), 1), _MOST_THINGS))
    return [None if name is None else name._replace(added=name.added + things) for name in names]


def _names(record: Found, terms: set[str], counts: dict[str, float]) -> Iterator[Name]:
    """The words of the record's names that the question has whole."""
    for name in record.tags if record.context is None else (*record.tags, record.context):
        if len(name) <= _LONGEST and terms.issuperset(words := name_terms(name)):
            yield from (Name(word, counts[word]) for word in words if counts.get(word, 0.0) > 0)


def least_before(least: float) -> float:
    """The confidence that a record has at least before its names are read, if it may reach `least` by one."""
    return least / (least + (1.0 - least) * _MOST_THINGS * math.exp(COUNTS))


def surest_of_each(answer: Answer, names: Sequence[Name | None]) -> frozenset[int]:
    """The key of the surest ranked hit of each name."""
    surest: dict[str, int] = {}
    for rank, name in enumerate(names[: len(answer.keys) - answer.brought]):
        if name is not None:
            surest[name.word] = max(surest.get(name.word, rank), rank, key=answer.confidence.__getitem__)
    return frozenset(answer.keys[rank] for rank in surest.values())
