"""Brings what has a name with a number that the question has: EIP-3368, v2.14.3, RFC 7231, room 12b.

A vector does not tell such names apart, and for the learned ranking one rare word among others is little. A passage
about EIP-1822 is like the question about EIP-3368 in everything but the name, and answers it as little as any other.
So the index is asked again for the records that have the name, and the best of these take every other place: what
ranked before loses one and is not gone, if the name was not the point of the question.

What a document says whose file or page has the name ("eip-3368.md", "rfc7231") comes before what only cites it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from recallite.index.memory_index import view_within
from recallite.recall.plan import SHOWN, Opened, answer_all
from recallite.recall.query import Queries
from recallite.recall.request import Answer, Request
from recallite.recall.slots import numbered_names
from recallite.system.numerics import distinct
from recallite.text.questions import read_question
from recallite.text.words import QUESTION_TERMS, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIGIT, _PART = re.compile(r"\d"), re.compile(r"[^\W\d_]+|\d+")
# A word in a smaller share of all records is rare.
_RARE_SHARE = 0.1
# The names of more sources are not read: 20,000 of them take 54 ms, these 1.4.
_MOST_SOURCES = 512
_BM25 = SHOWN.index("bm25")
# Records that are brought for all names of a question. With one, the PEP that a question names is among five hits for
# 163 of 174 questions, with three for all.
_MOST = 3


def bring_numbered(
    opened: Opened, queries: Queries, answers: Sequence[Answer], request: Request
) -> Sequence[Answer]:  # fmt: skip
    """The answers with the best records that have a question's names with numbers, where its first hits lack them.

    Only hybrid answers that are not spread out, of whole questions, by profiles that adapt to what is asked.
    """
    spread = request.diversify_by is not None or request.one_per_source
    if request.mode != "hybrid" or spread or not request.profile.adaptive or len(answers) != len(queries.texts):
        return answers
    brought = [*answers]
    for i, (text, answer) in enumerate(zip(queries.texts, answers, strict=True)):
        if _DIGIT.search(text) is None or not (names := numbered_names(text)):
            continue
        found, terms, named = _lacking(opened, queries.part(i, i + 1), names, answer, request)
        if found:
            cited = named != set() and not _tells_rare(opened, text, named, answer.row_ids[0])
            answer = _interleaved(answer, found, request.limit, cited=cited)
        if terms and (missing := answer.missing) is not None:
            state = [2 if word in terms else had for word, had in zip(missing.words, missing.state, strict=True)]
            answer = answer._replace(missing=missing._replace(state=state, any_hit=True))
        brought[i] = answer
    return brought


def _lacking(
    opened: Opened, question: Queries, names: Sequence[Sequence[str]], answer: Answer, request: Request
) -> tuple[list[Answer], set[str], set[str]]:  # fmt: skip
    """The best records with each name that the first hits lack, the terms of the names that some hit then has, and the
    terms of the names that documents have.
    """
    found, terms, named, table = list[Answer](), set[str](), set[str](), opened.memory_index.table
    rows = table.rows_of(np.array(answer.row_ids[: len(answer.row_ids) - answer.brought], dtype=np.int64))
    for name in names:
        holders = _rows_with(opened, name)
        wanted = min(max(_MOST // len(names), 1), len(holders), request.limit)
        if not wanted:
            continue
        of_name = {term for word in name for term in tokenize(word)}
        if np.isin(rows, holders, kind="table").any():
            terms |= of_name
        if len(own := _of_documents(opened, name, holders)):
            holders, wanted = own, min(wanted, len(own))
            named |= of_name
        mask = np.zeros(len(table.ids), dtype=np.uint8)
        mask[holders] = 1
        if mask[rows[: len(names)]].any() and mask[rows[: 2 * wanted - 1]].sum() >= wanted:
            continue
        within = opened._replace(view=view_within(opened.memory_index, opened.view, mask))
        profile = structs.replace(request.profile, standing_instructions=0)
        (best,) = answer_all(within, question, structs.replace(request, limit=wanted, profile=profile))
        if best.row_ids:
            found.append(best.taken(range(min(wanted, len(best.row_ids)))))
            terms |= of_name
    return found, terms, named


def _of_documents(opened: Opened, name: Sequence[str], rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """The rows whose documents have the name in their own; none if the rows are of too many documents."""
    sources = opened.memory_index.table.sources[rows]
    numbers, firsts = np.unique(sources, return_index=True)
    if len(numbers) > _MOST_SOURCES:
        return rows[:0]
    titles = opened.reader.records.source_names(opened.memory_index.table.ids[rows[firsts]])
    wanted = _parts(" ".join(name))
    own = []
    for number, title in zip(numbers.tolist(), titles, strict=True):
        parts = _parts(title.rstrip("/").rpartition("/")[2]) if title else []
        if any(parts[begin : begin + len(wanted)] == wanted for begin in range(len(parts))):
            own.append(number)
    return rows[np.isin(sources, own)]


def _parts(text: str) -> list[str]:
    """The words and numbers of a name, as they are compared: "PEP 8" is "pep-0008"."""
    return [part.lstrip("0") or "0" for part in _PART.findall(text.lower())]


def _tells_rare(opened: Opened, question: str, named: Set[str], row_id: int) -> bool:
    """Whether a record has a rare word of a question besides the terms of a document's name."""
    words = [word for word in read_question(question).words if word not in named and word not in QUESTION_TERMS]
    index, row = opened.memory_index, opened.memory_index.table.rows_of(np.array([row_id], dtype=np.int64))[0]
    for number in opened.reader.lexicon.recalled(words, index.generation).values():
        rows = index.words.rows_of(number)
        if row in rows and len(rows) < _RARE_SHARE * len(index.table.ids):
            return True
    return False


def _rows_with(opened: Opened, name: Sequence[str]) -> NDArray[np.int32]:
    """The visible rows that have all terms of a name, or these written as one."""
    apart, joined = list[str](), list[str]()
    for word in name:
        terms = tokenize(word)
        if len(terms) > 1 and terms[-1] == "".join(terms[:-1]):
            joined.append(terms.pop())
        apart += terms
    index, mask = opened.memory_index, opened.view.graph.mask
    numbers = opened.reader.lexicon.recalled([*apart, *joined], index.generation)
    found = np.empty(0, dtype=np.int32)
    if all(map(numbers.__contains__, apart)):
        by_term = sorted((index.words.rows_of(numbers[term]) for term in apart), key=len)
        found = by_term[0]
        for rows in by_term[1:]:
            found = np.intersect1d(found, rows, assume_unique=True)
    if len(name) == 1:
        for term in filter(numbers.__contains__, joined):
            found = distinct(np.concatenate((found, index.words.rows_of(numbers[term]))))
    return found[mask[found] == 1] if len(mask) else found


def _interleaved(answer: Answer, found: Sequence[Answer], limit: int, *, cited: bool) -> Answer:
    """The answer with what was found in every other place, while the scores keep their ranks.

    It leads if keywords put it before the first hit, which may be about a name that is as rare, or if the first hit
    only cites it (`cited`).
    """
    columns = [[*chain(*column)] for column in zip(answer[:6], *(other[:6] for other in found), strict=True)]
    row_ids, count = columns[0], len(answer.row_ids)
    ranked = count - answer.brought
    first_of = {row_id: place for place, row_id in reversed([*enumerate(row_ids)])}
    # The best of each name first, then the second of each.
    by_place = [*chain(*zip_longest(*(other.row_ids for other in found)))]
    leading = [*dict.fromkeys(first_of[row_id] for row_id in by_place if row_id is not None)]
    others = [place for place in range(ranked) if place not in leading]
    # Of 175 questions on one EIP that name another ("Is ... compatible with EIP-155?"), the right one is first for 131
    # by this rule, for 35 if what was found always leads, and for 157 if nothing is brought. If .7 of the first hit's
    # BM25 were enough to keep it first, it would be for 159, but "Who wrote PEP 8?" for 24 of 58 instead of 53.
    turns = (leading, others)
    if others and not cited and answer.signals[0][_BM25] > max(other.signals[0][_BM25] for other in found):
        turns = (others, leading)
    order = [place for pair in zip_longest(*turns) for place in pair if place is not None]
    order = order[: max(ranked, min(limit - answer.brought, len(order)))]
    standing = [place for place in range(ranked, count) if place not in leading]
    joined = Answer._make((*columns, *answer[6:])).taken([*order, *standing])
    scores = [*answer.scores[:ranked], *(found[0].scores if not ranked else answer.scores[ranked - 1 : ranked])]
    scores += scores[-1:] * len(order)
    return joined._replace(scores=[*scores[: len(order)], *joined.scores[len(order) :]], brought=len(standing))
