"""Recall, from queries to hits:

query -> embed -> candidates by vector and keyword -> fuse -> rerank -> spread -> weigh -> learned ranking ->
what changed -> threshold -> diversify or spread over time -> standing instructions

`answer` has a line for each stage. Many queries go through together, a group at a time: every kernel takes a group, and
groups run side by side. A decomposed question and its sub-queries are a group of their own with one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import structs

from recallite.engine import Engine
from recallite.errors import ConnectionLost
from recallite.index.query_batch import IndexView, QueryBatch
from recallite.model.checks import check_query
from recallite.model.filters import Filter
from recallite.model.records import Hits
from recallite.recall.adaptive import adapt_all
from recallite.recall.candidates import Candidates, gather, share
from recallite.recall.change_order import NOW, asked_of, order_changes
from recallite.recall.confidence import Judge
from recallite.recall.decomposition import FusedSubQueries, SubQueries, decompose, fuse_sub_queries
from recallite.recall.evidence_gaps import find_gaps
from recallite.recall.hits import Replaced, ScoredHit, fit_budget, in_time_order, load_hits, score_hits
from recallite.recall.hops import follow, has_steps
from recallite.recall.late_interaction import query_codes
from recallite.recall.learned_ranking import ranking_for, reorder
from recallite.recall.newest_value import newest_first
from recallite.recall.query import Queries, Words, find_words, given_vectors, prepare_queries, words_in_vocabulary
from recallite.recall.record_loader import RecordLoader
from recallite.recall.request import Request
from recallite.recall.select import available, choose, exact_top
from recallite.recall.standing_hits import bring_standing
from recallite.recall.view import apart, open_view
from recallite.store.protocol import Reader
from recallite.system.parallel import run_tasks, threads
from recallite.system.tracing import span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.embedding.protocol import QueryTokens


# Queries that go through the kernels together: with more, their buffers leave the second-level cache.
_GROUP = 32


class Group(NamedTuple):
    """Queries that go through the stages together; `decomposed` says that they are a question and its sub-queries."""

    texts: Sequence[str]
    vectors: NDArray[np.float32] | None
    tokens: Sequence[QueryTokens | None] | None
    words: Sequence[Words]
    decomposed: bool

    def of(self, answer: int) -> Group:
        """The queries of one answer."""
        if self.decomposed:
            return self
        one = slice(answer, answer + 1)
        vectors = None if self.vectors is None else self.vectors[one]
        return Group(
            self.texts[one], vectors, None if self.tokens is None else self.tokens[one], self.words[one], False
        )


class Answer(NamedTuple):
    """A query after all stages: its candidates, the places of those that are returned, its hits and evidence gaps.

    `sub_queries` are those of a decomposed question; `standing` are instructions and preferences that come last.
    """

    candidates: Candidates
    chosen: NDArray[np.int64]
    hits: list[ScoredHit]
    gaps: tuple[str, ...]
    sub_queries: FusedSubQueries | None
    standing: Sequence[ScoredHit] = ()


def recall_queries(
    engine: Engine, queries: Sequence[str], vectors: Sequence[object] | None, request: Request
) -> list[Hits]:
    """The hits of each query. One embedding batch and one read transaction serve them all, but a long question has its
    own.
    """
    with span("recall", queries=len(queries), limit=request.limit, mode=request.mode) as seen:
        try:
            hits = _recall_adapted(engine, queries, vectors, request)
        except ConnectionLost:
            # Nothing was written: another connection answers as if this one had not ended.
            hits = _recall_adapted(engine, queries, vectors, request)
        if seen.recording:
            seen.set(hits=sum(map(len, hits)))
            if len(hits) == 1:  # queries that are recalled together share their stages
                seen.set(**{f"{stage}_ms": taken_ms for stage, taken_ms in hits[0].stages.items()})
    return hits


def _recall_adapted(
    engine: Engine, queries: Sequence[str], vectors: Sequence[object] | None, request: Request
) -> list[Hits]:
    """The hits of each query, by what is recognised in it."""
    engine.start_kernels(len(queries))
    if not request.profile.adaptive:
        return _recall_alike(engine, queries, vectors, request)
    given = None if vectors is None else given_vectors(vectors, len(queries))
    found: dict[int, Hits] = {}
    for group in adapt_all(queries, request, stories=vectors is None):
        own = None if given is None else [given[place] for place in group.places]
        hits = _recall_alike(engine, group.texts, own, group.request)
        for text, each in zip(group.texts, hits, strict=True):
            if own is None and has_steps(text, group.request):
                _follow(engine, text, each, group.request)
        found.update(zip(group.places, hits, strict=True))
    for place, query in enumerate(queries):
        found[place].query = check_query(query)
    return [found[place] for place in range(len(queries))]


def _follow(engine: Engine, question: str, hits: Hits, request: Request) -> None:
    """Let what further steps of a question find join its hits."""

    def ask(queries: Sequence[str], limit: int) -> list[Hits]:
        plain = structs.replace(
            request, limit=limit, counted=False, profile=structs.replace(request.profile, standing=0)
        )
        return _recall(engine, queries, None, plain, SubQueries(()))

    began = perf_counter()
    before = {hit.id for hit in hits}
    follow(question, hits, request, ask)
    hits.stages = {**hits.stages, "steps": (perf_counter() - began) * 1e3}
    if request.counted:
        engine.accesses.add([hit.id for hit in hits if hit.id not in before])


def _recall_alike(
    engine: Engine, queries: Sequence[str], vectors: Sequence[object] | None, request: Request
) -> list[Hits]:
    """The hits of queries that share a request; long questions are searched by sub-queries too."""
    if vectors is not None or request.profile.long_query_chars is None:
        return _recall(engine, queries, vectors, request, SubQueries(()))
    every, split_ms = [], []
    for query in queries:
        started = perf_counter()
        every.append(decompose(engine, check_query(query), request))
        split_ms.append((perf_counter() - started) * 1e3)
    plain = [place for place, sub in enumerate(every) if sub == SubQueries(())]
    at_once = _recall(engine, [queries[place] for place in plain], None, request, SubQueries(())) if plain else []
    found = dict(zip(plain, at_once, strict=True))
    for place, sub in enumerate(every):
        if place not in found:
            (found[place],) = _recall(engine, [queries[place]], None, request, sub)
            found[place].stages = {"split": split_ms[place], **found[place].stages}
    return [found[place] for place in range(len(every))]


def _recall(
    engine: Engine,
    queries: Sequence[str],
    vectors: Sequence[object] | None,
    request: Request,
    sub: SubQueries,
) -> list[Hits]:
    """The hits of each query, or of one and its sub-queries."""
    started = perf_counter()
    embedded, request = embed_queries(engine, queries, vectors, request, sub)
    embed_ms = (perf_counter() - started) * 1e3
    hits: list[Hits] = []
    with engine.store.read() as reader:
        for part in apart(engine, reader, embedded, request, decomposed=bool(sub.queries)):
            hits += _answered(engine, reader, part, request, decomposed=bool(sub.queries))
    for each in hits:
        each.stages = {"embed": embed_ms, **each.stages}
        each.sub_queries, each.scopes = sub.queries, sub.scopes
    if request.counted:
        engine.accesses.add([hit.id for each in hits for hit in each])
    return hits


def _answered(engine: Engine, reader: Reader, queries: Queries, request: Request, *, decomposed: bool) -> list[Hits]:
    """The hits of queries that share a view of the index."""
    started = perf_counter()
    with open_view(engine, reader, queries, request) as (view, loader):
        opened_at = perf_counter()
        answers = answer_all(view, loader, reader, queries, request, decomposed=decomposed)
        answered_at = perf_counter()
        hits = fetch_hits(engine, reader, view, queries, answers, request)
    stages = {
        "catch_up": (opened_at - started) * 1e3,
        "search": (answered_at - opened_at) * 1e3,
        "fetch": (perf_counter() - answered_at) * 1e3,
    }
    for each in hits:
        each.stages = stages
    return hits


def embed_queries(
    engine: Engine,
    queries: Sequence[object],
    vectors: Sequence[object] | None,
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


def answer_all(
    view: IndexView, loader: RecordLoader, reader: Reader, queries: Queries, request: Request, *, decomposed: bool
) -> list[Answer]:
    """The answer to every query, or to one that is decomposed; groups run side by side."""
    words = find_words(reader, view.index.generation, queries, request)
    size = len(words) if decomposed else max(1, min(_GROUP, -(-len(words) // threads())))

    def work(start: int) -> list[Answer]:
        own = slice(start, start + size)
        vectors = None if queries.vectors is None else np.stack(queries.vectors[own])
        tokens = None if queries.tokens is None else queries.tokens[own]
        group = Group(queries.texts[own], vectors, tokens, words[own], decomposed)
        return answer(view, loader, group, request, request.wanted)

    groups = run_tasks([partial(work, start) for start in range(0, len(words), size)])
    return [each for group in groups for each in group]


def search(
    view: IndexView, group: Group, request: Request, wanted: int
) -> tuple[QueryBatch, Sequence[Words], Candidates, NDArray[np.bool_]]:
    """The group as a batch, its words, its candidates, and whether each query may have more of them."""
    profile = request.profile
    batch = view.batch(group.vectors, [each.terms for each in group.words], [each.spans for each in group.words])
    words = words_in_vocabulary(group.words, batch.slices.in_vocabulary)
    codes = None if group.tokens is None else query_codes(batch, group.texts, group.tokens, words)
    candidates, more = gather(batch, profile, wanted, request.clock, codes, exact_top(request, wanted))
    return batch, words, candidates, more


def answer(view: IndexView, loader: RecordLoader, group: Group, request: Request, wanted: int) -> list[Answer]:
    """A group through every stage, with the best `wanted` by each signal as candidates."""
    profile, clock = request.profile, request.clock
    batch, words, candidates, more = search(view, group, request, wanted)
    if group.decomposed:
        candidates = share(candidates, batch, profile, clock)
    ranking = ranking_for(profile, None if group.tokens is None else loader.embedder)
    if ranking is not None:
        candidates = reorder(ranking, batch, candidates, words, profile)
    fused = None
    if group.decomposed:
        fused = fuse_sub_queries(candidates)
        candidates, more = fused.candidates, np.array([more.any()])
    if profile.superseded != "ignore":
        asked = [asked_of(text, clock) if request.about_past else NOW for text in group.texts]
        candidates = order_changes(candidates, batch, loader, asked, marked=request.filter.include_superseded)
    own = [candidates.of(place) for place in range(len(more))]
    weighed = candidates if fused is None else fused.shared
    judge = Judge(batch, words, weighed, loader.embedder, profile, shared=fused is not None)
    confidence = None
    if profile.min_confidence > 0:
        confidence = judge.assess([np.arange(len(each)) for each in own]).by_answer
    chosen = [
        choose(each, None if confidence is None else confidence[place], batch, request, loader)
        for place, each in enumerate(own)
    ]
    evidence = judge.assess(chosen)
    hits = score_hits(candidates, chosen, evidence.by_answer, profile, evidence.reasons)
    gaps = find_gaps(batch, group.texts, words, evidence, hits, request, [*map(len, own)])
    answers = [Answer(*each, fused) for each in zip(own, chosen, hits, gaps, strict=True)]
    if loader.standing is not None:
        found = bring_standing(batch, judge, hits, loader.standing, request)
        answers = [
            each._replace(chosen=each.chosen[: one.kept], hits=one.hits, standing=one.brought)
            for each, one in zip(answers, found, strict=True)
        ]
    for place, each in enumerate(own):
        if more[place] and available(each, batch, request) < request.limit:
            (answers[place],) = answer(view, loader, group.of(place), request, 4 * wanted)
    return answers


def fetch_hits(
    engine: Engine,
    reader: Reader,
    view: IndexView,
    queries: Queries,
    answers: Sequence[Answer],
    request: Request,
) -> list[Hits]:
    """The hits of all answers, with their records, which are fetched at once."""
    keys = [key for each in answers for hit in (*each.hits, *each.standing) for key in hit.keys]
    found = reader.records.fetch(keys) if keys else {}
    replaced = Replaced.of(reader, view.index, keys, request)
    newest_leads = request.profile.superseded != "ignore" and not request.about_past and request.spread_over is None
    fetched = []
    for text, each in zip(queries.texts, answers, strict=False):  # sub-queries have no answer of their own
        gaps = each.gaps if queries.gap is None else (*each.gaps, queries.gap)
        ranked = newest_first(text, each.hits, found) if newest_leads else each.hits
        hits = load_hits([*ranked, *each.standing], found, replaced, gaps, request, each.candidates)
        left_out = 0
        if request.token_budget is not None:
            hits, left_out = fit_budget(hits, request.token_budget, engine.embedder.count_tokens)
        over = request.spread_over
        if over is not None:
            hits = in_time_order(hits)
        fetched.append(Hits(hits, query=text, evidence_gaps=gaps, left_out=left_out, spread_over=over))
    return fetched
