"""Why a record is, or is not, among the hits: the same pipeline, followed for one record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import structs

from recallite.engine import Engine
from recallite.model.checks import check_query
from recallite.model.filters import Filter
from recallite.model.records import Explanation, Hit
from recallite.recall.adaptive import adapt
from recallite.recall.candidates import SIGNALS, measure
from recallite.recall.confidence import Judge
from recallite.recall.decomposition import SubQueries, decompose
from recallite.recall.features import FEATURES, rank_by_forest
from recallite.recall.hits import signals_by_name
from recallite.recall.hops import has_steps
from recallite.recall.learned_ranking import DEPTH, contributions, load_ranking
from recallite.recall.pipeline import Answer, answer_all, embed_queries, fetch_hits, recall_queries
from recallite.recall.query import Words, find_words, words_in_vocabulary
from recallite.recall.select import RELEVANT_SHARE, omits_superseded, threshold, without_superseded
from recallite.recall.view import open_view
from recallite.store.protocol import Reader

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.index.query_batch import QueryBatch
    from recallite.recall.request import Request


class Watched(NamedTuple):
    """One query's answer, with the means to measure a record that may not be in it.

    `place` is the record's among the candidates, empty where it is none of them.
    """

    batch: QueryBatch
    answer: Answer
    place: NDArray[np.int64]
    judge: Judge
    request: Request

    def confidence(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """The confidence of the candidates at these places."""
        return self.judge.assess([places]).by_answer[0]


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
    given = request
    asked, request = adapt(text, request, stories=vectors is None)
    sub = decompose(engine, asked, request) if vectors is None else SubQueries(())
    queries, request = embed_queries(engine, [asked], vectors, request, sub)
    with engine.store.read() as reader:
        if request.filter.as_of is not None:
            record_id = reader.records.version_at(record_id, request.filter.as_of)
        hidden = _hidden_by(reader, record_id, request)
        if hidden is not None:
            stage, reason = hidden
            return Explanation(id=public_id, query=text, returned=False, stage=stage, reason=reason)
        with open_view(engine, reader, queries, request, record_id) as (view, loader):
            (answer,) = answer_all(view, loader, reader, queries, request, decomposed=bool(sub.queries))
            hits = fetch_hits(engine, reader, view, queries, [answer], request)[0]
            words = find_words(reader, view.index.generation, queries, request)
            batch = view.batch(
                None if queries.vectors is None else np.stack(queries.vectors),
                [each.terms for each in words],
                [each.spans for each in words],
            )
            known = words_in_vocabulary(words, batch.slices.in_vocabulary)
            sub_queries = answer.sub_queries
            judge = Judge(
                batch, known, answer.candidates if sub_queries is None else sub_queries.shared, loader.embedder,
                request.profile, shared=sub_queries is not None,
            )  # fmt: skip
            place = np.flatnonzero(answer.candidates.keys == record_id)
            watched = Watched(batch, answer, place, judge, request)
            rows = view.index.table.rows_of(np.array([record_id], dtype=np.int64))
            signals, ranks = _signals(watched, rows, view.visible_rows())
            confidence = _confidence(watched, rows)
            learned, before = _learned(watched, words_in_vocabulary(words, batch.slices.in_vocabulary))
            ranks |= before
            stage, reason, rank = _place(watched, [hit.id for hit in hits], public_id)
            reason += _change(reader, watched) or _newer(hits, public_id)
            if answer.sub_queries is not None and len(place):
                reason += (
                    f"; of the sub-queries it answers {queries.texts[answer.sub_queries.best_of[place[0]]]!r} best"
                )
    if stage != "returned" and vectors is None and has_steps(asked, request):
        followed = [hit.id for hit in recall_queries(engine, [text], None, structs.replace(given, counted=False))[0]]
        if public_id in followed:
            rank = followed.index(public_id) + 1
            stage, reason = "returned", f"it is hit {rank}: it tells of what another hit states"
    return Explanation(
        id=public_id,
        query=text,
        returned=stage == "returned",
        stage=stage,
        reason=reason,
        rank=rank,
        score=None if "score" not in signals else min(max(signals["score"], 0.0), 1.0),
        confidence=confidence,
        signals=signals,
        ranks=ranks,
        learned=learned,
        index=view.index.origin,
    )


def _learned(watched: Watched, words: Sequence[Words]) -> tuple[dict[str, float], dict[str, int]]:
    """What each match reason did for the record in the learned ranking, and its rank without that.

    Both are empty where learned ranking did not place it.
    """
    candidates, ranking, place = watched.answer.candidates, load_ranking(), watched.place
    if candidates.formula is None or ranking is None or not len(place):
        return {}, {}
    (best,) = candidates.best(DEPTH)
    at = np.flatnonzero(best == place[0])
    if not len(at):
        return {}, {}
    features = rank_by_forest(watched.batch, candidates, words, watched.request.profile, DEPTH).features
    added = contributions(ranking, features)[:, at[0]]
    by_reason: dict[str, float] = {}
    for reason, part in zip(FEATURES.values(), added.tolist(), strict=True):
        by_reason[reason] = by_reason.get(reason, 0.0) + part
    return by_reason, {"formula": int((candidates.formula > candidates.formula[place[0]]).sum()) + 1}


def _hidden_by(reader: Reader, record_id: int, request: Request) -> tuple[str, str] | None:
    """The stage that hides the record, and the part of the filter or its successors in words."""
    if not reader.records.get(record_id).indexed:
        return "filter", "it is not indexed: it was stored with indexed=False"
    chosen = request.filter
    reasons = {
        "as_of": "it has expired, or did not exist at as_of",
        "held_at": "it did not hold at held_at",
        "scopes": f"it is outside the scope {' or '.join(chosen.scopes)}",
        "kinds": f"its kind is not one of {', '.join(chosen.kinds or ())}",
        "tags": f"it has none of the tags {', '.join(chosen.tags or ())}",
        "since": "it is older than since",
        "until": "it is newer than until",
        "where": "it does not satisfy where",
    }
    bare = Filter(include_superseded=True).replaced(as_of=chosen.as_of, base=chosen.base)
    for name, reason in reasons.items():
        part = bare.replaced(**{name: getattr(chosen, name)})
        if not reader.records.admits(part, request.now, record_id):
            return "filter", reason
    if not reader.records.admits(bare.replaced(include_superseded=False), request.now, record_id) and not (
        chosen.include_superseded or chosen.held_at is not None
    ):
        found = reader.supersessions.successors([record_id], chosen.as_of)
        names = " and ".join(found[record_id][1]) if record_id in found else "another"
        return "superseded", f"it is superseded by {names}; include_superseded shows it"
    return None


def _signals(
    watched: Watched, rows: NDArray[np.int64], visible: NDArray[np.int64]
) -> tuple[dict[str, float], dict[str, int]]:
    """Each signal's value for the record, and its rank among all visible records."""
    candidates, profile = watched.answer.candidates, watched.request.profile
    one, everyone = (
        measure(watched.batch, some, profile, watched.request.clock).of(0).signals for some in (rows, visible)
    )
    measured = {"cosine": SIGNALS.cosine, "bm25": SIGNALS.bm25}
    signals = {name: float(one[at, 0]) for name, at in measured.items()}
    ranks = {name: int((everyone[at] > one[at, 0]).sum()) + 1 for name, at in measured.items()}
    place = watched.place
    if len(place):
        (signals,) = signals_by_name(candidates.signals[:, place])
        for name in ("fused", "spread", "score"):
            values = candidates.signals[getattr(SIGNALS, name)]
            ranks[name] = int((values > values[place[0]]).sum()) + 1
    return signals, ranks


def _confidence(watched: Watched, rows: NDArray[np.int64]) -> float:
    """The record's confidence: the hit's own where it is a candidate."""
    if len(watched.place):
        return float(watched.confidence(watched.place)[0])
    measured = measure(watched.batch, rows, watched.request.profile, watched.request.clock)
    return float(np.max(watched.judge.of_records(measured)))


def _change(reader: Reader, watched: Watched) -> str:
    """What states the same thing as the record with another value, in words; "" where nothing among the best does."""
    candidates, place = watched.answer.candidates, watched.place
    if not len(place) or candidates.successors is None or candidates.raised is None:
        return ""
    (successor,), (raised,) = candidates.successors[place].tolist(), candidates.raised[place].tolist()
    said = "; it was put before what states the same thing with another value" if raised else ""
    found = reader.records.fetch([successor]) if successor >= 0 else {}
    return f"{said}; {found[successor].public_id} states the same thing with a later value" if found else said


def _newer(hits: Sequence[Hit], public_id: str) -> str:
    """Whether the record was put before hits that give an older value, in words."""
    newer = any(hit.id == public_id and "change" in hit.match_reasons for hit in hits)
    return "; it was put before hits that give an older value of what is asked for" if newer else ""


def _place(watched: Watched, returned: list[str], public_id: str) -> tuple[str, str, int | None]:
    """The stage that dropped the record, why, and its rank there."""
    found, request = watched.answer, watched.request
    candidates, profile = found.candidates, request.profile
    if public_id in returned:
        rank = returned.index(public_id) + 1
        return "returned", f"it is hit {rank}", rank
    place = watched.place
    if not len(place):
        return (
            "candidates",
            f"it is not among the {request.wanted} best by vector or by keyword, and no neighbour or link of one",
            None,
        )
    rank = int(np.flatnonzero(candidates.order == place[0])[0]) + 1
    if found.chosen.size and place[0] in found.chosen:
        return "token_budget", "it did not fit the token budget", rank
    confidence = watched.confidence(np.arange(len(candidates))) if profile.min_confidence > 0 else None
    kept = threshold(candidates, confidence, profile)
    if place[0] not in kept:
        return "threshold", "its score or confidence is below the minimum", rank
    if omits_superseded(request) and place[0] not in without_superseded(candidates, kept):
        return "superseded", "it no longer holds", rank
    if request.group_by is not None:
        source = watched.batch.sources(candidates.rows[place])[0]
        same = watched.batch.sources(candidates.rows[found.chosen]) == source
        if source >= 0 and same.any():
            return "group", "another record of its source is better and represents it", rank
    if request.spread_over is not None:
        covered = "periods" if request.spread_over == "time" else "sources"
        relevant = f"less than {RELEVANT_SHARE:.0%} as relevant as the best"
        return "spread", f"it is {relevant}, or others cover more of the {covered}", rank
    if profile.mmr_lambda is not None and rank <= request.limit:
        return "diversify", "MMR preferred records less similar to those already chosen", rank
    if found.standing and rank <= request.limit:
        return "limit", f"it ranks {rank}, and {len(found.standing)} of {request.limit} hits are standing ones", rank
    return "limit", f"it ranks {rank} and the limit is {request.limit}", rank
