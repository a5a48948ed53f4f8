"""Explanations of why a record is, or is not, among the hits.

The same kernel is called once more for every candidate and this record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import structs

from recallite.engine import Engine
from recallite.model.checks import check_query
from recallite.model.filters import Filter
from recallite.model.match_reasons import CHANGE_BIT
from recallite.model.records import Explanation, Hit
from recallite.recall.answer import RELEVANT_SHARE, SHOWN, Answer, Trace
from recallite.recall.decomposition import SubQueries, decompose
from recallite.recall.judge import judged_alone
from recallite.recall.pipeline import (
    Opened,
    answer_all,
    call,
    embed_queries,
    fetch_hits,
    judged,
    open_view,
    recall_queries,
)
from recallite.recall.plan import DEPTH, FEATURES, SIGNALS, at, contributions, load_ranking, plan_of, wanted_of
from recallite.recall.query import adapt, given_vectors, question_arrays
from recallite.recall.request import ANSWER_SHARE
from recallite.store.transaction import Reader
from recallite.system.numerics import kernels
from recallite_kernels.arguments import ENDED, OVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recallite.recall.query import Queries
    from recallite.recall.request import Request

_EVERY = 2**31


class Watched(NamedTuple):
    """One record in the ranking of a question.

    `place` is its place among the candidates of the trace, -1 where it is none of them; `signals` are by name;
    `least` is the confidence that it needs; `successor` is the row id of what replaced it, -1 for none; `raised` says
    that it was put before what it replaced.
    """

    answer: Answer
    trace: Trace
    place: int
    signals: dict[str, float]
    ranks: dict[str, int]
    confidence: float
    least: float
    successor: int
    raised: bool


def explain(
    engine: Engine,
    query: str,
    vectors: Sequence[object] | None,
    public_id: str,
    record_id: int,
    request: Request,
) -> Explanation:
    """Follow the record with row id `record_id` through the stages of this query."""
    text = check_query(query)
    checked = None if vectors is None else given_vectors(vectors, 1)
    plain_request = request
    searched, request = adapt(text, request, stories=vectors is None)
    sub = decompose(engine, searched, request) if vectors is None else SubQueries(())
    queries, request = embed_queries(engine, [searched], checked, structs.replace(request, explain=True), sub)
    with engine.store.read() as reader:
        if request.filter.as_of is not None:
            record_id = reader.records.version_at(record_id, request.filter.as_of)
        hidden = _hidden_by(reader, record_id, request)
        if hidden is not None:
            stage, reason = hidden
            return Explanation(id=public_id, query=text, returned=False, stage=stage, reason=reason)
        with open_view(engine, reader, queries, request) as opened:
            (answer,) = answer_all(opened, queries, request, decomposed=bool(sub.queries))
            (answer,), records = judged(opened, queries, [answer], request)
            hits = fetch_hits(engine, opened, queries, [answer], records, request)[0]
            watched = _watch(opened, queries, request, answer, record_id, decomposed=bool(sub.queries))
            learned = _learned(watched)
            authority = reader.records.get(record_id).authority
            stage, reason, rank = _place(opened, watched, [hit.id for hit in hits], public_id, request)
            reason += _change(reader, watched) or _newer(hits, public_id)
            reason += _over(opened, record_id)
            if watched.trace.best_of is not None and watched.place >= 0:
                best = queries.texts[watched.trace.best_of[watched.place]]
                reason += f"; of the sub-queries it answers {best!r} best"
    if stage != "returned" and vectors is None:
        joined = recall_queries(engine, [text], None, structs.replace(plain_request, counted=False))[0]
        for place, hit in enumerate(joined, 1):
            if hit.id == public_id:
                by_authority = "authority" in hit.match_reasons
                why = "a lower authority speaks of the same" if by_authority else "it tells of what another hit states"
                stage, rank, reason = "returned", place, f"it is hit {place}: {why}"
    signals = watched.signals
    return Explanation(
        id=public_id,
        query=text,
        returned=stage == "returned",
        stage=stage,
        reason=reason,
        rank=rank,
        score=None if "score" not in signals else min(max(signals["score"], 0.0), 1.0),
        confidence=watched.confidence,
        authority=authority,
        signals=signals,
        ranks=watched.ranks,
        learned=learned,
        index=opened.memory_index.origin,
    )


def _watch(
    opened: Opened, queries: Queries, request: Request, answer: Answer, record_id: int, *, decomposed: bool
) -> Watched:
    """The record among all candidates without thresholds; where it is none of them, brought as a standing one is."""
    wanted = wanted_of(
        request, opened.view, opened.embedder_name, by_vector=queries.vectors is not None,
        by_tokens=queries.tokens is not None, shared=decomposed,
    )  # fmt: skip
    plan = at(plan_of(request.profile, wanted), request.clock)._replace(
        limit=_EVERY, final=_EVERY, least=-np.inf, least_confidence=0.0, ranked=0, omit=0, grouped=0, standing=1
    )
    (row,) = opened.memory_index.table.rows_of(np.array([record_id], dtype=np.int64)).tolist()
    view = opened.view._replace(standing=np.array([row]), instructions=np.ones(1, dtype=np.uint8))
    batch = question_arrays(opened.reader, opened.memory_index.generation, queries, request, wanted.by_vector)
    hits, work = call(view, plan, batch)
    count = hits.figures[0, kernels.FIGURES.hits] + hits.figures[0, kernels.FIGURES.brought]
    (rank,) = np.flatnonzero(hits.rows[0, :count] == row)[:1].tolist() or (-1,)
    assert answer.trace is not None
    (place,) = np.flatnonzero(answer.trace.rows == row)[:1].tolist() or (-1,)
    hit_signals = hits.signals[0, rank]
    ranks = _ranks(view, plan, batch.asking, work, row)
    signals = {
        name: float(hit_signals[getattr(SIGNALS, name)]) for name in (SHOWN if place >= 0 else ("cosine", "bm25"))
    }
    for name in ("fused", "spread", "score") if place >= 0 else ():
        values = answer.trace.signals[getattr(SIGNALS, name)]
        ranks[name] = int((values > values[place]).sum()) + 1
    if place >= 0:
        signals = {name: float(answer.trace.signals[getattr(SIGNALS, name), place]) for name in SHOWN}
    least = request.profile.min_confidence
    confidence = hits.confidence[:, rank].max() if decomposed else hits.confidence[0, rank]
    if record_id in answer.keys:
        confidence = answer.confidence[answer.keys.index(record_id)]
    elif not decomposed:
        record = opened.reader.records.fetch([record_id])[record_id]
        confidence, least = judged_alone(
            queries, float(confidence), record, request, opened.embedder_name, answer.missing
        )
    return Watched(
        answer, answer.trace, place, signals, ranks, float(confidence), least, int(hits.successors[0, rank]),
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
        places = np.arange(len(owners)) if mask is None else np.flatnonzero(mask[owners])
        nearest, cosines = kernels.rescore_shortlist(
            asking.vectors[:1], view.vectors.codes, view.vectors.scales, places[None],
            np.zeros((1, len(places)), dtype=np.uint16), len(places), len(places), checked=True,
        )  # fmt: skip
        best_cosine = cosines[0, owners[nearest[0]] == row].max(initial=0.0)
        ranks["cosine"] = len(np.unique(owners[nearest[0, cosines[0] > best_cosine]])) + 1
    return ranks


def _learned(watched: Watched) -> dict[str, float]:
    """The part of each match reason in the learned ranking of the record; empty if that did not place it.

    Its rank without that joins its ranks.
    """
    trace, ranking, place = watched.trace, load_ranking(), watched.place
    if ranking is None or place < 0 or not trace.features.shape[1] or trace.best_of is not None:
        return {}
    before = np.lexsort((trace.rows, -trace.formula))[:DEPTH]
    (column,) = np.flatnonzero(before == place)[:1].tolist() or (-1,)
    if column < 0:
        return {}
    added = contributions(ranking, trace.features)[:, column]
    by_reason: dict[str, float] = {}
    for reason, part in zip(FEATURES.values(), added.tolist(), strict=True):
        by_reason[reason] = by_reason.get(reason, 0.0) + part
    watched.ranks["formula"] = int((trace.formula > trace.formula[place]).sum()) + 1
    return by_reason


def _hidden_by(reader: Reader, record_id: int, request: Request) -> tuple[str, str] | None:
    """The stage that hides the record, and the part of the filter or its successors in words."""
    if not reader.records.get(record_id).indexed:
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
        if not reader.records.admits(part, request.now, record_id):
            return "filter", reason
    if not reader.records.admits(bare.replaced(include_superseded=False), request.now, record_id) and not (
        filter_.include_superseded or filter_.valid_at is not None
    ):
        successors = reader.supersessions.successors([record_id], filter_.as_of)
        names = " and ".join(successors[record_id][1]) if record_id in successors else "another"
        return "superseded", f"it is superseded by {names}; include_superseded shows it"
    return None


def _change(reader: Reader, watched: Watched) -> str:
    """Name the statement of the same thing with another value, in words; "" if there is none among the best."""
    raised = "; it was put before what states the same thing with another value" if watched.raised else ""
    successors = reader.records.fetch([watched.successor]) if watched.successor >= 0 else {}
    if not successors:
        return raised
    return f"{raised}; {successors[watched.successor].public_id} states the same thing with a later value"


def _over(opened: Opened, record_id: int) -> str:
    """Say, in words, that the record tells itself that it is over; "" for one that does not."""
    table = opened.memory_index.table
    frame, how = table.frames[table.rows_of(np.array([record_id], dtype=np.int64))[0], -1].tolist()
    if frame != OVER:
        return ""
    return (
        f"; it says {'itself that it is over' if how == ENDED else 'what holds no longer'}, and goes after what holds"
    )


def _newer(hits: Sequence[Hit], public_id: str) -> str:
    """Whether the record was put before hits that give an older value, in words."""
    newer = any(hit.id == public_id and "change" in hit.match_reasons for hit in hits)
    return "; it was put before hits that give an older value of what is asked for" if newer else ""


def _place(
    opened: Opened, watched: Watched, returned: list[str], public_id: str, request: Request
) -> tuple[str, str, int | None]:
    """The stage that dropped the record, why, and its rank there."""
    if public_id in returned:
        rank = returned.index(public_id) + 1
        return "returned", f"it is hit {rank}", rank
    trace, place, profile = watched.trace, watched.place, request.profile
    if place < 0:
        return (
            "candidates",
            f"it is not among the {request.wanted} best by vector or by keyword, and no neighbour or link of one",
            None,
        )
    rank = int(np.flatnonzero(trace.order == place)[0]) + 1
    keys: NDArray[np.int64] = opened.memory_index.table.ids[trace.rows]
    if int(keys[place]) in watched.answer.keys:
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
    if request.one_per_source:
        sources = opened.memory_index.table.sources
        answered = opened.memory_index.table.rows_of(np.array(watched.answer.keys, dtype=np.int64))
        source = sources[trace.rows[place]]
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
