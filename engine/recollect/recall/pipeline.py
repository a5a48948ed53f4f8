"""Recall, from queries to hits:

query -> embed -> candidates by vector and keyword -> fuse -> look -> spread -> weigh -> threshold -> diversify -> hits
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.engine import Engine
from recollect.index.cold import ColdView
from recollect.index.memory_view import MemoryView
from recollect.index.table import Visible
from recollect.recall.candidates import Candidates, gather
from recollect.recall.confidence import evidence_gaps, weigh_evidence
from recollect.recall.hits import build_hits, fit_budget
from recollect.recall.look import second_look
from recollect.recall.query import Queries, check_comparable, prepare_queries, query_words
from recollect.recall.request import Request
from recollect.recall.score import spread, weigh
from recollect.recall.select import available, diversify, group_by_source, order_by_score, threshold
from recollect.records import Hits
from recollect.store import codes, loading, reading
from recollect.store.filters import where_condition
from recollect.store.vectors import EmbedderRow, active_embedder

if TYPE_CHECKING:
    import apsw
    from numpy.typing import NDArray

    from recollect.embedding.protocol import QueryTokens
    from recollect.index.protocol import Question

__all__ = ["Answer", "recall_queries"]


class Answer(NamedTuple):
    """A question after all stages: its candidates, their order, and the places that are returned."""

    question: Question
    candidates: Candidates
    order: NDArray[np.int64]
    chosen: NDArray[np.int64]
    words: tuple[str, ...]
    unknown: tuple[str, ...]


def recall_queries(
    engine: Engine, queries: Sequence[str], vectors: Sequence[object] | None, request: Request
) -> list[Hits]:
    """The hits of each query. One embedding batch and one read transaction serve them all."""
    started = perf_counter()
    engine.start_kernels()
    asked = prepare_queries(engine, queries, vectors, request)
    embedded_at = perf_counter()
    with (
        engine.store.read() as connection,
        open_view(engine, connection, asked, request, cold=engine.settings.index == "cold") as view,
    ):
        opened_at = perf_counter()
        answers = [
            answer(engine, connection, view, text, vector, request, tokens)
            for text, vector, tokens in zip(asked.texts, asked.vectors, asked.tokens, strict=True)
        ]
        answered_at = perf_counter()
        hits = show(engine, connection, asked, answers, request)
    stages = {
        "embed": (embedded_at - started) * 1e3,
        "catch_up": (opened_at - embedded_at) * 1e3,
        "search": (answered_at - opened_at) * 1e3,
        "fetch": (perf_counter() - answered_at) * 1e3,
    }
    for each in hits:
        each.stages = stages
    engine.accesses.add(hit.id for each in hits for hit in each)
    return hits


def answer(
    engine: Engine,
    connection: apsw.Connection,
    view: MemoryView | ColdView,
    text: str,
    vector: NDArray[np.float32] | None,
    request: Request,
    tokens: QueryTokens | None,
) -> Answer:
    """One query through every stage."""
    words = [] if request.mode == "vector" else query_words(text)
    if isinstance(view, ColdView):
        numbers = engine.lexicon.lookup(connection, words)
    else:
        numbers = engine.lexicon.recalled(connection, words, engine.index.loads)
    known = tuple(word for word in words if word in numbers)
    unknown = tuple(word for word in words if word not in numbers)
    terms = np.array([numbers[word] for word in known], dtype=np.int32)
    wanted = max(request.profile.candidates, 2 * request.limit)
    while True:
        question = view.ask(vector, terms, known, wanted)
        candidates, more = gather(question, request.profile, wanted)
        if not more or available(candidates, question, request) >= request.limit:
            break
        wanted *= 4
    if tokens is not None:
        idf = dict(zip(known, question.idf.tolist(), strict=True)) | dict.fromkeys(unknown, question.unseen_idf)
        second_look(candidates, text, tokens, idf, partial(codes.of_records, connection), request.profile)
    spread(candidates, question, request.profile)
    weigh(candidates, question, request.profile, request.clock)
    order = order_by_score(candidates)
    kept = threshold(candidates, order, question, request, len(unknown))
    kept = diversify(candidates, kept, request, lambda keys: next(loading.terms(connection, keys.tolist())))
    if request.group_by is not None:
        kept = group_by_source(candidates, kept, question)
    return Answer(question, candidates, order, kept[: request.limit], known, unknown)


def see(engine: Engine, connection: apsw.Connection, request: Request) -> Visible:
    """The request's filter, resolved to numbers at the index's commit."""
    chosen = request.filter
    listed = None
    if chosen.tags or chosen.where:
        condition = where_condition(chosen)
        listed = engine.index.listing(condition, partial(reading.matching_ids, connection, condition))
    return Visible(
        now=request.now,
        as_of=chosen.as_of,
        scopes=None if chosen.scope is None else tuple(reading.scopes_within(connection, chosen.scope)),
        kinds=chosen.kinds,
        since=chosen.since,
        until=chosen.until,
        listed=listed,
    )


@contextmanager
def open_view(
    engine: Engine, connection: apsw.Connection, asked: Queries, request: Request, *, cold: bool
) -> Iterator[MemoryView | ColdView]:
    """The store at this read transaction's commit, under the request's filter: from RAM, or from SQL if `cold`."""
    if cold:
        embedder = active_embedder(connection)
        check_comparable(asked, embedder, engine.store.path)
        read = partial(originals, connection, embedder)
        yield ColdView(connection, request.filter, request.now, embedder, read)
        return
    with engine.index.current(connection):
        embedder = active_embedder(connection)
        check_comparable(asked, embedder, engine.store.path)
        yield MemoryView(engine.index, see(engine, connection, request), partial(originals, connection, embedder))


def originals(
    connection: apsw.Connection, embedder: EmbedderRow | None, vector_ids: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The stored float32 vectors with these row ids."""
    assert embedder is not None
    return loading.exact_vectors(connection, embedder.dimension, vector_ids)


def show(
    engine: Engine,
    connection: apsw.Connection,
    asked: Queries,
    answers: Sequence[Answer],
    request: Request,
) -> list[Hits]:
    """Fetch the chosen records of all answers at once and build their hits."""
    keys = [each.candidates.keys[each.chosen] for each in answers]
    found = reading.fetch(connection, np.concatenate(keys)) if keys else {}
    shown = []
    for text, each in zip(asked.texts, answers, strict=True):
        evidence = weigh_evidence(each.question, each.candidates, each.chosen, len(each.unknown))
        gaps = evidence_gaps(text, evidence, each.words, each.unknown, request.profile.gap_confidence)
        if asked.gap is not None:
            gaps = (*gaps, asked.gap)
        hits = build_hits(each.candidates, each.chosen, found, evidence.confidence, gaps, request)
        left_out = 0
        if request.token_budget is not None:
            hits, left_out = fit_budget(hits, request.token_budget, engine.embedder.count_tokens)
        shown.append(Hits(hits, query=text, evidence_gaps=gaps, left_out=left_out))
    return shown
