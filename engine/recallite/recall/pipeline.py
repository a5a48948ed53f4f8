"""Recall, from queries to hits: recognise the question, embed it, find its hits in one kernel, fetch their records.

`recallite_kernels.composition` orders hits: words and vectors -> fuse -> rerank -> spread -> weigh -> learned ranking
-> what changed -> threshold -> standing instructions. What is recognised in a question (a story, the past, several
steps, a value that changes) changes the request. Many queries go through together; a decomposed question and its
sub-queries have one answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec import structs

from recallite.engine import Engine
from recallite.errors import StoreUnavailable
from recallite.model.checks import check_query
from recallite.model.filters import Filter
from recallite.model.records import Hits
from recallite.recall.adaptive import adapt_all
from recallite.recall.answering import Answer, answer_all
from recallite.recall.decomposition import SubQueries, decompose
from recallite.recall.higher_first import has_lower, put_higher_first
from recallite.recall.hits import Replaced, add_ranks, fit_budget, in_time_order, load_hits
from recallite.recall.hops import follow, has_steps
from recallite.recall.newest_value import newest_first
from recallite.recall.query import Queries, given_vectors, prepare_queries
from recallite.recall.request import Request
from recallite.recall.text_evidence import judge
from recallite.recall.view import Opened, open_view
from recallite.store.transaction import Reader
from recallite.system.tracing import span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recallite.store.values import Found

_WHOLE = SubQueries(())


def recall_queries(
    engine: Engine, queries: Sequence[str], vectors: Sequence[object] | None, request: Request
) -> list[Hits]:
    """The hits of each query. One embedding batch and one read transaction serve them all, but a long question has its
    own.
    """
    texts = [check_query(query) for query in queries]
    checked_vectors = None if vectors is None else given_vectors(vectors, len(texts))
    if not texts:
        return []
    with span("recall", queries=len(queries), limit=request.limit, mode=request.mode) as seen:
        try:
            hits = _recall_adapted(engine, texts, checked_vectors, request)
        except StoreUnavailable as fault:
            if fault.reason != "connection_lost":
                raise
            # Nothing was written: another connection answers as if this one had not ended.
            hits = _recall_adapted(engine, texts, checked_vectors, request)
        if seen.recording:
            seen.set(hits=sum(map(len, hits)))
            if len(hits) == 1:  # queries that are recalled together share their stages
                seen.set(**{f"{stage}_ms": taken_ms for stage, taken_ms in hits[0].stages.items()})
    return hits


def _recall_adapted(
    engine: Engine, queries: Sequence[str], vectors: list[NDArray[np.float32]] | None, request: Request
) -> list[Hits]:
    """The hits of each query, by what is recognised in it."""
    engine.start_kernels(len(queries))
    if not request.profile.adaptive:
        return _recall_alike(engine, queries, vectors, request)
    hits_by_place: dict[int, Hits] = {}
    for group in adapt_all(queries, request, stories=vectors is None):
        own_vectors = None if vectors is None else [vectors[place] for place in group.places]
        hits = _recall_alike(engine, group.texts, own_vectors, group.request)
        for text, text_hits in zip(group.texts, hits, strict=True):
            if own_vectors is None and has_steps(text, group.request):
                _follow(engine, text, text_hits, group.request)
        hits_by_place.update(zip(group.places, hits, strict=True))
    for place, query in enumerate(queries):
        hits_by_place[place].query = query
    return [hits_by_place[place] for place in range(len(queries))]


def _follow(engine: Engine, question: str, hits: Hits, request: Request) -> None:
    """Let what further steps of a question find join its hits."""

    def ask(queries: Sequence[str], limit: int) -> list[Hits]:
        plain = structs.replace(
            request, limit=limit, counted=False, profile=structs.replace(request.profile, standing_instructions=0)
        )
        return _recall(engine, queries, None, plain, _WHOLE)

    began = perf_counter()
    before = {hit.id for hit in hits}
    follow(question, hits, request, ask)
    hits.stages = {**hits.stages, "hops": (perf_counter() - began) * 1e3}
    if request.counted:
        engine.accesses.add([hit.id for hit in hits if hit.id not in before])


def _put_higher_first(engine: Engine, reader: Reader, question: Queries, hits: Hits, request: Request) -> None:
    """Put what higher authorities say before the first hits, unless these speak of something else."""

    def ask(narrowed: Request) -> Hits:
        profile = structs.replace(request.profile, standing_instructions=0)
        return _answered(engine, reader, question, structs.replace(narrowed, profile=profile), decomposed=False)[0]

    put_higher_first(reader, hits, request, ask)
    if request.token_budget is not None:
        hits[:], left_out = fit_budget([*hits], request.token_budget, engine.embedder.count_tokens)
        hits.left_out += left_out


def _recall_alike(
    engine: Engine, queries: Sequence[str], vectors: list[NDArray[np.float32]] | None, request: Request
) -> list[Hits]:
    """The hits of queries that share a request; long questions are searched by sub-queries too."""
    if vectors is not None or request.profile.long_query_chars is None:
        return _recall(engine, queries, vectors, request, _WHOLE)
    every, split_ms = [], []
    for query in queries:
        started = perf_counter()
        every.append(decompose(engine, query, request))
        split_ms.append((perf_counter() - started) * 1e3)
    plain = [place for place, sub in enumerate(every) if sub == _WHOLE]
    at_once = _recall(engine, [queries[place] for place in plain], None, request, _WHOLE) if plain else []
    hits_of = dict(zip(plain, at_once, strict=True))
    for place, sub in enumerate(every):
        if place not in hits_of:
            (hits_of[place],) = _recall(engine, [queries[place]], None, request, sub)
            hits_of[place].stages = {"split": split_ms[place], **hits_of[place].stages}
    return [hits_of[place] for place in range(len(every))]


def _recall(
    engine: Engine,
    queries: Sequence[str],
    vectors: list[NDArray[np.float32]] | None,
    request: Request,
    sub: SubQueries,
) -> list[Hits]:
    """The hits of each query, or of one and its sub-queries."""
    started = perf_counter()
    embedded, request = embed_queries(engine, queries, vectors, request, sub)
    embed_ms = (perf_counter() - started) * 1e3
    with engine.store.read() as reader:
        hits = _answered(engine, reader, embedded, request, decomposed=bool(sub.queries))
        for place, query_hits in enumerate(hits):
            if has_lower(query_hits, request):
                _put_higher_first(engine, reader, embedded.part(place, place + 1), query_hits, request)
    for query_hits in hits:
        query_hits.stages = {"embed": embed_ms, **query_hits.stages}
        query_hits.sub_queries, query_hits.scopes = sub.queries, sub.scopes
    if request.counted:
        engine.accesses.add([hit.id for query_hits in hits for hit in query_hits])
    return hits


def _answered(engine: Engine, reader: Reader, queries: Queries, request: Request, *, decomposed: bool) -> list[Hits]:
    """The hits of queries that share a view of the index."""
    started = perf_counter()
    with open_view(engine, reader, queries, request) as opened:
        opened_at = perf_counter()
        answers = answer_all(opened, queries, request, decomposed=decomposed)
        answered_at = perf_counter()
        answers, records = judged(opened, queries, answers, request)
        hits = fetch_hits(engine, opened, queries, answers, records, request)
    stages = {
        "catch_up": (opened_at - started) * 1e3,
        "search": (answered_at - opened_at) * 1e3,
        "fetch": (perf_counter() - answered_at) * 1e3,
    }
    for query_hits in hits:
        query_hits.stages = stages
    return hits


def embed_queries(
    engine: Engine,
    queries: Sequence[str],
    vectors: list[NDArray[np.float32]] | None,
    request: Request,
    sub: SubQueries,
) -> tuple[Queries, Request]:
    """The queries and sub-queries, embedded, and the request within the scopes that those are for."""
    embedded = prepare_queries(engine, [*queries, *sub.queries], vectors, request)
    if sub.gap is not None:
        embedded = embedded._replace(gap=sub.gap if embedded.gap is None else f"{embedded.gap}; {sub.gap}")
    if not sub.scopes:
        return embedded, request
    within = Filter(scope=sub.scopes).within(request.filter.base).scopes
    return embedded, structs.replace(request, filter=request.filter.replaced(scopes=within))


def judged(
    opened: Opened, queries: Queries, answers: Sequence[Answer], request: Request
) -> tuple[list[Answer], Mapping[int, Found]]:
    """The answers as their texts judge them, and the records of all of them, which are fetched at once."""
    keys = [key for answer in answers for key in (*answer.keys, *answer.successors) if key >= 0]
    records = opened.reader.records.fetch(keys) if keys else {}
    return judge(queries, answers, records, request, opened.embedder_name), records


def fetch_hits(
    engine: Engine, opened: Opened, queries: Queries, answers: Sequence[Answer], records: Mapping[int, Found],
    request: Request,
) -> list[Hits]:  # fmt: skip
    """The hits of all answers."""
    replaced = Replaced.of(opened.reader, opened.memory_index, [*records], request)
    newest_leads = request.profile.superseded != "as_ranked" and not request.about_past and request.diversify_by is None
    fetched = []
    for text, answer in zip(queries.texts, answers, strict=False):  # sub-queries have no answer of their own
        gaps = answer.gaps if queries.gap is None else (*answer.gaps, queries.gap)
        if newest_leads:
            answer = newest_first(text, answer, records)
        hits = load_hits(answer, records, replaced, gaps, request)
        if answer.trace is not None:
            add_ranks(hits, answer, opened.memory_index.table.ids[answer.trace.rows], answer.trace)
        left_out = 0
        if request.token_budget is not None:
            hits, left_out = fit_budget(hits, request.token_budget, engine.embedder.count_tokens)
        over = request.diversify_by
        if over is not None:
            hits = in_time_order(hits)
        fetched.append(Hits(hits, query=text, evidence_gaps=gaps, left_out=left_out, diversify_by=over))
    return fetched
