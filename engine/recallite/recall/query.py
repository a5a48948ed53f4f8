"""The questions of a recall: their vectors, the times that they name, what they become, their arrays for the kernel.

In the order of a recall: texts are checked and embedded together; what a question asks for may change its request; then
its words, times, vector and token codes become arrays.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from recallite.embedding.cohort import Cohort
from recallite.embedding.protocol import QueryTokens
from recallite.engine import Engine
from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput
from recallite.model.checks import check_vector
from recallite.model.settings import DEFAULT
from recallite.recall.normalisation import measure_embedder
from recallite.recall.request import Request
from recallite.store.transaction import Reader
from recallite.store.values import EmbedderRow
from recallite.system.numerics import kernels
from recallite.text.dates.languages import Language, Mention, fold, languages_of, terms_of_times, time_terms
from recallite.text.dates.periods import Time, ranged, years_before
from recallite.text.questions import as_past, as_story, in_past_tense
from recallite.text.words import (
    QUESTION_TERMS,
    STOP_TERMS,
    is_foreign,
    placed_terms,
    query_terms,
    share_of,
    tokenize,
)

# A question is compared by its vector if the model reads this share of its letters. Of eleven unrelated questions of
# our own, ten of which mix English names with other scripts, seven were answered with .3, three with .5 and one with
# .6; of ten that a text answers all were.
_READ_SHARE = 0.6
# What vectors count of an embedder that does not tell near from far.
_FAINT = np.float32(1e-3)


class Queries(NamedTuple):
    """Texts with a unit vector each, or none where only keywords are searched (`gap` or `unread` says why).

    `tokens` are there where the store has token codes for reranking. `fingerprint` is the embedder's that made the
    vectors, None where the caller gave them. `unread` says that the embedder does not read the script of the first.
    `cohort` is there if no weights were fitted for the embedder.
    """

    texts: list[str]
    vectors: Sequence[NDArray[np.float32]] | None
    tokens: Sequence[QueryTokens | None] | None = None
    fingerprint: str | None = None
    gap: str | None = None
    unread: str | None = None
    cohort: Cohort | None = None

    def part(self, start: int, stop: int) -> Queries:
        """Some of them."""
        return self._replace(
            texts=self.texts[start:stop],
            vectors=None if self.vectors is None else self.vectors[start:stop],
            tokens=None if self.tokens is None else self.tokens[start:stop],
        )


def given_vectors(vectors: Sequence[object], count: int) -> list[NDArray[np.float32]]:
    """Check the vectors that the caller gives for `count` queries."""
    try:
        each = list(vectors)
    except TypeError:
        raise InvalidInput(f"vectors is {type(vectors).__name__}: give one vector a query") from None
    if len(each) != count:
        raise InvalidInput(f"vectors has {len(each)} entries for {count} queries: give one each")
    return [check_vector(vector, None) for vector in each]


def prepare_queries(
    engine: Engine, queries: Sequence[str], vectors: Sequence[NDArray[np.float32]] | None, request: Request
) -> Queries:
    """Embed the queries in one batch, before a transaction is open."""
    texts = [*queries]
    if vectors is not None:
        return Queries(texts, vectors)
    if request.mode == "keyword" or request.profile.vector_weight == 0 or not texts:
        return Queries(texts, None)
    active, has_codes = engine.queried_embedder, True
    if active is None:
        with engine.store.read() as reader:
            active, has_codes = reader.vectors.active_embedder(), reader.vectors.has_token_codes()
    if active is None:
        return Queries(texts, None)
    by_tokens = request.profile.rerank_weight > 0 and has_codes
    if request.mode == "vector" and not engine.embedder.enabled:
        raise EmbedderError("this memory has no embedder: give vector=, or use mode='keyword'", "missing")
    try:
        fingerprint = engine.check_embedder(active).fingerprint
        # A server is not waited for again. Should the store move to another embedder, `check_comparable` finds it.
        engine.queried_embedder = active if has_codes else None
        (unread,) = engine.embedder.unread(texts[:1], _READ_SHARE)
        if unread is not None and request.mode != "vector":
            return Queries(texts, None, unread=f"{unread}: keywords alone were searched; another model may read it")
        embedded = engine.embedder.queries(texts, tokens=by_tokens)
        if not engine.embedder.measured:
            measure_embedder(engine, active)
        # Profiles of other systems rank by the cosine as it is.
        cohort = engine.embedder.cohort if request.profile.name == DEFAULT.name else None
        if cohort is not None and not cohort.separates and request.mode != "vector":
            if request.relevant:
                return Queries(texts, None)
            # Words decide; where they are too few, the limit is filled.
            return Queries(texts, [query.vector * _FAINT for query in embedded], None, fingerprint)
        engine.embedder.worked()
    except EmbedderMismatch:
        raise
    except EmbedderError as failure:
        if request.mode == "vector":
            raise
        engine.embedder.failed(failure, "recall is by keywords")
        return Queries(texts, None, gap=f"meaning was not searched: {failure}")
    tokens = [query.tokens for query in embedded] if by_tokens else None
    return Queries(texts, [query.vector for query in embedded], tokens, fingerprint, cohort=cohort)


def by_reading(engine: Engine, queries: Sequence[str], request: Request) -> list[list[int]]:
    """The indices of the queries that the embedder reads, and of the others; all where it is not asked."""
    every = [*range(len(queries))]
    if request.mode != "hybrid" or request.profile.vector_weight == 0:
        return [every]
    try:
        unread = engine.embedder.unread(queries, _READ_SHARE)
    except EmbedderError:  # embedding them will say why
        return [every]
    return [part for part in ([i for i in every if not unread[i]], [i for i in every if unread[i]]) if part]


def check_comparable(queries: Queries, active: EmbedderRow | None, path: str) -> None:
    """Refuse query vectors that cannot be compared with the store's vectors in this transaction."""
    if active is None or queries.vectors is None:
        return
    if queries.fingerprint is not None and queries.fingerprint != active.fingerprint:
        raise EmbedderMismatch(
            f"{path} holds vectors of {active.name} ({active.dimension}, {active.fingerprint}) by now: another process "
            "moved it to that embedder; open the memory with it"
        )
    for i, vector in enumerate(queries.vectors):
        if len(vector) != active.dimension:
            raise InvalidInput(
                f"vector {i} has shape ({len(vector)},): this store takes shape ({active.dimension},)", "vector"
            )


def query_words(text: str) -> list[str]:
    """The query's words without stop words; all of them where it has only stop words."""
    terms = query_terms(text)
    return [word for word in terms if word not in STOP_TERMS] or terms


# A question is often asked again.
_as_past, _in_past_tense = lru_cache(maxsize=1024)(as_past), lru_cache(maxsize=1024)(in_past_tense)
_as_story = lru_cache(maxsize=1024)(as_story)


# The times that a question names, as spans that raise the records in them: "in May", "last week", "since 2019".
# `recallite.text.dates` finds them, in questions as in memories. A question without a year means any year, and what
# happened then may have been told soon after. Days are in UTC.

_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()
# A day or month without a year is of any year: up to this number of years back, and of the next.
_YEARS_BACK = 10
# What happened on a day, or in a month, is often told within a week.
_TOLD_WITHIN_DAYS = 7
_LONGEST_TOLD_DAYS = 31
_LONGEST_TEXT = 2_000
_LIMIT_CHARS = 24


class Span(NamedTuple):
    """Microseconds since 1970 UTC, `end` excluded; what is told within `fade` after it counts less and less."""

    begin: int
    end: int
    fade: int


def spans_of(text: str, terms: Sequence[str], clock_us: int) -> tuple[Span, ...]:
    """The times that a text with these index terms names, seen from a moment in microseconds; often none."""
    named = terms_of_times(text, terms) if len(text) <= _LONGEST_TEXT else None
    if named is None:
        return ()
    folded = fold(text)
    languages = languages_of(folded, named) if len(folded) == len(text) else ()
    try:
        today = date.fromordinal(_EPOCH + clock_us // _DAY_US)
        for language in languages:
            times = language.find(folded, named, today, question=True)
            if spans := [span for time in _joined(folded, times, language) for span in _spans(time)]:
                return tuple(dict.fromkeys(spans))
    except (ValueError, OverflowError):  # far from our years
        pass
    return ()


def is_time_word(term: str) -> bool:
    """Whether an index term is a word of a time, or a number."""
    return term in time_terms() or term.isdigit()


def _joined(folded: str, times_found: list[Mention], language: Language) -> list[Time]:
    """Each time; "from X to Y" and "between X and Y" are one, and "since X" or "before Y" is open at one end."""
    times, skip = [], False
    for one, other in pairwise([*times_found, None]):
        assert one is not None
        if skip:
            skip = False
            continue
        limit = language.context.limit.search(folded, max(0, one.start - _LIMIT_CHARS), one.start)
        word = None if limit is None else limit.lastgroup
        if other is not None and word == "range" and language.context.joint.fullmatch(folded, one.stop, other.start):
            times.append(ranged(one.time, other.time))
            skip = True
        elif word in ("since", "after") and not one.time.recurs:
            begin = one.time.end if word == "after" else one.time.begin
            times.append(Time(begin, date.max))
        elif word in ("before", "until") and not one.time.recurs:
            times.append(Time(date.min, one.time.begin if word == "before" else one.time.end))
        else:
            times.append(one.time)
    return times


def _spans(time: Time) -> Iterator[Span]:
    length = (time.end - time.begin).days
    fade = _TOLD_WITHIN_DAYS * _DAY_US if time.retold and length <= _LONGEST_TOLD_DAYS else 0
    for back in range(-1, _YEARS_BACK + 1) if time.recurs else (0,):
        try:
            begin = time.begin.replace(year=time.begin.year - back)
            end = begin + timedelta(1) if length == 1 else years_before(time.end, back)
        except ValueError:  # 29 February
            continue
        yield Span((begin.toordinal() - _EPOCH) * _DAY_US, (end.toordinal() - _EPOCH) * _DAY_US, fade)


# The time that a question is about. Of the best candidates that state one thing with different values, the one that
# holds leads: "Dana lives in Bergen now" goes directly before "Dana lives in Oslo", whichever is nearer to the
# question, if it is the later one. A question about the past turns that around: what held before, at first, or at the
# time that it names leads. Statements that were marked as superseded when they were written are not shown at all, but
# to such a question they are.

_FIRST_MOMENT, _LAST_MOMENT = -(2**63), 2**63 - 1


class AskedTime(NamedTuple):
    """The time that a question is about: a moment in microseconds, or what is former.

    `before` are index terms of what came after, in a question about what was before something.
    """

    moment: int
    former: bool = False
    before: frozenset[str] = frozenset()


NOW, _FIRST = AskedTime(_LAST_MOMENT), AskedTime(_FIRST_MOMENT)
_FORMER = AskedTime(_LAST_MOMENT, former=True)


@lru_cache(maxsize=64)  # a question about the past is looked at again when it is answered
def asked_time(question: str, clock_us: int) -> AskedTime:
    """The time that a question is about; `NOW` for one that is not recognised as being about the past."""
    past = _as_past(question)
    if past is not None and past.which != "before":
        return _FORMER if past.which == "former" else _FIRST
    if past is None and not _in_past_tense(question):
        return NOW
    spans = spans_of(question, query_terms(question), clock_us)
    moment = max((span.end for span in spans if span.begin <= clock_us), default=clock_us) - 1
    if spans:
        return AskedTime(moment) if moment < clock_us else NOW
    return NOW if past is None else _FORMER._replace(before=frozenset(tokenize(past.named)) - STOP_TERMS)


# Questions that are not recalled as they stand: about a whole story, and about the past.

_MOST_KEYWORDS, _LONGEST_KEYWORDS = 3, 60


class Adapted(NamedTuple):
    """Queries of one call that share a request: their indices among all of them, and what is searched for each."""

    indices: list[int]
    texts: list[str]
    request: Request


def adapt(query: str, request: Request, *, stories: bool) -> tuple[str, Request]:
    """The text that is searched for a query, and its request; `stories` may be searched by another text.

    A question about a whole story is searched by its topic: most of its other words name no memory. On BEAM's ordering
    questions that alone doubled the evidence among 40 hits. A story, and a question about the past, are told with what
    no longer holds.
    """
    if not request.profile.adaptive:
        return query, request
    story = _as_story(query) if stories else None
    past = story is not None or asked_time(query, request.clock) is not NOW
    if past:
        request = structs.replace(request, about_past=True, filter=request.filter.replaced(include_superseded=True))
    if request.relevant and (story is not None or of_keywords(query)):
        profile = structs.replace(request.profile, min_confidence=request.own_least)
        request = structs.replace(request, profile=profile, relevant=story is None, keywords=story is None)
    if story is None:
        return query, request
    over = request.diversify_by or "time"
    return story.topic, structs.replace(request, diversify_by=over, own_words=story.own_words)


def of_keywords(query: str) -> bool:
    """Whether a query is one to three words that do not ask: each of them counts."""
    terms = query_terms(query) if len(query) <= _LONGEST_KEYWORDS and not query.rstrip().endswith("?") else []
    return 0 < len(terms) <= _MOST_KEYWORDS and not any(term in STOP_TERMS or term in QUESTION_TERMS for term in terms)


def adapt_all(queries: Sequence[str], request: Request, *, stories: bool) -> list[Adapted]:
    """The queries by the request that they become; most calls have one group."""
    groups: dict[tuple[str | None, bool, bool, bool], Adapted] = {}
    for i, query in enumerate(queries):
        text, query_request = adapt(query, request, stories=stories)
        key = query_request.diversify_by, query_request.own_words, query_request.about_past, query_request.keywords
        group = groups.setdefault(key, Adapted([], [], query_request))
        group.indices.append(i)
        group.texts.append(text)
    return list(groups.values())


# Questions as the kernel takes them: the numbers of their words, their vectors, times and tokens.

_NO_MOMENTS = np.empty(0, dtype=np.int64)
_NO_WORDS = np.empty(0, dtype=np.int32)
_NO_CODES = np.empty((0, 1), dtype=np.uint64)
_NAME = re.compile(r"^\W*[A-Z]|[a-z][A-Z]|[A-Z]{2}|\d")
_INNER = re.compile(r"[a-z][A-Z]|[A-Z]{2}|\d")
CONTENT, NAMED = kernels.CONTENT, kernels.NAMED
_UNKNOWN = -2  # no number of a word: -1 stands for no speaker


class Question(NamedTuple):
    """The index terms of a question, and its words that count, with the share of texts that contain each and its role.

    `counting` is how many count; 0 if all are stop words, which are in nearly every record. It is `foreign` if it
    is not English.
    """

    terms: list[str]
    words: list[str]
    shares: list[float]
    roles: list[int]
    counting: float
    has_time: bool
    foreign: bool


@lru_cache(maxsize=1024)  # a question is often asked again
def read_question(text: str) -> Question:
    """The words of a question without stop words; all of them where it has only stop words."""
    terms = query_terms(text)
    words = [word for word in terms if word not in STOP_TERMS]
    named = names_in(text)
    roles = [NAMED if word in named else 0 if word in QUESTION_TERMS else CONTENT for word in words or terms]
    has_time = len(text) <= _LONGEST_TEXT and terms_of_times(text, terms) is not None
    foreign = is_foreign(terms)
    shares = [share_of(word, foreign) for word in words or terms]
    return Question(terms, words or terms, shares, roles, float(len(words)), has_time, foreign)


def names_in(text: str) -> set[str]:
    """The index terms of names and numbers in a question: words with a capital letter or a digit, except times.

    The first word of a sentence and most words of a title have a capital without being names.
    """
    chunks = text.split()
    capital = [chunk for i, chunk in enumerate(chunks) if _NAME.search(chunk) and (i or _INNER.search(chunk))]
    if 2 * len(capital) > len(chunks):
        capital = [chunk for chunk in capital if any(map(str.isdigit, chunk))]
    named = {term for chunk in capital for term in tokenize(chunk)} - STOP_TERMS
    return {term for term in named if not is_time_word(term)}


class QuestionArrays(NamedTuple):
    """Some questions for the kernel, with the words that count of each."""

    words: list[list[str]]
    longest: int
    tokens: int
    asking: kernels.Asking


def question_arrays(
    reader: Reader, generation: int, queries: Queries, request: Request, by_vector: bool
) -> QuestionArrays:
    """Questions as the kernel takes them; words are numbered by the index's `generation`."""
    texts = queries.texts
    read = list(map(read_question, texts))
    counted = [] if request.mode == "vector" else read
    words = [question.words for question in counted] or [[] for _ in read]
    flat = list(chain.from_iterable(words))
    numbers = reader.lexicon.recalled(flat, generation)
    shares = list(chain.from_iterable(question.shares for question in counted))
    roles = list(chain.from_iterable(question.roles for question in counted))
    counting = [question.counting for question in counted] or [0.0] * len(read)
    spans = [
        spans_of(text, question.terms, request.clock) if question.has_time and request.profile.date_weight > 0 else ()
        for text, question in zip(texts, read, strict=True)
    ]
    begins = ends = fades = _NO_MOMENTS
    span_offsets = _zeros(len(texts) + 1)
    if any(spans):
        begins, ends, fades = np.ascontiguousarray(np.array([*chain.from_iterable(spans)], dtype=np.int64).T)
        span_offsets = _offsets(map(len, spans))
    moments, former, before, before_offsets = _times(reader, generation, texts, request)
    vectors = np.empty((len(texts), 0), dtype=np.float32)
    if by_vector and queries.vectors is not None:
        vectors = queries.vectors[0][None] if len(texts) == 1 else np.stack(queries.vectors)
        if queries.cohort is not None and request.mode != "vector":
            vectors = queries.cohort.searched(vectors)
    codes, token_offsets, token_words, token_word_offsets, width = _tokens(texts, queries.tokens, words)
    asking = kernels.Asking(
        vectors=vectors, numbers=np.array([numbers.get(word, _UNKNOWN) for word in flat], dtype=np.int32),
        shares=np.array(shares, dtype=np.float64), roles=np.array(roles, dtype=np.uint8),
        word_offsets=_offsets(map(len, words)), counting=np.array(counting),
        begins=begins, ends=ends, fades=fades, span_offsets=span_offsets, moments=moments, former=former,
        before=before, before_offsets=before_offsets, token_codes=codes, token_offsets=token_offsets,
        token_words=token_words, token_word_offsets=token_word_offsets, width=width,
    )  # fmt: skip
    return QuestionArrays(words, max(map(len, words)), len(codes), asking)


def _times(
    reader: Reader, generation: int, texts: Sequence[str], request: Request
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int64]]:
    """The time that each question is about, and the numbers of the words of what it names as having come after."""
    if not request.about_past:
        return _now(len(texts))
    times = [asked_time(text, request.clock) for text in texts]
    before = [sorted(time.before) for time in times]
    words = list(chain.from_iterable(before))
    numbers = reader.lexicon.recalled(words, generation)
    return (
        np.array([time.moment for time in times], dtype=np.int64),
        np.array([time.former for time in times], dtype=np.uint8),
        np.array([numbers.get(word, _UNKNOWN) for word in words], dtype=np.int32),
        _offsets(map(len, before)),
    )


def _tokens(
    texts: Sequence[str], tokens: Sequence[QueryTokens | None] | None, words: Sequence[list[str]]
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """The codes of the questions' tokens, and the words that each stands for, as indices into its question's words."""
    if tokens is None:
        return _NO_CODES, _zeros(len(texts) + 1), _NO_MOMENTS, _zeros(1), 1
    codes, counts, width = [], [], 1
    word_indices: list[int] = []
    sizes: list[int] = []
    for text, question_tokens, question_words in zip(texts, tokens, words, strict=True):
        counts.append(0 if question_tokens is None else len(question_tokens.codes))
        if question_tokens is None or not len(question_tokens.codes):
            continue
        codes.append(question_tokens.codes)
        width = question_tokens.width
        for standing_for in words_of_tokens(text, question_tokens.places.tolist(), question_words):
            word_indices += standing_for
            sizes.append(len(standing_for))
    all_codes = np.concatenate(codes) if codes else _NO_CODES
    return all_codes, _offsets(counts), np.array(word_indices, dtype=np.int64), _offsets(sizes), width


def words_of_tokens(text: str, begins: Sequence[int], words: Sequence[str]) -> list[list[int]]:
    """The indices of the `words` that each token of a text is part of; `begins` are the tokens' characters."""
    placed = placed_terms(text)
    starts, index_of = [begin for begin, _ in placed], {word: i for i, word in enumerate(words)}
    # Before the first term there is none.
    indices = [[], *([index_of[term] for term in terms if term in index_of] for _, terms in placed)]
    return [indices[bisect_right(starts, begin)] for begin in begins]


def _offsets(counts: object) -> NDArray[np.int64]:
    return np.array([0, *accumulate(counts)], dtype=np.int64)  # type: ignore[call-overload]


@lru_cache(maxsize=64)
def _zeros(count: int) -> NDArray[np.int64]:
    return np.zeros(count, dtype=np.int64)


@lru_cache(maxsize=64)
def _now(count: int) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int64]]:
    """What `_times` returns for questions about the present."""
    moments, former = np.full(count, NOW.moment, dtype=np.int64), np.zeros(count, dtype=np.uint8)
    return moments, former, _NO_WORDS, _zeros(count + 1)
