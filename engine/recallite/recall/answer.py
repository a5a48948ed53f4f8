"""The answer to a question: the kernel's hits as columns, the choice among them, and their records as hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recallite.model.authority import AUTHORITIES
from recallite.model.checks import EPOCH, optional_datetime, to_datetime
from recallite.model.match_reasons import reasons_by_bits
from recallite.model.records import Former, Hit, SourceRef
from recallite.recall.plan import SIGNALS, mmr_pool
from recallite.store.values import FormerRow, Found
from recallite.system.numerics import kernels
from recallite.text.reading import TAG_ONLY
from recallite.text.standing import ANSWERING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.recall.confidence import Missing
    from recallite.recall.pipeline import Opened
    from recallite.recall.request import Request


# The signals that a hit shows; the others are intermediate.
SHOWN = tuple(name for name in SIGNALS._fields if name not in ("similarity", "spread_gain", "linked"))


class Trace(NamedTuple):
    """Every candidate of a question: rows, signals float64 (signals, candidates), the candidates in order, and the
    scores before learned ranking; the features of the best and the evidence of the hits, float64 (kinds, ...).
    """

    rows: NDArray[np.int64]
    signals: NDArray[np.float64]
    order: NDArray[np.int64]
    formula: NDArray[np.float64]
    features: NDArray[np.float64]
    evidence: NDArray[np.float64]
    best_of: NDArray[np.int64] | None


class Answer(NamedTuple):
    """The hits of a question as columns, best first; the last are `brought` as standing ones.

    `signals` are in the order of `SHOWN`; successors are row ids, -1 for none. Gaps are found by `missing`, None for a
    decomposed question, which has its gaps.
    """

    row_ids: list[int]
    scores: list[float]
    confidence: list[float]
    reasons: list[int]
    signals: list[list[float]]
    successors: list[int]
    brought: int
    gaps: tuple[str, ...]
    trace: Trace | None = None
    missing: Missing | None = None


# Hits that are chosen among more: by maximal marginal relevance, one a source, or spread over time or sources.

# Hits that are spread have at least this share of the best one's relevance, and come from this number of periods.
RELEVANT_SHARE = 0.2
_PERIODS = 10
# What the words of others count where the user's own are asked for.
_OTHER_WORDS = 0.5


def choose(opened: Opened, request: Request, hits: kernels.Hits, query: int, count: int) -> list[int]:
    """The ranks of the hits to return, of `count`; first the ones that a token budget should keep."""
    ranks = np.arange(count)
    if request.diversify_by is not None:
        ranks = _spread_out(opened, request, hits, query, ranks)
    elif request.profile.mmr_lambda is not None and count > 1:
        ranks = _diversify(opened, request.profile.mmr_lambda, hits, query, ranks, mmr_pool(request.limit))
    if request.one_per_source and request.diversify_by is None:
        _, firsts = np.unique(_sources(opened, hits.rows[query, ranks]), return_index=True)
        ranks = ranks[np.sort(firsts)]
    best: list[int] = ranks[: request.limit].tolist()
    return best


def _diversify(
    opened: Opened, mmr_lambda: float, hits: kernels.Hits, query: int, ranks: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """Jaccard MMR on the words of the first hits."""
    pool = ranks[:size]
    row_ids = hits.keys[query, pool]
    block = opened.reader.blocks.terms(row_ids.tolist())
    # The block ascends by record; in the order of the pool MMR breaks ties by score.
    order = np.searchsorted(block.ids, row_ids)
    starts, stops = block.offsets[order].tolist(), block.offsets[order + 1].tolist()
    of_text = block.counts & TAG_ONLY == 0  # texts are compared, not tags
    sets = [block.terms[a:b][of_text[a:b]] for a, b in zip(starts, stops, strict=True)]
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    tokens = np.ascontiguousarray(np.concatenate(sets), dtype=np.int32)
    relevance = np.ascontiguousarray(hits.signals[query, pool, SIGNALS.score])
    picked = kernels.maximal_marginal_relevance(relevance, tokens, offsets, mmr_lambda, len(pool))
    return np.concatenate([pool[picked], ranks[len(pool) :]])


def _spread_out(
    opened: Opened, request: Request, hits: kernels.Hits, query: int, ranks: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The ranks that cover the periods, or the sources, of what is relevant, in the order of what each adds.

    What is relevant has `RELEVANT_SHARE` of the best relevance, before recency: an old event is no less of a story.
    The n-th best of a period or source adds a n-th of its relevance, as seats are shared out by D'Hondt. Taking what
    adds most maximises the sum, a monotone submodular function (Lin and Bilmes, 2011).
    """
    relevance = hits.signals[query, ranks, SIGNALS.spread]
    if request.own_words:
        contexts = opened.reader.records.contexts(hits.keys[query, ranks])
        of_others = [context is not None and context.strip().lower() in ANSWERING for context in contexts]
        relevance = relevance * np.where(of_others, _OTHER_WORDS, 1.0)
    best_first = np.argsort(-relevance, kind="stable")
    ranks, relevance = ranks[best_first], relevance[best_first]
    ranks = ranks[relevance >= RELEVANT_SHARE * max(relevance.max(initial=0.0), 0.0)]
    relevance = relevance[: len(ranks)]
    rows = hits.rows[query, ranks]
    if request.diversify_by == "source":
        groups = _sources(opened, rows)
    else:
        groups = _periods(opened.memory_index.table.moments[rows], request.limit)
    # The number of each hit within its group, from 1.
    order = np.argsort(groups, kind="stable")
    _, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    numbers = np.empty(len(groups), dtype=np.int64)
    numbers[order] = 1 + np.arange(len(groups)) - np.repeat(starts, counts)
    spread: NDArray[np.int64] = ranks[np.argsort(-relevance / numbers, kind="stable")]
    return spread


def _periods(moments: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """The period of each moment: there are ten, or as many as hits.

    A moment's position is the mean of its share of the time and of its rank: neither one record of long ago nor one
    busy week takes all periods.
    """
    if not len(moments):
        return moments
    since = (moments - moments.min()).astype(np.float64)
    ranks = np.searchsorted(np.sort(moments), moments).astype(np.float64)
    positions = (since / max(since.max(), 1.0) + ranks / max(ranks.max(), 1.0)) / 2
    number = min(_PERIODS, limit)
    periods: NDArray[np.int64] = np.minimum((positions * number).astype(np.int64), number - 1)
    return periods


def _sources(opened: Opened, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The source of each row; a record without one is by itself."""
    sources = opened.memory_index.table.sources[rows]
    return np.where(sources >= 0, sources, -1 - np.arange(len(rows)))


# Hits: the chosen candidates with their records, signals and match reasons.

_RANKED = ("cosine", "bm25", "fused", "spread")
_REASONS = reasons_by_bits(False), reasons_by_bits(True)


class Replaced(NamedTuple):
    """How hits relate to others, by row id: what they supersede, their successors, and the ids that they contradict.

    The first two are as `Supersessions.formers` and `.successors` give them.
    """

    formers: Mapping[int, Sequence[FormerRow]] = {}
    successors: Mapping[int, tuple[int | None, tuple[str, ...]]] = {}
    contradicts: Mapping[int, tuple[str, ...]] = {}

    @classmethod
    def of(
        cls, opened: Opened, row_ids: Sequence[int], request: Request, contradictions: Sequence[tuple[int, int, str]]
    ) -> Replaced:
        """Read at once for all hits, and only where the store has supersessions that the request may show."""
        contradicts: dict[int, tuple[str, ...]] = {}
        for row_id, _, public_id in contradictions:
            contradicts[row_id] = (*contradicts.get(row_id, ()), public_id)
        known_at = request.filter.as_of
        if not row_ids or (known_at is None and not opened.any_superseded):
            return cls(contradicts=contradicts)
        supersessions = opened.reader.supersessions
        old_ids: Sequence[int] = row_ids
        if known_at is None:
            old_ids = opened.memory_index.table.superseded_among(np.array(sorted(row_ids), dtype=np.int64))
        successors = supersessions.successors(old_ids, known_at) if old_ids else {}
        return cls(supersessions.formers(row_ids, request.now, known_at), successors, contradicts)

    def fields(self, row_id: int, other: Found | None) -> dict[str, Any]:
        """The fields of a hit that show it; `other` is the record that recall found to have replaced it."""
        contradicts = self.contradicts.get(row_id, ())
        if other is None and not self.formers and not self.successors:
            return {"contradicts": contradicts}
        held_until, superseded_by = self.successors.get(row_id, (None, ()))
        if other is not None and other.public_id not in superseded_by:
            superseded_by = (*superseded_by, other.public_id)
        formers = (
            Former(
                id=former.public_id,
                text=former.text,
                held_from=to_datetime(former.held_from),
                held_until=to_datetime(former.held_until),
            )
            for former in self.formers.get(row_id, ())
        )
        return {
            "held_until": optional_datetime(held_until), "superseded_by": superseded_by, "supersedes": tuple(formers),
            "contradicts": contradicts,
        }  # fmt: skip


def load_hits(
    answer: Answer, records: Mapping[int, Found], replaced: Replaced, gaps: tuple[str, ...], request: Request
) -> list[Hit]:
    """The hits of one query with their records; records that are gone by now are left out."""
    hits, plain = [], not any(replaced)
    named, after, epoch = _REASONS[request.profile.importance_weight > 0], timedelta, EPOCH
    for row_id, score, confidence, reasons, values, successor in zip(*answer[:6], strict=True):
        record = records.get(row_id)
        if record is None:
            continue
        valid_from, valid_until = record.valid_from, record.valid_until
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
                **({} if plain and successor < 0 else replaced.fields(row_id, records.get(successor))),
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


def in_time_order(hits: Sequence[Hit]) -> list[Hit]:
    """Hits by the time of what they tell, at one moment by source and position."""

    def order(hit: Hit) -> tuple[datetime, str, int, str]:
        source = hit.source
        position = -1 if source is None or source.position is None else source.position
        return hit.valid_from or hit.created_at, "" if source is None else source.id, position, hit.id

    return sorted(hits, key=order)


def _source(record: Found) -> SourceRef:
    assert record.source is not None
    path, lines = record.metadata.get("path"), record.metadata.get("lines")
    span = None
    if isinstance(lines, list) and len(lines) == 2 and all(type(line) is int for line in lines):
        span = (lines[0], lines[1])
    path = path if isinstance(path, str) else None
    return SourceRef(id=record.source, position=record.position, path=path, lines=span)
