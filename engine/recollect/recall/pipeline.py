"""Recall, from queries to hits:

query -> embed -> candidates by vector and keyword -> fuse -> spread -> weigh -> threshold -> diversify -> hits
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.checks import check_query, check_vector
from recollect.engine import Engine
from recollect.errors import EmbedderError, EmbedderMismatch, EmbedderMissing, InvalidInput
from recollect.index.cold import ColdView
from recollect.index.memory_view import MemoryView
from recollect.index.table import Visible
from recollect.recall.candidates import Candidates, gather
from recollect.recall.confidence import confidences, evidence_gaps
from recollect.recall.hits import build_hit, fit_budget
from recollect.recall.request import Request
from recollect.recall.score import spread, weigh
from recollect.recall.select import diversify, group_by_source, order_by_score, threshold
from recollect.records import Hits
from recollect.store import loading, reading
from recollect.store.filters import where_condition
from recollect.store.vectors import active_embedder
from recollect.text.stopwords import STOP_TERMS
from recollect.text.tokens import query_terms

if TYPE_CHECKING:
    import apsw
    from numpy.typing import NDArray

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
    texts = [check_query(query) for query in queries]
    embedded, gap = query_vectors(engine, texts, vectors, request)
    embedded_at = perf_counter()
    with (
        engine.store.read() as connection,
        open_view(engine, connection, request, cold=engine.settings.index == "cold") as view,
    ):
        opened_at = perf_counter()
        answers = [
            answer(engine, connection, view, text, vector, request)
            for text, vector in zip(texts, embedded, strict=True)
        ]
        answered_at = perf_counter()
        hits = show(engine, connection, texts, answers, request, gap)
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
) -> Answer:
    """One query through every stage."""
    words = [] if request.mode == "vector" else query_words(text)
    numbers = engine.lexicon.lookup(connection, words)
    known = tuple(word for word in words if word in numbers)
    unknown = tuple(word for word in words if word not in numbers)
    question = view.ask(vector, np.array([numbers[word] for word in known], dtype=np.int32), known)
    candidates = gather(question, request.profile)
    spread(candidates, question, request.profile)
    weigh(candidates, question, request.profile, request.clock)
    order = order_by_score(candidates)
    kept = threshold(candidates, order, question, request, len(unknown))
    kept = diversify(candidates, kept, request, lambda keys: next(loading.terms(connection, keys.tolist())))
    if request.group_by is not None:
        kept = group_by_source(candidates, kept, question)
    return Answer(question, candidates, order, kept[: request.limit], known, unknown)


def query_words(text: str) -> list[str]:
    """The query's words without stop words; all of them where it has no others."""
    words = query_terms(text)
    return [word for word in words if word not in STOP_TERMS] or words


def see(connection: apsw.Connection, request: Request) -> Visible:
    """The request's filter, resolved to numbers at this commit."""
    chosen = request.filter
    return Visible(
        now=request.now,
        as_of=chosen.as_of,
        scopes=None if chosen.scope is None else tuple(reading.scopes_within(connection, chosen.scope)),
        kinds=chosen.kinds,
        since=chosen.since,
        until=chosen.until,
        ids=tuple(reading.matching_ids(connection, where_condition(chosen))) if chosen.tags or chosen.where else None,
    )


@contextmanager
def open_view(
    engine: Engine, connection: apsw.Connection, request: Request, *, cold: bool
) -> Iterator[MemoryView | ColdView]:
    """The store at this read transaction's commit, under the request's filter: from RAM, or from SQL if `cold`."""
    embedder = active_embedder(connection)

    def exact(keys: NDArray[np.int64]) -> loading.VectorBlock:
        assert embedder is not None
        return loading.exact_vectors(connection, embedder.id, embedder.dimension, keys)

    if cold:
        yield ColdView(connection, request.filter, request.now, embedder, exact, request.profile.candidates)
        return
    with engine.index.current(connection):
        yield MemoryView(engine.index, see(connection, request), exact)


def query_vectors(
    engine: Engine, texts: Sequence[str], given: Sequence[object] | None, request: Request
) -> tuple[Sequence[NDArray[np.float32] | None], str | None]:
    """A unit vector per query, or None where only keywords can be searched, with the reason."""
    with engine.store.read() as connection:
        active = active_embedder(connection)
    if given is not None:
        if len(given) != len(texts):
            raise InvalidInput(f"vectors has {len(given)} entries for {len(texts)} queries: give one each, or None")
        return [check_vector(vector, None if active is None else active.dimension) for vector in given], None
    nothing = [None] * len(texts)
    if request.mode == "keyword" or request.profile.vector_weight == 0 or active is None or not texts:
        return nothing, None
    if not engine.embedder.enabled:
        if request.mode == "vector":
            raise EmbedderMissing("this memory has no embedder: give vector=, or use mode='keyword'")
        return nothing, "meaning was not searched: this memory has no embedder"
    try:
        identity = engine.embedder.identity()
        if identity.fingerprint != active.fingerprint:
            raise EmbedderMismatch(
                f"{engine.store.path} holds vectors of {active.name} ({active.dimension}); this embedder is "
                f"{identity.name} ({identity.dimension}). Run: recollect --db {engine.store.path} reembed"
            )
        return engine.embedder.queries(texts), None
    except EmbedderMismatch:
        raise
    except EmbedderError as failure:
        if request.mode == "vector":
            raise
        return nothing, f"meaning was not searched: {failure}"


def show(
    engine: Engine,
    connection: apsw.Connection,
    texts: Sequence[str],
    answers: Sequence[Answer],
    request: Request,
    gap: str | None,
) -> list[Hits]:
    """Fetch the chosen records of all answers at once and build their hits."""
    chosen = [each.candidates.keys[each.chosen] for each in answers]
    found = reading.fetch(connection, np.unique(np.concatenate(chosen)) if chosen else [])
    shown = []
    for text, each, keys in zip(texts, answers, chosen, strict=True):
        rows = each.candidates.rows[each.chosen]
        confidence = confidences(each.question, rows, each.candidates.cosine[each.chosen], len(each.unknown))
        gaps = evidence_gaps(
            text, each.question, rows, each.words, each.unknown, confidence, request.profile.gap_confidence
        )
        if gap is not None:
            gaps = (*gaps, gap)
        hits = [
            build_hit(each.candidates, place, found[key], sure, gaps, request)
            for place, key, sure in zip(each.chosen.tolist(), keys.tolist(), confidence.tolist(), strict=True)
            if key in found
        ]
        left_out = 0
        if request.token_budget is not None:
            hits, left_out = fit_budget(hits, request.token_budget, engine.embedder.count_tokens)
        shown.append(Hits(hits, query=text, evidence_gaps=gaps, left_out=left_out))
    return shown
