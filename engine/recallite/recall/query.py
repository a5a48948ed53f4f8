"""The questions of a recall: what they become, their vectors, and their arrays for the kernel.

In the order of a recall: what a question asks for may change its request; texts are embedded together; then words,
times, vectors and token codes become arrays. `recallite.text.questions` reads the texts. An embedder that no weights
were fitted for has its cohort embedded before the first question.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache, lru_cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from recallite.embedding.cohort import FILE, Cohort, measured, sentences
from recallite.embedding.protocol import QueryTokens, embed_checked, embed_documents
from recallite.engine import Engine
from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput, RecalliteError
from recallite.model.checks import check_vector
from recallite.model.settings import DEFAULT
from recallite.recall.confidence import is_fitted_for
from recallite.recall.request import Request
from recallite.store.columns import Parts
from recallite.store.sql.vectors import EmbedderRow
from recallite.store.transaction import Reader
from recallite.system.numerics import kernels
from recallite.system.telemetry import logger
from recallite.text.questions import NOW, Question, asked_time, read_question, recognise, spans_of
from recallite.text.words import placed_terms

if TYPE_CHECKING:
    from recallite.recall.plan import Opened

# Questions that are not recalled as they stand.


def adapt(query: str, request: Request, *, stories: bool) -> tuple[str, Request]:
    """The text that is searched for a query, and its request; `stories` may be searched by another text.

    A question about a whole story is searched by its topic: most of its other words name no memory. On BEAM's ordering
    questions that alone doubled the evidence among 40 hits.
    """
    if not request.profile.adaptive:
        return query, request
    asked = recognise(query)
    story = asked.story if stories else None
    changes: dict[str, Any] = {}
    of_past = asked.past is not None or asked.in_past_tense
    if story is not None or (of_past and asked_time(query, request.clock) is not NOW):
        changes |= {"about_past": True, "filter": request.filter.replaced(include_superseded=True)}
    if request.relevant and (story is not None or asked.keywords):
        profile = structs.replace(request.profile, min_confidence=request.own_least)
        changes |= {"profile": profile, "relevant": story is None, "keywords": story is None}
    if story is not None:
        changes |= {"diversify_by": request.diversify_by or "time", "own_words": story.own_words}
    return query if story is None else story.topic, structs.replace(request, **changes) if changes else request


# Their vectors.

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
    engine: Engine, queries: Sequence[str], vectors: Sequence[NDArray[np.float32]] | None, request: Request,
    reader: Reader | None = None,
) -> Queries:  # fmt: skip
    """Embed the queries in one batch; `reader` is the transaction that is open, if one is."""
    texts = [*queries]
    if vectors is not None:
        return Queries(texts, vectors)
    if request.mode == "keyword" or request.profile.vector_weight == 0 or not texts:
        return Queries(texts, None)
    active, has_codes = engine.queried_embedder, True
    if active is None:
        with engine.store.read() if reader is None else nullcontext(reader) as reader:
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
    vectors, tokens = zip(*embedded, strict=True)
    return Queries(texts, vectors, tokens if by_tokens else None, fingerprint, cohort=cohort)


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


# The cohort of the store's embedder (`recallite.embedding.cohort`): embedded at the first recall, kept in the store.

_BATCH = 64
_log = logger(__name__)


def notes_on(embedder: str | None, cohort: Cohort | None) -> list[str]:
    """Return a note for each part of recall that does not work with this embedder, given by name."""
    if is_fitted_for(embedder):
        return []
    notes = [f"hits are not read, nor ordered by the learned ranking: neither is fitted for {embedder}"]
    if cohort is not None and not cohort.separates:
        notes.append(f"{embedder} gives questions and their answers no nearer vectors: recall is by keywords")
    return notes


def measure_embedder(engine: Engine, active: EmbedderRow) -> None:
    """Let the engine's embedder, which is the store's, have its cohort, if no weights were fitted for it.

    What it gives for the cohort is in the store's cache, or embedded and kept there.
    """
    handle = engine.embedder
    try:
        if not is_fitted_for(active.name):
            handle.cohort = measured(*(_kept(engine, active) or _embedded(engine, active)))
    except EmbedderError as failure:
        _log.warning("%s embeds no cohort, so that its cosines count as the default model's: %s", active.name, failure)
    for note in notes_on(active.name, handle.cohort):
        _log.info(note)
    handle.measured = True


def _kept(engine: Engine, active: EmbedderRow) -> list[NDArray[np.float32]] | None:
    with engine.store.read() as reader:
        kept = reader.embedding_cache.look_up(active, [_key()]).get(_key())
    ends = np.cumsum([len(texts) for texts in sentences()])
    if kept is None or len(kept.values) != ends[-1]:
        return None
    return np.split(np.frombuffer(b"".join(kept.values), np.float32).reshape(-1, active.dimension), ends[:-1])


def _embedded(engine: Engine, active: EmbedderRow) -> list[NDArray[np.float32]]:
    embedder, (asked, told, prompts) = engine.embedder.get(), sentences()
    size, queries = engine.embedder.batch_size or _BATCH, [*asked, *prompts]
    batches = [embed_checked(embedder, queries[begin : begin + size]) for begin in range(0, len(queries), size)]
    questions, embedded = np.concatenate(batches), embed_documents(embedder, told, [None] * len(told))
    first_parts = np.searchsorted(embedded.owners, np.arange(len(told)))
    answers = np.asarray(embedded.vectors[first_parts], np.float32)
    vectors = [questions[: len(asked)], answers, questions[len(asked) :]]
    parts = Parts(tuple(row.tobytes() for rows in vectors for row in rows), ())
    try:
        with engine.store.atomic(wait=False) as writer:
            writer.embedding_cache.keep(active, {_key(): parts}, None)
    except RecalliteError:  # read-only, or another process writes: the next one embeds it again
        _log.debug("the cohort of %s is not kept", active.name)
    return vectors


@cache
def _key() -> bytes:
    return hashlib.sha256(FILE.read_bytes()).digest()


# Questions as the kernel takes them: the numbers of their words, their vectors, times and tokens.

_NO_MOMENTS = np.empty(0, dtype=np.int64)
_NO_WORDS = np.empty(0, dtype=np.int32)
_NO_CODES = np.empty((0, 1), dtype=np.uint64)
_NO_WORDS_COUNT = Question([], [], [], [], 0.0, False, False)
_UNKNOWN = -2  # no number of a word: -1 stands for no speaker


class QuestionArrays(Struct, frozen=True):
    """Some questions for the kernel, with the words that count of each."""

    words: list[list[str]]
    longest: int
    tokens: int
    asking: kernels.Asking


def question_arrays(opened: Opened, queries: Queries, request: Request, by_vector: bool) -> QuestionArrays:
    """Questions as the kernel takes them; the words of its index are numbered by the index's generation."""
    reader, generation = opened.reader, opened.memory_index.generation
    texts = queries.texts
    words, flat, shares, roles, counting, spans = [], list[str](), list[float](), list[int](), [], []
    for text in texts:
        read = read_question(text)
        counted = _NO_WORDS_COUNT if request.mode == "vector" else read
        words.append(counted.words)
        flat += counted.words
        shares += counted.shares
        roles += counted.roles
        counting.append(counted.counting)
        timed = read.has_time and request.profile.date_weight > 0
        spans.append(spans_of(text, read.terms, request.clock) if timed else ())
    numbers = reader.lexicon.recalled(flat, generation)
    begins = ends = fades = _NO_MOMENTS
    span_offsets = _zeros(len(texts) + 1)
    if any(spans):
        begins, ends, fades = np.ascontiguousarray(np.array([*chain.from_iterable(spans)], dtype=np.int64).T)
        span_offsets = _offsets(map(len, spans))
    times = _times(reader, generation, texts, request) if request.about_past else _now(len(texts))
    moments, former, before, before_offsets = times
    vectors = np.empty((len(texts), 0), dtype=np.float32)
    if by_vector and queries.vectors is not None:
        vectors = queries.vectors[0][None] if len(texts) == 1 else np.stack(queries.vectors)
        if queries.cohort is not None and request.mode != "vector":
            vectors = queries.cohort.searched(vectors)
    codes, token_offsets, token_words, token_word_offsets, width = (
        _no_tokens(len(texts)) if queries.tokens is None else token_arrays(texts, queries.tokens, words)
    )
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


def token_arrays(
    texts: Sequence[str], tokens: Sequence[QueryTokens | None], words: Sequence[list[str]]
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """The codes of the questions' tokens, and the words that each stands for, as indices into its question's words."""
    codes, counts, width = [], [], 1
    word_indices: list[int] = []
    sizes: list[int] = []
    for text, question_tokens, question_words in zip(texts, tokens, words, strict=True):
        counts.append(0 if question_tokens is None else len(question_tokens.codes))
        if question_tokens is None or not len(question_tokens.codes):
            continue
        codes.append(question_tokens.codes)
        width = question_tokens.width
        index_of = dict(zip(question_words, range(len(question_words)), strict=True))
        starts, standing_for = list[int](), [list[int]()]  # before the first term a token stands for none
        for start, terms in placed_terms(text):
            starts.append(start)
            standing_for.append([*map(index_of.__getitem__, filter(index_of.__contains__, terms))])
        for begin in question_tokens.places.tolist():
            indices = standing_for[bisect_right(starts, begin)]
            word_indices += indices
            sizes.append(len(indices))
    all_codes = np.concatenate(codes) if codes else _NO_CODES
    return all_codes, _offsets(counts), np.array(word_indices, dtype=np.int64), _offsets(sizes), width


def _offsets(counts: object) -> NDArray[np.int64]:
    return np.array([0, *accumulate(counts)], dtype=np.int64)  # type: ignore[call-overload]


@lru_cache(maxsize=64)
def _zeros(count: int) -> NDArray[np.int64]:
    return np.zeros(count, dtype=np.int64)


@lru_cache(maxsize=64)
def _no_tokens(count: int) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """What `token_arrays` returns for questions without codes."""
    return _NO_CODES, _zeros(count + 1), _NO_MOMENTS, _zeros(1), 1


@lru_cache(maxsize=64)
def _now(count: int) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int64]]:
    """What `_times` returns for questions about the present."""
    moments, former = np.full(count, NOW.moment, dtype=np.int64), np.zeros(count, dtype=np.uint8)
    return moments, former, _NO_WORDS, _zeros(count + 1)
