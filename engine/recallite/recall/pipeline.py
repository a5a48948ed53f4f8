"""Recall, from queries to the kernel and back to hits; read it from top to bottom.

`recall_queries` recognises what is asked, and answers questions that share a request together: it embeds them, opens a
view of the index in one read transaction, and has one answer for each of the kernel (`recallite.recall.plan`). Its hits
are assessed by their texts (`recallite.recall.judge`) and put in order (`recallite.recall.order`); then records become
hits. What is recognised in a question (a story, the past, several steps, a value that changes) changes the request.

A decomposed question and its sub-queries have one answer. A question that is asked again under a narrower filter, or
in further steps, is another plan over the same view of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import structs

from recallite.engine import Engine
from recallite.errors import StoreUnavailable
from recallite.model.authority import AUTHORITIES
from recallite.model.checks import EPOCH, check_query, is_shared, optional_datetime, to_datetime
from recallite.model.filters import CHUNK_KIND, Filter
from recallite.model.match_reasons import reasons_by_bits
from recallite.model.records import Former, Hit, Hits, SourceRef, as_seen
from recallite.recall.decomposition import HITS_OF_STEP, SubQueries, decompose, follow
from recallite.recall.judge import assess_by_text
from recallite.recall.numbered import bring_numbered
from recallite.recall.order import bring_related
from recallite.recall.plan import SHOWN, SIGNALS, Opened, answer_all, open_view
from recallite.recall.precedence import MOST_ECHOED, put_higher_first
from recallite.recall.query import Queries, adapt, by_reading, given_vectors, prepare_queries
from recallite.recall.request import Answer, Request, Trace
from recallite.store.sql.record_reading import Found
from recallite.store.transaction import Reader
from recallite.system.telemetry import span
from recallite.text.questions import recognise

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WHOLE = SubQueries(())


def recall_queries(
    engine: Engine, queries: Sequence[str], vectors: Sequence[object] | None, request: Request
) -> list[Hits]:
    """The hits of each query: one embedding batch and one read transaction for all, others for each long question."""
    texts = [*map(check_query, queries)]
    checked_vectors = None if vectors is None else given_vectors(vectors, len(texts))
    if not texts:
        return []
    with span("recall", queries=len(queries), limit=request.limit, mode=request.mode) as seen:
        try:
            hits = _recall(engine, texts, checked_vectors, request)
        except StoreUnavailable as fault:
            if fault.reason != "connection_lost":
                raise
            # Nothing was written: another connection answers as if this one had not ended.
            hits = _recall(engine, texts, checked_vectors, request)
        if seen.recording:
            # Queries that are recalled together share their stages.
            stages = hits[0].stages if len(hits) == 1 else {}
            seen.set(hits=sum(map(len, hits)), **{f"{stage}_ms": taken_ms for stage, taken_ms in stages.items()})
    return hits


class _Together(NamedTuple):
    """Queries of a call that are answered together, and their indices in it; one that is decomposed is by itself."""

    indices: list[int]
    texts: list[str]
    vectors: list[NDArray[np.float32]] | None
    request: Request
    sub: SubQueries = _WHOLE
    split_ms: float | None = None


def _recall(
    engine: Engine, queries: Sequence[str], vectors: list[NDArray[np.float32]] | None, request: Request
) -> list[Hits]:
    engine.start_kernels(len(queries))
    hits_of: dict[int, Hits] = {}
    for part in _divide(engine, queries, vectors, request):
        for i, hits in zip(part.indices, _recall_together(engine, part), strict=True):
            hits.query = queries[i]
            hits_of[i] = hits
    return [*map(hits_of.__getitem__, range(len(queries)))]


def _divide(
    engine: Engine, queries: Sequence[str], vectors: list[NDArray[np.float32]] | None, request: Request
) -> Iterator[_Together]:
    """The queries by what is recognised in them, by whether they are long, and by whether the embedder reads them."""
    groups: dict[tuple[str | None, bool, bool, bool], tuple[list[int], list[str], Request]] = {}
    for i, query in enumerate(queries):
        text, own_request = adapt(query, request, stories=vectors is None)
        key = own_request.diversify_by, own_request.own_words, own_request.about_past, own_request.keywords
        group = groups.setdefault(key, ([], [], own_request))
        group[0].append(i)
        group[1].append(text)
    for indices, texts, own_request in groups.values():
        if vectors is not None:
            yield _Together(indices, texts, [vectors[i] for i in indices], own_request)
            continue
        together = [*range(len(texts))]
        if own_request.profile.long_query_chars is not None:
            together = []
            for i, text in enumerate(texts):
                began = perf_counter()
                sub = decompose(engine, text, own_request)
                if sub == _WHOLE:
                    together.append(i)
                else:
                    yield _Together([indices[i]], [text], None, own_request, sub, (perf_counter() - began) * 1e3)
        parts = [together] if together else []
        if len(together) > 1:
            parts = by_reading(engine, [texts[i] for i in together], own_request)
            parts = [[together[i] for i in part] for part in parts]
        for part in parts:
            yield _Together([*map(indices.__getitem__, part)], [*map(texts.__getitem__, part)], None, own_request)


def _recall_together(engine: Engine, part: _Together) -> list[Hits]:
    began, sub = perf_counter(), part.sub
    queries, request = embed_queries(engine, part.texts, part.vectors, part.request, sub)
    spent = {} if part.split_ms is None else {"split": part.split_ms}
    spent["embed"] = (perf_counter() - began) * 1e3
    with engine.store.read() as reader:
        row_ids: dict[str, int] = {}
        recalled = _recall_in_view(engine, reader, queries, request, row_ids, decomposed=bool(sub.queries))
        for text, hits in zip(part.texts, recalled, strict=True):
            hits.stages = {**spent, **hits.stages}
            hits.sub_queries, hits.scopes = sub.queries, sub.scopes
            if part.vectors is None and request.takes_steps and recognise(text).steps:
                _follow_steps(engine, reader, text, hits, part.request, row_ids)
        if request.counted and request.filter.as_of is not None:  # an access of a version is one of its record
            row_ids = reader.records.find_ids([*row_ids], "/")
    if request.counted:
        shared, base = request.filter.shared, request.filter.base
        # What the handle only reads is not counted.
        counted = [hit.id for hits in recalled for hit in hits if not shared or not is_shared(as_seen(hit, base).scope)]
        engine.accesses.add([(id, row_ids[id]) for id in counted if id in row_ids])
    return recalled


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


def _recall_in_view(
    engine: Engine, reader: Reader, queries: Queries, request: Request, row_ids: dict[str, int], *,
    decomposed: bool = False,
) -> list[Hits]:  # fmt: skip
    """The hits of queries by a view of the index, with those of higher authorities before lower ones."""
    began = perf_counter()
    with open_view(engine, reader, queries, request, row_ids) as opened:
        opened_at = perf_counter()
        answers = answer_all(opened, queries, request, decomposed=decomposed)
        answered_at = perf_counter()
        _, recalled = hits_of_answers(engine, opened, queries, answers, request)
        stages = {
            "catch_up": (opened_at - began) * 1e3,
            "search": (answered_at - opened_at) * 1e3,
            "fetch": (perf_counter() - answered_at) * 1e3,
        }
        for i, hits in enumerate(recalled):
            hits.stages = stages
            if _has_lower(hits, request):
                put_higher_first(
                    reader, hits, request, partial(_recall_narrowed, engine, opened, queries.part(i, i + 1))
                )
                if request.token_budget is not None:
                    hits[:], left_out = fit_budget([*hits], request.token_budget, engine.embedder.count_tokens)
                    hits.left_out += left_out
    return recalled


def _has_lower(hits: Sequence[Hit], request: Request) -> bool:
    """Whether one of the hits may speak of what a higher authority speaks of."""
    for hit in hits[:MOST_ECHOED]:
        if hit.authority != "user" and hit.kind != CHUNK_KIND:
            filter = request.filter
            now = filter.as_of is None and filter.valid_at is None and not request.about_past
            return now and request.diversify_by is None
    return False


def _recall_narrowed(engine: Engine, opened: Opened, question: Queries, request: Request) -> Hits:
    """The hits of a question by another filter, from the same view of the store."""
    narrowed = opened.under(request)
    return hits_of_answers(engine, narrowed, question, answer_all(narrowed, question, request), request)[1][0]


def _follow_steps(
    engine: Engine, reader: Reader, question: str, hits: Hits, request: Request, row_ids: dict[str, int]
) -> None:
    """Let what further steps of a question find join its hits."""
    began = perf_counter()
    profile = structs.replace(request.profile, standing_instructions=0)
    step_request = structs.replace(request, limit=HITS_OF_STEP, counted=False, profile=profile)

    def recall_steps(questions: Sequence[str]) -> list[Hits]:
        hits_of: dict[int, Hits] = {}
        for part in by_reading(engine, questions, step_request):
            queries = prepare_queries(engine, [questions[i] for i in part], None, step_request, reader)
            hits_of |= zip(part, _recall_in_view(engine, reader, queries, step_request, row_ids), strict=True)
        return [hits_of[i] for i in range(len(questions))]

    follow(question, hits, request, recall_steps)
    hits.stages = {**hits.stages, "hops": (perf_counter() - began) * 1e3}


def hits_of_answers(
    engine: Engine, opened: Opened, queries: Queries, answers: Sequence[Answer], request: Request
) -> tuple[list[Answer], list[Hits]]:
    """The answers as their texts leave them, and their hits; the records of all are fetched at once."""
    answers = bring_numbered(opened, queries, answers, request)
    answers, relations, contradictions = bring_related(opened, answers, request)
    row_ids = [row_id for answer in answers for row_id in (*answer.row_ids, *answer.successors) if row_id >= 0]
    records = opened.reader.records.fetch(row_ids) if row_ids else {}
    opened.row_ids.update([(record.public_id, row_id) for row_id, record in records.items()])
    size = float(opened.view.terms.records)
    answers = assess_by_text(queries, answers, records, request, opened.embedder_name, relations, size)
    related = relations_of(opened, [*records], request, contradictions)
    fetched = []
    for text, answer in zip(queries.texts, answers, strict=False):  # sub-queries have no answer of their own
        gaps = answer.gaps if queries.gap is None else (*answer.gaps, queries.gap)
        if queries.unread is not None and gaps:
            gaps = (*gaps, queries.unread)
        hits = load_hits(answer, records, related, gaps, request)
        if answer.trace is not None:
            add_ranks(hits, answer, opened.memory_index.table.ids[answer.trace.rows], answer.trace)
        left_out = 0
        if request.token_budget is not None:
            hits, left_out = fit_budget(hits, request.token_budget, engine.embedder.count_tokens)
        if request.diversify_by is not None:
            hits = sorted(hits, key=_time_order)
        fetched.append(Hits(hits, query=text, evidence_gaps=gaps, left_out=left_out, diversify_by=request.diversify_by))
    return answers, fetched


# Hits: the chosen candidates with their records, signals and match reasons.

_RANKED = ("cosine", "bm25", "fused", "spread")
_REASONS = reasons_by_bits(False), reasons_by_bits(True)
_ALONE: dict[str, Any] = {}


def relations_of(
    opened: Opened, row_ids: Sequence[int], request: Request, contradictions: Sequence[tuple[int, int, str]]
) -> dict[int, dict[str, Any]]:
    """The fields of hits that say what they supersede and contradict and what superseded them, by row id.

    All are read at once, and supersessions only where the store has some that the request may show.
    """
    fields: dict[int, dict[str, Any]] = {}
    for row_id, _, public_id in contradictions:
        others = fields.setdefault(row_id, {"contradicts": ()})
        others["contradicts"] = (*others["contradicts"], public_id)
    known_at = request.filter.as_of
    if not row_ids or (known_at is None and not opened.any_superseded):
        return fields
    supersessions = opened.reader.supersessions
    old_ids: Sequence[int] = row_ids
    if known_at is None:
        old_ids = opened.memory_index.table.superseded_among(np.array(sorted(row_ids), dtype=np.int64))
    if old_ids:
        for row_id, (held_until, public_ids) in supersessions.successors(old_ids, known_at).items():
            fields.setdefault(row_id, {}).update(held_until=optional_datetime(held_until), superseded_by=public_ids)
    for row_id, formers in supersessions.formers(row_ids, request.now, known_at).items():
        fields.setdefault(row_id, {})["supersedes"] = tuple(
            Former(
                id=former.public_id,
                text=former.text,
                held_from=to_datetime(former.held_from),
                held_until=to_datetime(former.held_until),
            )
            for former in formers
        )
    return fields


def load_hits(
    answer: Answer, records: Mapping[int, Found], relations: Mapping[int, dict[str, Any]], gaps: tuple[str, ...],
    request: Request,
) -> list[Hit]:  # fmt: skip
    """The hits of one query with their records; records that are gone by now are left out."""
    hits = []
    named, after, epoch = _REASONS[request.profile.importance_weight > 0], timedelta, EPOCH
    for row_id, score, confidence, reasons, values, successor in zip(*answer[:6], strict=True):
        record = records.get(row_id)
        if record is None:
            continue
        valid_from, valid_until, related = record.valid_from, record.valid_until, relations.get(row_id, _ALONE)
        if successor >= 0 and (other := records.get(successor)) is not None:  # recall found that it replaced the hit
            known = related.get("superseded_by", ())
            related = {**related, "superseded_by": tuple(dict.fromkeys((*known, other.public_id)))}
        hits.append(
            Hit(
                id=record.public_id,
                text=record.text,
                score=score,
                confidence=confidence,
                kind=record.kind,
                scope=record.scope,
                context=record.context,
                tags=record.tags,
                importance=record.importance,
                created_at=epoch + after(0, 0, record.created_at),
                valid_from=None if valid_from is None else epoch + after(0, 0, valid_from),
                valid_until=None if valid_until is None else epoch + after(0, 0, valid_until),
                updated_at=epoch + after(0, 0, record.updated_at),
                authority=AUTHORITIES[-record.authority],
                topic=record.topic,
                metadata=record.metadata,
                source=None if record.source is None else _source(record),
                match_reasons=named[reasons, record.importance > 0.5],
                evidence_gaps=gaps,
                signals=dict(zip(SHOWN, values, strict=True)),
                **related,
            )
        )
    return hits


def add_ranks(hits: Sequence[Hit], answer: Answer, row_ids: NDArray[np.int64], trace: Trace) -> None:
    """Add each hit's rank by each signal, from 1, ties by ascending row id; 0 where the signal is not above 0.

    `row_ids` are the candidates'; a hit that is none of them has rank 0.
    """
    for name in _RANKED:
        values = trace.signals[getattr(SIGNALS, name)]
        order = np.lexsort((row_ids, -values))
        rank_of = {row_id: rank for rank, row_id in enumerate(row_ids[order[values[order] > 0]].tolist(), 1)}
        for row_id, hit in zip(answer.row_ids, hits, strict=True):
            hit.signals[f"{name}_rank"] = float(rank_of.get(row_id, 0))


def fit_budget(hits: list[Hit], budget_tokens: int, count: Callable[[list[str]], list[int]]) -> tuple[list[Hit], int]:
    """The hits that fit, in order, and how many do not; the best is always kept."""
    if not hits:
        return hits, 0
    costs = count([hit.text for hit in hits])
    fitting, used = [hits[0]], costs[0]
    for hit, cost in zip(hits[1:], costs[1:], strict=True):
        if used + cost <= budget_tokens:
            fitting.append(hit)
            used += cost
    return fitting, len(hits) - len(fitting)


def _time_order(hit: Hit) -> tuple[datetime, str, int, str]:
    """The time of what a hit tells, then its source and position."""
    source = hit.source
    position = -1 if source is None or source.position is None else source.position
    return hit.valid_from or hit.created_at, "" if source is None else source.id, position, hit.id


def _source(record: Found) -> SourceRef:
    assert record.source is not None
    path, lines = record.metadata.get("path"), record.metadata.get("lines")
    span = None
    if isinstance(lines, list) and len(lines) == 2 and all(type(line) is int for line in lines):
        span = (lines[0], lines[1])
    path = path if isinstance(path, str) else None
    return SourceRef(id=record.source, position=record.position, path=path, lines=span)
