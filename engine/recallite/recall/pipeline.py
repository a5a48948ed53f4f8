"""Recall, from queries to the kernel and back to hits; read it from top to bottom.

`recall_queries` recognises what is asked, embeds the questions and answers them in one read transaction. It opens a
view of the index, calls one kernel (`call`), fetches the records, and lets `recallite.recall.judge` assess the hits by
their texts.

`recallite_kernels.composition` orders hits: words and vectors -> fuse -> rerank -> spread -> weigh -> learned ranking
-> what changed -> threshold -> standing instructions. What is recognised in a question (a story, the past, several
steps, a value that changes) changes the request. Many queries go through together; a decomposed question and its
sub-queries have one answer.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from recallite.engine import Engine
from recallite.errors import StoreUnavailable
from recallite.index.conditions import met_conditions
from recallite.index.memory_index import MemoryIndex, view_of
from recallite.index.table import RowFilter
from recallite.index.vectors import shortlist_size
from recallite.model.checks import check_query, is_shared
from recallite.model.filters import Filter, Versions
from recallite.model.records import Hit, Hits, as_seen
from recallite.model.settings import DEFAULT, Profile
from recallite.recall.answer import (
    SHOWN,
    Answer,
    Replaced,
    Trace,
    add_ranks,
    choose,
    fit_budget,
    in_time_order,
    load_hits,
)
from recallite.recall.calibration import BY_COHORT, is_fitted_for, least_confidence, normalised_weight
from recallite.recall.confidence import Missing, find_gaps, join_gaps
from recallite.recall.decomposition import HITS_OF_STEP, SubQueries, decompose, follow
from recallite.recall.judge import assess_by_text, has_lower, newest_first, put_higher_first
from recallite.recall.normalisation import vectors_of
from recallite.recall.plan import SIGNALS, PlanKey, plan_key, plan_of, with_clock
from recallite.recall.query import (
    Queries,
    QuestionArrays,
    adapt_all,
    by_reading,
    check_comparable,
    given_vectors,
    prepare_queries,
    question_arrays,
)
from recallite.recall.request import Request
from recallite.recall.succession import NONE, Relations, bring_contradictions, bring_successors
from recallite.store.transaction import Reader
from recallite.store.values import Found
from recallite.system.numerics import kernels
from recallite.system.parallel import run_tasks, threads
from recallite.system.telemetry import span
from recallite.text.questions import several_steps

_WHOLE = SubQueries(())


def recall_queries(
    engine: Engine, queries: Sequence[str], vectors: Sequence[object] | None, request: Request
) -> list[Hits]:
    """The hits of each query: one embedding batch and one read transaction for all, others for each long question."""
    texts = [check_query(query) for query in queries]
    checked_vectors = None if vectors is None else given_vectors(vectors, len(texts))
    if not texts:
        return []
    with span("recall", queries=len(queries), limit=request.limit, mode=request.mode) as seen:
        try:
            hits = _recall_by_intent(engine, texts, checked_vectors, request)
        except StoreUnavailable as fault:
            if fault.reason != "connection_lost":
                raise
            # Nothing was written: another connection answers as if this one had not ended.
            hits = _recall_by_intent(engine, texts, checked_vectors, request)
        if seen.recording:
            # Queries that are recalled together share their stages.
            stages = hits[0].stages if len(hits) == 1 else {}
            seen.set(hits=sum(map(len, hits)), **{f"{stage}_ms": taken_ms for stage, taken_ms in stages.items()})
    return hits


def _recall_by_intent(
    engine: Engine, queries: Sequence[str], vectors: list[NDArray[np.float32]] | None, request: Request
) -> list[Hits]:
    """The hits of each query, by what is recognised in it."""
    engine.start_kernels(len(queries))
    if not request.profile.adaptive:
        return _recall_split_long(engine, queries, vectors, request)
    hits_of: dict[int, Hits] = {}
    for group in adapt_all(queries, request, stories=vectors is None):
        own_vectors = None if vectors is None else [vectors[i] for i in group.indices]
        ranked = not (group.request.one_per_source or group.request.diversify_by)
        steps = vectors is None and request.profile.hops > 0 and ranked and request.token_budget is None
        group_hits = _recall_split_long(engine, group.texts, own_vectors, group.request)
        for i, text, hits in zip(group.indices, group.texts, group_hits, strict=True):
            if steps and several_steps(text):
                _follow_steps(engine, text, hits, group.request)
            hits.query = queries[i]
            hits_of[i] = hits
    return [hits_of[i] for i in range(len(queries))]


def _follow_steps(engine: Engine, question: str, hits: Hits, request: Request) -> None:
    """Let what further steps of a question find join its hits."""
    began, before = perf_counter(), {hit.id for hit in hits}
    profile = structs.replace(request.profile, standing_instructions=0)
    step_request = structs.replace(request, limit=HITS_OF_STEP, counted=False, profile=profile)

    def recall_steps(queries: Sequence[str]) -> list[Hits]:
        return _recall_in_transaction(engine, queries, None, step_request, _WHOLE)

    follow(question, hits, request, recall_steps)
    hits.stages = {**hits.stages, "hops": (perf_counter() - began) * 1e3}
    if request.counted:
        _count_accesses(engine, [hit for hit in hits if hit.id not in before], request)


def _recall_split_long(
    engine: Engine, queries: Sequence[str], vectors: list[NDArray[np.float32]] | None, request: Request
) -> list[Hits]:
    """The hits of queries that share a request; long questions are searched by sub-queries too."""
    if vectors is not None or request.profile.long_query_chars is None:
        return _recall_in_transaction(engine, queries, vectors, request, _WHOLE)
    sub_queries, split_ms = [], []
    for query in queries:
        started = perf_counter()
        sub_queries.append(decompose(engine, query, request))
        split_ms.append((perf_counter() - started) * 1e3)
    whole = [i for i, sub in enumerate(sub_queries) if sub == _WHOLE]
    together = _recall_in_transaction(engine, [queries[i] for i in whole], None, request, _WHOLE) if whole else []
    hits_of = dict(zip(whole, together, strict=True))
    for i, sub in enumerate(sub_queries):
        if i not in hits_of:
            (hits_of[i],) = _recall_in_transaction(engine, [queries[i]], None, request, sub)
            hits_of[i].stages = {"split": split_ms[i], **hits_of[i].stages}
    return [hits_of[i] for i in range(len(queries))]


def _recall_in_transaction(
    engine: Engine, queries: Sequence[str], vectors: list[NDArray[np.float32]] | None, request: Request, sub: SubQueries
) -> list[Hits]:
    """The hits of each query, or of one and its sub-queries."""
    if len(queries) > 1 and vectors is None and len(parts := by_reading(engine, queries, request)) > 1:
        hits_of: dict[int, Hits] = {}
        for part in parts:
            part_hits = _recall_in_transaction(engine, [queries[i] for i in part], None, request, sub)
            hits_of |= zip(part, part_hits, strict=True)
        return [hits_of[i] for i in range(len(queries))]
    started = perf_counter()
    embedded, request = embed_queries(engine, queries, vectors, request, sub)
    embed_ms = (perf_counter() - started) * 1e3
    with engine.store.read() as reader:
        recalled = _recall_one_view(engine, reader, embedded, request, decomposed=bool(sub.queries))
        for i, hits in enumerate(recalled):
            if has_lower(hits, request):
                _put_higher_first(engine, reader, embedded.part(i, i + 1), hits, request)
    for hits in recalled:
        hits.stages = {"embed": embed_ms, **hits.stages}
        hits.sub_queries, hits.scopes = sub.queries, sub.scopes
    if request.counted:
        _count_accesses(engine, [hit for hits in recalled for hit in hits], request)
    return recalled


def _count_accesses(engine: Engine, hits: Sequence[Hit], request: Request) -> None:
    """Count accesses of what the handle may write."""
    filter_ = request.filter
    own = hits if not filter_.shared else [hit for hit in hits if not is_shared(as_seen(hit, filter_.base).scope)]
    engine.accesses.add([hit.id for hit in own])


def embed_queries(
    engine: Engine, queries: Sequence[str], vectors: list[NDArray[np.float32]] | None, request: Request, sub: SubQueries
) -> tuple[Queries, Request]:
    """The queries and sub-queries, embedded, and the request within the scopes of the sub-queries."""
    embedded = prepare_queries(engine, [*queries, *sub.queries], vectors, request)
    if sub.gap is not None:
        embedded = embedded._replace(gap=sub.gap if embedded.gap is None else f"{embedded.gap}; {sub.gap}")
    if not sub.scopes:
        return embedded, request
    within = Filter(scope=sub.scopes).within(request.filter.base).scopes
    return embedded, structs.replace(request, filter=request.filter.replaced(scopes=within))


def _recall_one_view(
    engine: Engine, reader: Reader, queries: Queries, request: Request, *, decomposed: bool
) -> list[Hits]:
    """The hits of queries that share a view of the index."""
    started = perf_counter()
    with open_view(engine, reader, queries, request) as opened:
        opened_at = perf_counter()
        answers = answer_all(opened, queries, request, decomposed=decomposed)
        answered_at = perf_counter()
        assessed = fetch_and_assess(opened, queries, answers, request)
        recalled = fetch_hits(engine, opened, queries, assessed, request)
    stages = {
        "catch_up": (opened_at - started) * 1e3,
        "search": (answered_at - opened_at) * 1e3,
        "fetch": (perf_counter() - answered_at) * 1e3,
    }
    for hits in recalled:
        hits.stages = stages
    return recalled


class Assessed(NamedTuple):
    """Answers, assessed by the texts of their hits, with the records of all of them and what these contradict."""

    answers: list[Answer]
    records: Mapping[int, Found]
    contradictions: list[tuple[int, int, str]]


def fetch_and_assess(opened: Opened, queries: Queries, answers: Sequence[Answer], request: Request) -> Assessed:
    """The answers with the successors of old hits, assessed by texts; the records are fetched at once."""
    in_order = request.profile.superseded != "as_ranked" and not request.about_past and request.diversify_by is None
    successions = [NONE] * len(answers)
    if opened.any_superseded and in_order:
        answers, successions = bring_successors(opened, answers, request)
    contradictions: list[tuple[int, int, str]] = []
    if opened.memory_index.cached("contradicts", None, opened.reader.links.any_contradiction):
        found = {row_id for answer in answers for row_id in answer.row_ids}
        links, scopes = opened.reader.links, request.filter.scopes
        readable = opened.reader.scopes.within(scopes) if scopes else None
        contradictions = links.contradictions(sorted(found), readable)
        if in_order and contradictions:
            answers = [bring_contradictions(opened, answer, contradictions) for answer in answers]
            brought = {row_id for answer in answers for row_id in answer.row_ids} - found
            contradictions += links.contradictions(sorted(brought), readable) if brought else []
    row_ids = [row_id for answer in answers for row_id in (*answer.row_ids, *answer.successors) if row_id >= 0]
    records = opened.reader.records.fetch(row_ids) if row_ids else {}
    relations = Relations(successions, contradictions if in_order else (), in_order)
    return Assessed(
        assess_by_text(queries, answers, records, request, opened.embedder_name, relations), records, contradictions
    )


def fetch_hits(engine: Engine, opened: Opened, queries: Queries, assessed: Assessed, request: Request) -> list[Hits]:
    """The hits of all answers."""
    answers, records = assessed.answers, assessed.records
    replaced = Replaced.of(opened, [*records], request, assessed.contradictions)
    newest_leads = request.profile.superseded != "as_ranked" and not request.about_past and request.diversify_by is None
    fetched = []
    for text, answer in zip(queries.texts, answers, strict=False):  # sub-queries have no answer of their own
        gaps = answer.gaps if queries.gap is None else (*answer.gaps, queries.gap)
        if queries.unread is not None and gaps:
            gaps = (*gaps, queries.unread)
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


def _put_higher_first(engine: Engine, reader: Reader, question: Queries, hits: Hits, request: Request) -> None:
    """Put what higher authorities say before the first hits, unless these speak of something else."""
    profile = structs.replace(request.profile, standing_instructions=0)

    def recall_narrowed(narrowed: Request) -> Hits:
        plain = structs.replace(narrowed, profile=profile)
        return _recall_one_view(engine, reader, question, plain, decomposed=False)[0]

    put_higher_first(reader, hits, request, recall_narrowed)
    if request.token_budget is not None:
        hits[:], left_out = fit_budget([*hits], request.token_budget, engine.embedder.count_tokens)
        hits.left_out += left_out


# The view: the store at one commit, as the kernel reads it: the index under the request's filter.

_NO_CHAINS = np.empty((2, 0), dtype=np.int64)
_NO_ROWS = np.empty(0, dtype=np.int64)
_NOTHING_LAPSED = _NO_ROWS, (0, 0)


class Opened(NamedTuple):
    """A view of the index at the reader's commit; the index is held until its end.

    `embedder_name` is the name of the embedder of its vectors, None without vectors, and `BY_COHORT` of one that no
    weights were fitted for.
    """

    reader: Reader
    memory_index: MemoryIndex
    view: kernels.View
    embedder_name: str | None
    any_superseded: bool

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.memory_index.lock.release_reading()


def open_view(engine: Engine, reader: Reader, queries: Queries, request: Request) -> Opened:
    """The index at this read transaction's commit, under the request's filter."""
    index = engine.index_within("/" if request.filter.shared else request.filter.base)
    index.hold(reader)
    try:
        embedder = index.cached("embedder", None, reader.vectors.active_embedder)
        check_comparable(queries, embedder, engine.store.path)
        expires, superseded = index.cached("lifetimes", None, index.table.lifetimes)
        view = _view_under(index, reader, request, expires=expires, superseded=superseded)
    except BaseException:
        index.lock.release_reading()
        raise
    name = None if embedder is None else embedder.name if queries.cohort is None else BY_COHORT
    return Opened(reader, index, view, name, superseded)


def _view_under(
    index: MemoryIndex, reader: Reader, request: Request, *, expires: bool, superseded: bool
) -> kernels.View:
    """The view of a filter, made once until the index changes or a record expires."""
    filter_ = request.filter
    expired = len(index.table.expired_rows(request.clock)) if expires else 0
    lapsed, succeeded = _lapsed(index, reader, request.clock, filter_.valid_at) if superseded else _NOTHING_LAPSED
    grouped = request.one_per_source or request.diversify_by is not None
    with_standing = request.profile.standing_instructions > 0 and not grouped

    def make() -> kernels.View:
        mask = _select_rows(index, reader, request, lapsed)
        standing, chains = _NO_ROWS, _NO_CHAINS
        if with_standing:
            standing = index.table.standing_rows
            if mask is not None:
                standing = standing[mask[standing] == 1]
        if request.about_past and superseded:
            chains = index.cached("chains", None, partial(_chains, index, reader))
        kinds = () if filter_.sessions else index.table.kinds_of_memories
        statistics = index.corpus_statistics(_statistics_scopes(reader, request), kinds)
        return view_of(index, mask, statistics, standing, chains)

    key = filter_, with_standing, expired, succeeded, request.about_past, request.profile.superseded
    return index.cached("view", key, make)


def _lapsed(
    index: MemoryIndex, reader: Reader, moment: int, valid_at: int | None
) -> tuple[NDArray[np.int64], tuple[int, int]]:
    """The rows that are current though superseded: all that superseded them has expired, or does not hold yet.

    The numbers of successions that have expired and begun tell whether the rows are others than before. For a valid
    time only what has expired counts.
    """

    def read_lapses() -> tuple[list[int], NDArray[np.int64], list[int], NDArray[np.int64]]:
        lapses = reader.supersessions.lapses()
        ids = np.array([row_id for _, row_id in lapses], dtype=np.int64)
        begins, announced = index.table.announced_rows()
        return [moment for moment, _ in lapses], ids, begins.tolist(), announced

    ends, ids, begins, announced = index.cached("lapses", None, read_lapses)
    expired, begun = bisect_right(ends, moment), bisect_right(begins, moment)
    rows = index.table.rows_of(ids[:expired]) if expired else _NO_ROWS
    if begun < len(begins) and valid_at is None:
        rows = np.concatenate([rows, announced[begun:]])
    return rows, (expired, begun)


def _select_rows(
    index: MemoryIndex, reader: Reader, request: Request, lapsed: NDArray[np.int64]
) -> NDArray[np.uint8] | None:
    """The mask of the rows that the request's filter admits at the index's commit; None for all."""
    filter_ = request.filter
    condition_mask, rest = None, filter_.unindexed
    if rest is not None:
        versions: Versions = "open" if filter_.as_of is None else "any"
        condition_mask = index.cached(
            "conditions", (rest, versions), lambda: met_conditions(index, reader, rest, request.now, versions)
        )
    visible = RowFilter(
        now=request.now,
        hidden=_superseded_rows(index, reader, request, lapsed),
        as_of=filter_.as_of,
        scopes=tuple(reader.scopes.within(filter_.scopes)) if filter_.scopes else None,
        kinds=filter_.kinds or (() if filter_.sessions else index.table.kinds_of_memories),
        since=filter_.since,
        until=filter_.until,
        valid_at=filter_.valid_at,
        condition_mask=condition_mask,
    )
    return index.selection(visible, rest)


def sees_superseded(request: Request) -> bool:
    """Whether what holds no longer is a candidate: where it can be put after what holds, or was asked for."""
    filter_ = request.filter
    in_order = request.profile.superseded == "after_current" and filter_.as_of is None
    return (in_order or filter_.include_superseded) and filter_.valid_at is None


def _superseded_rows(
    index: MemoryIndex, reader: Reader, request: Request, lapsed: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """The rows that the request does not see since they hold no longer; None where there are none.

    One about the present sees them, after what holds now.
    """
    known_at, valid_at = request.filter.as_of, request.filter.valid_at
    if sees_superseded(request):
        return None
    rows = index.table.ended_rows(known_at, valid_at)
    if len(rows) and len(lapsed):
        rows = np.setdiff1d(rows, lapsed)
    if known_at is not None:
        moment = known_at if valid_at is None else valid_at
        undone = index.rows(("undone", known_at, moment), partial(reader.supersessions.undone, known_at, moment))
        rows = np.union1d(rows, undone) if len(undone) else rows
    return rows if len(rows) else None


def _chains(index: MemoryIndex, reader: Reader) -> NDArray[np.int64]:
    """Rows and what superseded them, ascending by the first."""
    ids = index.table.ids[index.table.superseded_rows()]
    pairs = np.array(
        [(pair.old_id, pair.new_id) for pair in reader.supersessions.of_old(ids.tolist())], dtype=np.int64
    ).reshape(-1, 2)
    rows = np.stack([index.table.rows_of(pairs[:, 0]), index.table.rows_of(pairs[:, 1])])
    rows = rows[:, (rows >= 0).all(axis=0)]
    return np.ascontiguousarray(rows[:, np.argsort(rows[0], kind="stable")])


def _statistics_scopes(reader: Reader, request: Request) -> tuple[int, ...] | None:
    """The scopes that the IDF of words is taken from: all of the handle's, whatever the filter; None is every scope."""
    base, shared = request.filter.base, request.filter.shared
    return None if base == "/" or "/" in shared else tuple(reader.scopes.within((base, *shared)))


# The kernel: called for some questions, and the hits that it found as columns.

# Questions that go through the kernel together: with more, their buffers leave the second-level cache.
_GROUP = 32
_SHOWN_COLUMNS = np.array([getattr(SIGNALS, name) for name in SHOWN])
_HITS, _BROUGHT, _CANDIDATES, _AVAILABLE, _MORE = kernels.FIGURES
# How often the shortlist grows by a factor of 4 before it grows with its own size.
_WIDENINGS = 4
_MEMORIES_CACHED = 4
_SPARE_ROWS = 1024
# How many hits have their text read where a least confidence may drop some of them.
_READ = 10
# How many hits are put in the order of their confidence, if they are compared with the cohort.
_COMPARED = 30
# How many more hits there are where superseded ones may give way.
_MORE_IF_SUPERSEDED = 20
# With room for fewer rows that a weighted sum brings, all would be measured twice.
_REACHED = 4096
_memories = threading.local()


def answer_all(opened: Opened, queries: Queries, request: Request, *, decomposed: bool = False) -> list[Answer]:
    """The answer to every question, or to one that is decomposed; groups run side by side.

    If hits need a least confidence there may be more of them than the limit: their texts may lower some below it.
    """
    profile = request.profile
    plain = profile.mmr_lambda is None and not request.one_per_source and request.diversify_by is None
    if plain and opened.any_superseded and profile.superseded == "after_current":
        request = structs.replace(request, limit=request.limit + min(request.limit, _MORE_IF_SUPERSEDED))
    least = _COMPARED if queries.cohort is not None else _READ if profile.min_confidence > 0 else 0
    if plain and request.limit < least:
        request = structs.replace(request, limit=least)
    count = len(queries.texts)
    if decomposed or count == 1:
        size = count
    elif request.explain or opened.memory_index.waiting:
        size = 1
    else:
        size = max(1, min(_GROUP, -(-count // threads())))
    key = plan_key(opened, queries, request, shared=decomposed)
    if count <= size:
        return _answer(opened, queries, request, key, _arrays(opened, queries, request, key))
    groups = [queries.part(start, start + size) for start in range(0, count, size)]
    tasks = [partial(_answer, opened, group, request, key, _arrays(opened, group, request, key)) for group in groups]
    return [answer for answers in run_tasks(tasks) for answer in answers]


def _arrays(opened: Opened, queries: Queries, request: Request, key: PlanKey) -> QuestionArrays:
    return question_arrays(opened.reader, opened.memory_index.generation, queries, request, key.by_vector)


def _answer(
    opened: Opened, queries: Queries, request: Request, key: PlanKey, questions: QuestionArrays
) -> list[Answer]:  # fmt: skip
    plan = with_clock(plan_of(request.profile, key), request.clock)
    hits, work = call(opened.view, plan, questions)
    if opened.memory_index.waiting and plan.changes:
        best = work.order[: min(plan.changes, hits.figures[0, _CANDIDATES])]
        if opened.memory_index.read_waiting_frames(opened.reader, work.rows[best]):
            hits, work = call(opened.view, plan, questions)
    weigh_by_cohort(opened, queries, request, hits, shared=bool(plan.shared))
    answers = _read(opened, queries.texts, request, plan, questions, hits, work)
    for i, figure in enumerate(hits.figures[: len(answers)].tolist()):
        if figure[_MORE] and figure[_AVAILABLE] < request.limit:
            again = queries if key.shared else queries.part(i, i + 1)
            wider = key._replace(widening=4 * key.widening)
            arrays = questions if key.shared else _arrays(opened, again, request, wider)
            (answers[i],) = _answer(opened, again, request, wider, arrays)
    return answers


def weigh_by_cohort(
    opened: Opened, queries: Queries, request: Request, hits: kernels.Hits, *, shared: bool
) -> None:  # fmt: skip
    """Add to the confidence of hits what their cosines say beside those of the cohort."""
    if queries.cohort is None or queries.vectors is None:
        return
    weight = normalised_weight("meaning" if request.mode == "vector" else "vectors")
    for i, vector in enumerate(queries.vectors):
        figure = hits.figures[0 if shared else i]
        count = int(figure[_HITS] + figure[_BROUGHT])
        texts = vectors_of(opened.view.vectors, hits.rows[0 if shared else i, :count], vector)
        added = weight * queries.cohort.normalised(vector, texts) * texts.any(axis=1)
        sure = hits.confidence[i, :count]
        hits.confidence[i, :count] = sure / (sure + (1 - sure) * np.exp(-added))
        hits.sure[i] = max(hits.confidence[i, : int(figure[_HITS])], default=-1.0)


def call(view: kernels.View, plan: kernels.Plan, batch: QuestionArrays) -> tuple[kernels.Hits, kernels.Workspace]:
    """The hits of some questions, and the memory in which they were found; both last until this thread calls again."""
    if plan.exhaustive:
        room = _REACHED
    else:  # for the neighbours of the best: a link is in the lists of both ends
        links, rows = len(view.graph.targets), max(len(view.terms.lengths), 1)
        room = (4 + 2 * links // rows) * min(plan.parameters.expansion_depth, 2 * min(plan.wanted, rows))
    wider = 0
    while True:
        work, hits = _memory(view, plan, batch, room)
        status = kernels.recall(view, plan, batch.asking, work, hits, checked=True)
        if status == kernels.DONE:
            return hits, work
        if status == kernels.ROOM:
            room = max(room, int(work.needed[0]))
        else:
            wider += 1
            size = shortlist_size(view.vectors.visible, plan.wanted * 4**wider)
            plan = plan._replace(shortlist=max(4 * plan.shortlist, size) if wider > _WIDENINGS else size)


def _memory(
    view: kernels.View, plan: kernels.Plan, batch: QuestionArrays, room: int
) -> tuple[kernels.Workspace, kernels.Hits]:
    """The memory of this thread, made again where it does not fit."""
    questions, rows, visible = len(batch.asking.counting), len(view.terms.lengths), view.vectors.visible
    longest, tokens, words = (
        -(-batch.longest // 16) * 16,
        -(-batch.tokens // 64) * 64,
        -(-len(batch.asking.shares) // 16) * 16,
    )
    if visible > kernels.SCAN_ALL:  # above it `workspace` makes the same
        visible = min(visible, plan.shortlist + kernels.SCAN_ALL)
    key = (
        questions, longest, tokens, words, room, min(rows, plan.wanted), len(view.terms.segments),
        view.vectors.sketches.shape[1], visible, len(view.standing) > 0, plan.by_vector, plan.wanted,
        plan.shortlist, plan.top, plan.depth, plan.changes, plan.least_confidence > 0, plan.shared,
        plan.limit, plan.standing, view.stated.frames.shape[1],
    )  # fmt: skip
    memories: dict[Any, tuple[kernels.Workspace, kernels.Hits]] = vars(_memories).setdefault("memory", {})
    memory = memories.get(key)
    if memory is None:
        while len(memories) >= _MEMORIES_CACHED:
            del memories[next(iter(memories))]
        work = kernels.workspace(view, plan, questions, longest, tokens, room)
        memory = memories[key] = work, kernels.hits(plan, work, questions, words, longest)
    elif len(memory[0].scratch) != rows:  # records were added: one array has a place for each, the other eighty stay
        scratch = memory[0].scratch.base
        if scratch is None or len(scratch) < rows:
            scratch = np.zeros(rows + rows // 8 + _SPARE_ROWS, dtype=np.float32)
        memory = memories[key] = memory[0]._replace(scratch=scratch[:rows]), memory[1]
    return memory


def _read(
    opened: Opened, texts: Sequence[str], request: Request, plan: kernels.Plan, questions: QuestionArrays,
    hits: kernels.Hits, work: kernels.Workspace,
) -> list[Answer]:  # fmt: skip
    """The kernel's arrays as lists."""
    figures, bounds = hits.figures.tolist(), questions.asking.word_offsets.tolist()
    columns = (
        hits.keys.tolist(), hits.scores.tolist(), hits.confidence.tolist(), hits.reasons.tolist(),
        hits.signals.take(_SHOWN_COLUMNS, axis=2).tolist(), hits.successors.tolist(),
    )  # fmt: skip
    answers: list[Answer] = []
    gaps: list[tuple[str, ...]] = []
    least = _closing_confidence(request.profile, opened, plan)
    for i, figure in enumerate(figures[:1] if plan.shared else figures):
        count, brought = figure[_HITS], figure[_BROUGHT]
        fields = [column[i] for column in columns]
        picked = None
        if plan.limit != plan.final or request.diversify_by is not None:
            picked = choose(opened, request, hits, i, count)
        if plan.shared:
            fields[2] = hits.confidence[:, : count + brought].max(axis=0).tolist()
        shown = min(count if picked is None else len(picked), plan.final - brought)
        if picked is None and not brought:
            fields = [column[:shown] for column in fields]
        else:
            ranks = [*(range(shown) if picked is None else picked[:shown]), *range(count, count + brought)]
            fields = [[column[rank] for rank in ranks] for column in fields]
        trace = _trace(plan, figure[_CANDIDATES], work, len(texts)) if request.explain else None
        missing: Missing | None = None
        # Sub-questions go by confidence alone.
        best = -1.0 if plan.shared else max(fields[1][:shown], default=0.0)
        any_hit = count > 0 if picked is None else bool(picked)
        dates = hits.signals[i, slice(shown) if picked is None else picked[:shown], SIGNALS.date]
        dated = bool((dates > 0).any())
        for query in range(len(texts)) if plan.shared else (i,):
            sure = float(hits.sure[query]) if picked is None else max(hits.confidence[query, picked], default=-1.0)
            if plan.shared and sure >= least:
                gaps.append(())
                continue
            words = slice(bounds[query], bounds[query + 1])
            state = hits.known[words]
            if picked is not None:  # the kernel's counts hits that were not picked
                contained = hits.contained[query, picked, : words.stop - words.start].any(axis=0)
                state = np.minimum(state, 1) + contained.astype(np.uint8)
            lacking = Missing(
                questions.words[query], hits.idf[words].tolist(), state.tolist(), sure, best, dated, any_hit,
                figure[_CANDIDATES] > 0, least, float(opened.view.terms.records),
            )  # fmt: skip
            if plan.shared:
                gaps.append(find_gaps(texts[query], lacking, None, request))
            else:
                missing = lacking
        answers.append(Answer._make((*fields, brought, (), trace, missing)))
    return [answers[0]._replace(gaps=join_gaps(texts, gaps, any_hit))] if plan.shared else answers


def _closing_confidence(profile: Profile, opened: Opened, plan: kernels.Plan) -> float:
    """The confidence from which a hit closes the gap: one that a caller gives is taken as it is."""
    if profile.rerank_weight > 0 or profile.gap_confidence != DEFAULT.gap_confidence:
        return profile.gap_confidence
    signals = ("words", "vectors")[plan.by_vector]
    if plan.by_vector and profile.formula.gap_score is not None and not is_fitted_for(opened.embedder_name):
        return math.inf  # its score alone closes it
    return least_confidence(profile.gap_confidence, opened.embedder_name, signals, int(opened.view.terms.records))


def _trace(plan: kernels.Plan, m: int, work: kernels.Workspace, questions: int) -> Trace:
    best_of = 1 + np.argmax(work.pool[1:questions, SIGNALS.score, :m], axis=0) if plan.shared else None
    return Trace(
        work.rows[:m].copy(), work.table[:, :m].copy(), work.order[:m].copy(), work.formula[:m].copy(),
        work.features[:, : min(plan.depth, m)].copy(), work.evidence.copy(), best_of,
    )  # fmt: skip
