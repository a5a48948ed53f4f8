"""A group of queries through every stage, from candidates to what is said of the hits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.index.query_batch import IndexView
from recollect.recall.candidates import Candidates, Held, gather, share
from recollect.recall.confidence import evidence_gaps, weigh_evidence, weigh_for_each
from recollect.recall.depth import Whole, fuse_parts
from recollect.recall.hits import Line, describe
from recollect.recall.look import ReadCodes, second_look
from recollect.recall.query import Words, carried_words
from recollect.recall.request import Request
from recollect.recall.select import MMR_LEAST, MMR_POOL, available, diversify, group_by_source, threshold
from recollect.store.protocol import Reader
from recollect.store.values import EmbedderRow, TermBlock

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.embedding.protocol import QueryTokens
    from recollect.index.query_batch import QueryBatch
    from recollect.profiles import Profile

__all__ = ["Answer", "Rows", "answer"]


class Answer(NamedTuple):
    """A query after all stages: its candidates, the places that are returned and what is said of them.

    `whole` is there where the query was searched in parts.
    """

    candidates: Candidates
    chosen: NDArray[np.int64]
    lines: list[Line]
    gaps: tuple[str, ...]
    whole: Whole | None = None


class Rows:
    """What recall reads of the store while it runs; one connection, so one thread at a time."""

    def __init__(self, reader: Reader, embedder: EmbedderRow | None) -> None:
        self._reader, self._embedder = reader, embedder
        self._lock = threading.Lock()

    def originals(self, vector_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The stored float32 vectors with these ascending row ids."""
        assert self._embedder is not None
        with self._lock:
            return self._reader.blocks.exact_vectors(self._embedder.dimension, vector_ids)

    def codes(self, keys: NDArray[np.int64]) -> list[tuple[int, bytes]]:
        """The token codes of the parts of these records."""
        with self._lock:
            return self._reader.vectors.token_codes_of(keys)

    def terms(self, keys: NDArray[np.int64]) -> TermBlock:
        """The words of these records."""
        with self._lock:
            return self._reader.blocks.terms(keys.tolist())


def answer(
    view: IndexView,
    rows: Rows,
    texts: Sequence[str],
    vectors: NDArray[np.float32] | None,
    tokens: Sequence[QueryTokens | None] | None,
    words: Sequence[Words],
    request: Request,
    wanted: int,
    *,
    whole: bool = False,
) -> list[Answer]:
    """A group of queries through every stage, with the best `wanted` by each signal as candidates.

    With `whole` they are a question and its parts, and have one answer.
    """
    profile = request.profile
    questions = view.batch(vectors, [each.terms for each in words])
    asked_words, words = words, carried_words(words, questions.in_vocabulary)
    look = None if tokens is None else partial(look_again, questions, texts, tokens, words, rows.codes, profile)
    candidates, more = gather(questions, profile, wanted, request.clock, look, held=_held(request, wanted))
    if whole:
        found = _answer_whole(texts, words, questions, candidates, rows, request)
        if more.any() and available(found.candidates, questions, request) < request.limit:
            return answer(view, rows, texts, vectors, tokens, asked_words, request, 4 * wanted, whole=True)
        return [found]
    unknown = [len(each.unknown) for each in words]
    sure = None
    if profile.min_confidence > 0:
        sure = weigh_evidence(questions, candidates.offsets, candidates.rows, candidates.cosine, unknown).confidence
    parts, kept, short = [], [], []
    for query, (start, stop) in enumerate(pairwise(candidates.offsets.tolist())):
        part = candidates.of(query)
        if more[query] and available(part, questions, request) < request.limit:
            short.append(query)
        parts.append(part)
        kept.append(_choose(part, None if sure is None else sure[start:stop], questions, request, rows))
    chosen_offsets = np.cumsum([0, *map(len, kept)], dtype=np.int64)
    places = np.concatenate(kept) + np.repeat(candidates.offsets[:-1], np.diff(chosen_offsets))
    evidence = weigh_evidence(questions, chosen_offsets, candidates.rows[places], candidates.cosine[places], unknown)
    lines = describe(candidates, chosen_offsets, places, evidence.confidence, profile)
    answers = []
    for query, part in enumerate(parts):
        start, stop = chosen_offsets[query : query + 2].tolist()
        known = slice(*questions.word_offsets[query : query + 2].tolist())
        gaps = () if _scores_enough(lines[start:stop], profile) else evidence_gaps(
            texts[query], evidence.confidence[start:stop], words[query], questions.idf[known], evidence.met[known],
            profile.gap_confidence, request.time_range,
        )  # fmt: skip
        answers.append(Answer(part, kept[query], lines[start:stop], gaps))
    for query in short:
        one = slice(query, query + 1)
        again = None if vectors is None else vectors[one]
        asked = None if tokens is None else tokens[one]
        (answers[query],) = answer(view, rows, texts[one], again, asked, asked_words[one], request, 4 * wanted)
    return answers


def _held(request: Request, wanted: int) -> Held:
    """How many of the best are to be known exactly so that the hits are."""
    if request.profile.min_confidence > 0:
        return Held(wanted)
    if request.profile.mmr_lambda is not None:
        return Held(max(MMR_POOL * request.limit, MMR_LEAST))
    return Held(request.limit, request.group_by is not None)


def _scores_enough(lines: Sequence[Line], profile: Profile) -> bool:
    """Whether a score alone says that there is evidence."""
    return profile.gap_score is not None and any(line.score >= profile.gap_score for line in lines)


def _choose(
    candidates: Candidates,
    confidence: NDArray[np.float64] | None,
    questions: QueryBatch,
    request: Request,
    rows: Rows,
) -> NDArray[np.int64]:
    """The places of the candidates of one query that are returned."""
    chosen = threshold(candidates, confidence, request.profile)
    chosen = diversify(candidates, chosen, request, rows.terms)
    if request.group_by is not None:
        chosen = group_by_source(candidates, chosen, questions)
    return chosen[: request.limit]


def _answer_whole(
    texts: Sequence[str],
    words: Sequence[Words],
    questions: QueryBatch,
    candidates: Candidates,
    rows: Rows,
    request: Request,
) -> Answer:
    """The answer to a question, the first, and its parts; what is missing is said part by part."""
    profile, unknown = request.profile, [len(each.unknown) for each in words]
    whole = fuse_parts(share(candidates, questions, profile, request.clock))
    fused, sure = whole.candidates, None
    if profile.min_confidence > 0:
        sure = weigh_for_each(questions, fused.rows, whole.cosines, unknown).confidence.max(axis=0)
    chosen = _choose(fused, sure, questions, request, rows)
    evidence = weigh_for_each(questions, fused.rows[chosen], whole.cosines[:, chosen], unknown)
    offsets = np.array([0, len(chosen)], dtype=np.int64)
    lines = describe(fused, offsets, chosen, evidence.confidence.max(axis=0), profile)
    gaps: dict[str, None] = {}
    for part in range(1, len(texts)):
        known = slice(*questions.word_offsets[part : part + 2].tolist())
        missing = evidence_gaps(
            texts[part], evidence.confidence[part], words[part], questions.idf[known], evidence.met[known],
            profile.gap_confidence, request.time_range,
        )  # fmt: skip
        gaps |= dict.fromkeys(f"{gap}, for {texts[part]!r}" if len(chosen) else gap for gap in missing)
    return Answer(fused, chosen, lines, tuple(gaps), whole)


def look_again(
    questions: QueryBatch,
    texts: Sequence[str],
    tokens: Sequence[QueryTokens | None],
    words: Sequence[Words],
    read: ReadCodes,
    profile: Profile,
    candidates: Candidates,
) -> NDArray[np.float64]:
    """The second look at the candidates of each query."""
    added = [np.empty(0)]
    for query, (text, each, known) in enumerate(zip(texts, tokens, words, strict=True)):
        part = candidates.of(query)
        if each is None:
            added.append(np.zeros(len(part)))
            continue
        idf = questions.idf[slice(*questions.word_offsets[query : query + 2].tolist())].tolist()
        weights = dict(zip(known.known, idf, strict=True)) | dict.fromkeys(known.unknown, questions.unseen_idf)
        added.append(second_look(part, text, each, weights, read, profile))
    return np.concatenate(added)
