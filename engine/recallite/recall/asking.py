"""Questions as the kernel of a recall takes them: the numbers of their words, their vectors, times and tokens."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.recall.asked_time import NOW, asked_of
from recallite.recall.dates import names_time, spans_of
from recallite.system.numerics import kernels
from recallite.text.words import QUESTION_TERMS, STOP_TERMS, placed_terms, query_terms, share_of, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.embedding.protocol import QueryTokens
    from recallite.recall.query import Queries
    from recallite.recall.request import Request
    from recallite.store.transaction import Reader

_NO_MOMENTS = np.empty(0, dtype=np.int64)
_NO_WORDS = np.empty(0, dtype=np.int32)
_NO_CODES = np.empty((0, 1), dtype=np.uint64)
_NAME = re.compile(r"^\W*[A-Z]|[a-z][A-Z]|[A-Z]{2}|\d")
_INNER = re.compile(r"[a-z][A-Z]|[A-Z]{2}|\d")
CONTENT, NAMED = kernels.CONTENT, kernels.NAMED
_UNKNOWN = -2  # no number of a word: -1 is that of no speaker


class Question(NamedTuple):
    """The words of a question: all index terms, those that count, the share of texts that contain each of these, their
    roles, and how many they are; 0 of stop words alone, which are in nearly every record.
    """

    terms: list[str]
    words: list[str]
    shares: list[float]
    roles: list[int]
    counting: float


@lru_cache(maxsize=1024)  # a question is often asked again
def read_question(text: str) -> Question:
    """The words of a question without stop words; all of them where it has only stop words."""
    terms = query_terms(text)
    words = [word for word in terms if word not in STOP_TERMS]
    named = names_in(text)
    roles = [NAMED if word in named else 0 if word in QUESTION_TERMS else CONTENT for word in words or terms]
    return Question(terms, words or terms, [share_of(word) for word in words or terms], roles, float(len(words)))


def names_in(text: str) -> set[str]:
    """The index terms of names and numbers in a question: words with a capital letter or a digit, but those of times.

    The first word has its capital anyway, and so have most words of a title: there a capital is no name's.
    """
    chunks = text.split()
    capital = [chunk for place, chunk in enumerate(chunks) if _NAME.search(chunk) and (place or _INNER.search(chunk))]
    if 2 * len(capital) > len(chunks):
        capital = [chunk for chunk in capital if any(map(str.isdigit, chunk))]
    named = {term for chunk in capital for term in tokenize(chunk)} - STOP_TERMS
    return {term for term in named if not names_time(term)}


class AskedQuestions(NamedTuple):
    """Some questions for the kernel, with the words that count of each."""

    words: list[list[str]]
    longest: int
    tokens: int
    asking: kernels.Asking


def ask(reader: Reader, generation: int, queries: Queries, request: Request, by_vector: bool) -> AskedQuestions:
    """Questions as the kernel takes them; `generation` is that of the index, which numbers words."""
    texts, profile = queries.texts, request.profile
    read = [read_question(text) for text in texts]
    words = [[] if request.mode == "vector" else question.words for question in read]
    flat = words[0] if len(words) == 1 else [word for own_words in words for word in own_words]
    numbers = reader.lexicon.recalled(flat, generation)
    if request.mode == "vector":
        shares, roles = [], []
    elif len(read) == 1:
        shares, roles = read[0].shares, read[0].roles
    else:
        shares = [share for question in read for share in question.shares]
        roles = [role for question in read for role in question.roles]
    counting = [0.0 if request.mode == "vector" else question.counting for question in read]
    spans: list[tuple[tuple[int, int, int], ...]] = []
    if profile.date_weight > 0:
        spans = [spans_of(text, question.terms, request.clock) for text, question in zip(texts, read, strict=True)]
    begins = ends = fades = _NO_MOMENTS
    span_offsets = _zeros(len(texts) + 1)
    if any(spans):
        flat_spans = np.array([span for own_spans in spans for span in own_spans], dtype=np.int64)
        begins, ends, fades = np.ascontiguousarray(flat_spans.T)
        span_offsets = _offsets(map(len, spans))
    moments, former, before, before_offsets = _times(reader, generation, texts, request)
    vectors = np.empty((len(texts), 0), dtype=np.float32)
    if by_vector and queries.vectors is not None:
        vectors = queries.vectors[0][None] if len(texts) == 1 else np.stack(queries.vectors)
    codes, token_offsets, token_words, token_word_offsets, width = _tokens(texts, queries.tokens, words)
    asking = kernels.Asking(
        vectors=vectors, numbers=np.array([numbers.get(word, _UNKNOWN) for word in flat], dtype=np.int32),
        shares=np.array(shares, dtype=np.float64), roles=np.array(roles, dtype=np.uint8),
        word_offsets=_offsets(map(len, words)), counting=np.array(counting),
        begins=begins, ends=ends, fades=fades, span_offsets=span_offsets, moments=moments, former=former,
        before=before, before_offsets=before_offsets, token_codes=codes, token_offsets=token_offsets,
        token_words=token_words, token_word_offsets=token_word_offsets, width=width,
    )  # fmt: skip
    return AskedQuestions(words, max(map(len, words)), len(codes), asking)


def _times(
    reader: Reader, generation: int, texts: Sequence[str], request: Request
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int64]]:
    """The time that each question is about, and the numbers of the words of what it names as having come after."""
    if not request.about_past:
        return _now(len(texts)), _not_former(len(texts)), _NO_WORDS, _zeros(len(texts) + 1)
    times = [asked_of(text, request.clock) for text in texts]
    before = [sorted(time.before) for time in times]
    numbers = reader.lexicon.recalled([word for own_words in before for word in own_words], generation)
    return (
        np.array([time.moment for time in times], dtype=np.int64),
        np.array([time.former for time in times], dtype=np.uint8),
        np.array([numbers.get(word, _UNKNOWN) for own_words in before for word in own_words], dtype=np.int32),
        _offsets(map(len, before)),
    )


def _tokens(
    texts: Sequence[str], tokens: Sequence[QueryTokens | None] | None, words: Sequence[list[str]]
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """The codes of the questions' tokens, and the words that each stands for, by place among those of its question."""
    if tokens is None:
        return _NO_CODES, _zeros(len(texts) + 1), _NO_MOMENTS, _zeros(1), 1
    codes, counts, places, sizes, width = [], [], [], [], 1
    for text, question_tokens, question_words in zip(texts, tokens, words, strict=True):
        counts.append(0 if question_tokens is None else len(question_tokens.codes))
        if question_tokens is None or not len(question_tokens.codes):
            continue
        codes.append(question_tokens.codes)
        width = question_tokens.width
        for standing_for in words_of_tokens(text, question_tokens.places.tolist(), question_words):
            places += standing_for
            sizes.append(len(standing_for))
    if not codes:
        return _NO_CODES, _zeros(len(texts) + 1), _NO_MOMENTS, _zeros(1), 1
    every = codes[0] if len(codes) == 1 else np.concatenate(codes)
    return every, _offsets(counts), np.array(places, dtype=np.int64), _offsets(sizes), width


def words_of_tokens(text: str, begins: Sequence[int], words: Sequence[str]) -> list[list[int]]:
    """The places among `words` of those that each token of a text is part of; `begins` are the tokens' characters."""
    placed = placed_terms(text)
    starts, place_of = [begin for begin, _ in placed], {word: place for place, word in enumerate(words)}
    places_of = [[place_of[term] for term in terms if term in place_of] for _, terms in placed]
    return [places_of[at - 1] if (at := bisect_right(starts, begin)) else [] for begin in begins]


def _offsets(counts: object) -> NDArray[np.int64]:
    return np.array([0, *accumulate(counts)], dtype=np.int64)  # type: ignore[call-overload]


@lru_cache(maxsize=64)
def _zeros(count: int) -> NDArray[np.int64]:
    return np.zeros(count, dtype=np.int64)


@lru_cache(maxsize=64)
def _now(queries: int) -> NDArray[np.int64]:
    return np.full(queries, NOW.moment, dtype=np.int64)


@lru_cache(maxsize=64)
def _not_former(queries: int) -> NDArray[np.uint8]:
    return np.zeros(queries, dtype=np.uint8)
