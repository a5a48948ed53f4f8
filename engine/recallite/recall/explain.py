"""Explanations of why a record is, or is not, among the hits: the kernel is called once more for all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs

from recallite.engine import Engine
from recallite.model.checks import check_query
from recallite.model.filters import Filter
from recallite.model.match_reasons import CHANGE_BIT
from recallite.model.records import Explanation
from recallite.recall import pipeline, plan
from recallite.recall.decomposition import SubQueries, decompose
from recallite.recall.judge import assess_one
from recallite.recall.order import RELEVANT_SHARE
from recallite.recall.query import Queries, adapt, given_vectors, question_arrays
from recallite.recall.request import ANSWER_SHARE, Answer, Request, Trace
from recallite.store.transaction import Reader
from recallite.system.numerics import kernels
from recallite_kernels.arguments import ENDED, OVER


class _Watched(NamedTuple):
    """One record in the ranking of a question.

    - candidate: its index among the candidates of the trace, -1 where it is none of them
    - least: the confidence that it needs
    - successor: the row id of what replaced it, -1 for none; raised: it was put before what it replaced
    """

    answer: Answer
    trace: Trace
    candidate: int
    signals: dict[str, float]
    ranks: dict[str, int]
    confidence: float
    least: float
    successor: int
    raised: bool


def explain(
    engine: Engine, query: str, vectors: Sequence[object] | None, public_id: str, row_id: int, request: Request
) -> Explanation:
    """Follow the record with this row id through the stages of this query."""
    text = check_query(query)
    checked = None if vectors is None else given_vectors(vectors, 1)
    plain_request = request
    searched, request = adapt(text, request, stories=vectors is None)
    sub = decompose(engine, searched, request) if vectors is None else SubQueries(())
    queries, request = pipeline.embed_queries(engine, [searched], checked, structs.replace(request, explain=True), sub)
    with engine.store.read() as reader:
        if request.filter.as_of is not None:
            row_id = reader.records.version_at(row_id, request.filter.as_of)
        if (hidden := _hidden_by(reader, row_id, request)) is not None:
            return Explanation(id=public_id, query=text, returned=False, stage=hidden[0], reason=hidden[1])
        with plan.open_view(engine, reader, queries, request) as opened:
            (answer,) = plan.answer_all(opened, queries, request, decomposed=bool(sub.queries))
            (answer,), (hits,) = pipeline.hits_of_answers(engine, opened, queries, [answer], request)
            watched = _watch(opened, queries, request, answer, row_id, decomposed=bool(sub.queries))
            learned = _learned(watched)
            authority = reader.records.get(row_id).authority
            returned = [hit.id for hit in hits]
            successors = [edge.new_id for edge in reader.supersessions.ahead([row_id], request.clock)]
            replaced = not set(reader.records.public_ids_of(successors)).isdisjoint(returned)
            stage, reason, rank = _stage_of(opened, watched, returned, public_id, request, replaced=replaced)
            newer = any(hit.id == public_id and "change" in hit.match_reasons for hit in hits)
            reason += _remarks(opened, watched, row_id, queries, newer=newer)
    confidence = watched.confidence
    if stage != "returned" or authority != "user":
        joined = pipeline.recall_queries(engine, [text], vectors, structs.replace(plain_request, counted=False))[0]
        places = {hit.id: (hit_rank, hit) for hit_rank, hit in enumerate(joined, 1)}
        if public_id in places:
            hit_rank, hit = places[public_id]
            if hit_rank != rank:
                by_authority = "authority" in hit.match_reasons
                why = "a lower authority speaks of the same" if by_authority else "it tells of what another hit states"
                why = "a higher authority says the same" if stage == "returned" else why
                stage, rank, reason = "returned", hit_rank, f"it is hit {hit_rank}: {why}"
                confidence = hit.confidence
        elif stage == "returned":
            stage, rank, reason = "authority", None, "a higher authority says the same, and other hits take its place"
    signals = watched.signals
    return Explanation(
        id=public_id,
        query=text,
        returned=stage == "returned",
        stage=stage,
        reason=reason,
        rank=rank,
        score=None if "score" not in signals else min(max(signals["score"], 0.0), 1.0),
        confidence=confidence,
        authority=authority,
        signals=signals,
        ranks=watched.ranks,
        learned=learned,
        index=opened.memory_index.origin,
    )


def _hidden_by(reader: Reader, row_id: int, request: Request) -> tuple[str, str] | None:
    """The stage that hides the record, and the part of the filter or its successors in words."""
    if not reader.records.get(row_id).indexed:
        return "filter", "it is not indexed: it was stored with indexed=False"
    filter_ = request.filter
    reasons = {
        "as_of": "it has expired, or did not exist at as_of",
        "valid_at": "it did not hold at valid_at",
        "scopes": f"it is outside the scope {' or '.join(filter_.scopes)}",
        "kinds": f"its kind is not one of {', '.join(filter_.kinds or ())}",
        "tags": f"it has none of the tags {', '.join(filter_.tags or ())}",
        "since": "it is older than since",
        "until": "it is newer than until",
        "where": "it does not satisfy where",
    }
    bare = Filter(include_superseded=True).replaced(as_of=filter_.as_of, base=filter_.base)
    for name, reason in reasons.items():
        part = bare.replaced(**{name: getattr(filter_, name)})
        if not reader.records.admits(part, request.now, row_id):
            return "filter", reason
    hides = not plan.sees_superseded(request) and filter_.valid_at is None
    if hides and not reader.records.admits(bare.replaced(include_superseded=False), request.now, row_id):
        successors = reader.supersessions.successors([row_id], filter_.as_of)
        names = " and ".join(successors[row_id][1]) if row_id in successors else "another"
        return "superseded", f"it is superseded by {names}; include_superseded shows it"
    return None


def _watch(
    opened: plan.Opened, queries: Queries, request: Request, answer: Answer, row_id: int, *, decomposed: bool
) -> _Watched:
    """The record among all candidates without thresholds; where it is none of them, brought as a standing one is."""
    key = plan.plan_key(opened, queries, request, shared=decomposed)
    wide_plan = plan.with_clock(plan.plan_of(request.profile, key), request.clock)._replace(
        limit=plan.NO_LIMIT, final=plan.NO_LIMIT, least=-np.inf, least_confidence=0.0, ranked=0, omit=0, grouped=0,
        standing=1,
    )  # fmt: skip
    (row,) = opened.memory_index.table.rows_of(np.array([row_id], dtype=np.int64)).tolist()
    view = opened.view._replace(standing=np.array([row]), instructions=np.ones(1, dtype=np.uint8))
    batch = question_arrays(opened, queries, request, key.by_vector)
    hits, work = plan.call(view, wide_plan, batch)
    plan.weigh_by_cohort(opened, queries, request, hits, shared=decomposed)
    count = hits.figures[0, kernels.FIGURES.hits] + hits.figures[0, kernels.FIGURES.brought]
    (rank,) = np.flatnonzero(hits.rows[0, :count] == row)[:1].tolist() or (-1,)
    trace = answer.trace
    assert trace is not None
    (candidate,) = np.flatnonzero(trace.rows == row)[:1].tolist() or (-1,)
    ranks = _ranks(view, wide_plan, batch.asking, work, row)
    if candidate < 0:
        signals = {name: float(hits.signals[0, rank, getattr(plan.SIGNALS, name)]) for name in ("cosine", "bm25")}
    else:
        signals = {name: float(trace.signals[getattr(plan.SIGNALS, name), candidate]) for name in plan.SHOWN}
        for name in ("fused", "spread", "score"):
            values = trace.signals[getattr(plan.SIGNALS, name)]
            ranks[name] = int((values > values[candidate]).sum()) + 1
    least = request.profile.min_confidence
    of_each = decomposed and rank < hits.figures[0, kernels.FIGURES.hits]
    confidence = float(hits.confidence[:, rank].max() if of_each else hits.confidence[0, rank])
    if row_id in answer.row_ids:
        confidence = float(answer.confidence[answer.row_ids.index(row_id)])
    elif not decomposed:
        record = opened.reader.records.fetch([row_id])[row_id]
        size = float(opened.view.terms.records)
        confidence, least = assess_one(queries, confidence, record, request, opened.embedder_name, answer.missing, size)
    return _Watched(
        answer, trace, candidate, signals, ranks, float(confidence), least, int(hits.successors[0, rank]),
        bool(hits.reasons[0, rank] & CHANGE_BIT),
    )  # fmt: skip


def _ranks(
    view: kernels.View, plan: kernels.Plan, asking: kernels.Asking, work: kernels.Workspace, row: int
) -> dict[str, int]:
    """The record's ranks by cosine and by BM25 among all visible records."""
    words = kernels.postings_of(view, plan, int(work.slice_offsets[1]), work)
    mask = view.graph.mask if len(view.graph.mask) else None
    scratch = np.zeros(len(view.terms.lengths), dtype=np.float32)
    rows, scores, counts = kernels.bm25_top_k(words, mask, scratch, len(scratch), checked=True)
    rows, scores = rows[0, : counts[0]], scores[0, : counts[0]]
    ranks = {"cosine": 1, "bm25": int((scores > scores[rows == row].max(initial=0.0)).sum()) + 1}
    if plan.by_vector:
        owners = view.vectors.owners if len(view.vectors.owners) else np.arange(len(view.vectors.scales))
        visible = np.arange(len(owners)) if mask is None else np.flatnonzero(mask[owners])
        nearest, cosines = kernels.rescore_shortlist(
            asking.vectors[:1], view.vectors.codes, view.vectors.scales, visible[None],
            np.zeros((1, len(visible)), dtype=np.uint16), len(visible), len(visible), checked=True,
        )  # fmt: skip
        best_cosine = cosines[0, owners[nearest[0]] == row].max(initial=0.0)
        ranks["cosine"] = len(np.unique(owners[nearest[0, cosines[0] > best_cosine]])) + 1
    return ranks


def _learned(watched: _Watched) -> dict[str, float]:
    """The part of each match reason in the learned ranking of the record; empty if that did not place it.

    Its rank without that joins its ranks.
    """
    trace, ranking, candidate = watched.trace, plan.load_ranking(), watched.candidate
    if ranking is None or candidate < 0 or not trace.features.shape[1] or trace.best_of is not None:
        return {}
    before = np.lexsort((trace.rows, -trace.formula))[: plan.DEPTH]
    (column,) = np.flatnonzero(before == candidate)[:1].tolist() or (-1,)
    if column < 0:
        return {}
    added = plan.contributions(ranking, trace.features)[:, column]
    by_reason: dict[str, float] = {}
    for reason, part in zip(plan.FEATURES.values(), added.tolist(), strict=True):
        by_reason[reason] = by_reason.get(reason, 0.0) + part
    watched.ranks["formula"] = int((trace.formula > trace.formula[candidate]).sum()) + 1
    return by_reason


def _stage_of(
    opened: plan.Opened, watched: _Watched, returned: list[str], public_id: str, request: Request, *, replaced: bool
) -> tuple[str, str, int | None]:
    """The stage that dropped the record, why, and its rank there."""
    if public_id in returned:
        rank = returned.index(public_id) + 1
        return "returned", f"it is hit {rank}", rank
    trace, candidate, profile = watched.trace, watched.candidate, request.profile
    if candidate < 0:
        count = plan.candidates_per_signal(profile, request.limit, spread=request.diversify_by is not None)
        reason = f"it is not among the {count} best by vector or by keyword, and no neighbour or link of one"
        return "candidates", reason, None
    rank = int(np.flatnonzero(trace.order == candidate)[0]) + 1
    if int(opened.memory_index.table.ids[trace.rows[candidate]]) in watched.answer.row_ids:
        return "token_budget", "it did not fit the token budget", rank
    relevance = watched.signals["score" if profile.formula.min_score_of == "score" else "spread"]
    unranked = profile.fusion == "rrf" and profile.formula.composition == "product" and watched.signals["spread"] <= 0
    too_low = profile.min_score > 0 and relevance < profile.min_score
    if unranked or too_low or watched.confidence < watched.least:
        return "threshold", "its score or confidence is below the minimum", rank
    if request.relevant and watched.confidence < ANSWER_SHARE * max(watched.answer.confidence, default=0.0):
        return "threshold", "it is less than half as sure as the best hit", rank
    if profile.superseded == "omit" and not request.about_past and watched.successor >= 0:
        return "superseded", "it no longer holds", rank
    if replaced:
        return "superseded", "it no longer holds, and what replaced it is a hit", rank
    if request.one_per_source:
        sources = opened.memory_index.table.sources
        answered = opened.memory_index.table.rows_of(np.array(watched.answer.row_ids, dtype=np.int64))
        source = sources[trace.rows[candidate]]
        if source >= 0 and (sources[answered] == source).any():
            return "group", "another record of its source is better and represents it", rank
    if request.diversify_by is not None:
        covered = "periods" if request.diversify_by == "time" else "sources"
        relevant = f"less than {RELEVANT_SHARE:.0%} as relevant as the best"
        return "spread", f"it is {relevant}, or others cover more of the {covered}", rank
    if profile.mmr_lambda is not None and rank <= request.limit:
        return "diversify", "MMR preferred records less similar to those already chosen", rank
    if watched.answer.brought and rank <= request.limit:
        brought = watched.answer.brought
        return "limit", f"it ranks {rank}, and {brought} of {request.limit} hits are standing ones", rank
    return "limit", f"it ranks {rank} and the limit is {request.limit}", rank


def _remarks(opened: plan.Opened, watched: _Watched, row_id: int, queries: Queries, *, newer: bool) -> str:
    """What else placed the record, in words: other statements of the same thing, its own words, sub-queries."""
    remarks = []
    if watched.raised:
        remarks.append("it was put before what states the same thing with another value")
    successors = opened.reader.records.fetch([watched.successor]) if watched.successor >= 0 else {}
    if successors:
        remarks.append(f"{successors[watched.successor].public_id} states the same thing with a later value")
    if newer and not remarks:
        remarks.append("it was put before hits that give an older value of what is asked for")
    table = opened.memory_index.table
    frame, how = table.frames[table.rows_of(np.array([row_id], dtype=np.int64))[0], -1].tolist()
    if frame == OVER:
        over = "itself that it is over" if how == ENDED else "what holds no longer"
        remarks.append(f"it says {over}, and goes after what holds")
    if watched.trace.best_of is not None and watched.candidate >= 0:
        best = queries.texts[watched.trace.best_of[watched.candidate]]
        remarks.append(f"of the sub-queries it answers {best!r} best")
    if queries.unread is not None:
        remarks.append(queries.unread)
    return "".join(f"; {remark}" for remark in remarks)
