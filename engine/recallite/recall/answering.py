"""The kernel of a recall called for some questions, and the hits that it found as columns."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import structs

from recallite.index.vectors import shortlist_size
from recallite.model.settings import DEFAULT
from recallite.recall.asking import AskedQuestions, ask
from recallite.recall.confidence import is_fitted_for, least_confidence
from recallite.recall.evidence_gaps import Missing, find_gaps, join_gaps
from recallite.recall.plan import SIGNALS, Wanted, at, plan_of, wanted_of
from recallite.recall.select import choose
from recallite.system.numerics import kernels
from recallite.system.parallel import run_tasks, threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.model.settings import Profile
    from recallite.recall.query import Queries
    from recallite.recall.request import Request
    from recallite.recall.view import Opened

# Questions that go through the kernel together: with more, their buffers leave the second-level cache.
_GROUP = 32
# The signals that a hit shows; the others are intermediate.
SHOWN = tuple(name for name in SIGNALS._fields if name not in ("similarity", "spread_gain", "linked"))
_SHOWN_COLUMNS = np.array([getattr(SIGNALS, name) for name in SHOWN])
_HITS, _BROUGHT, _CANDIDATES, _AVAILABLE, _MORE = kernels.FIGURES
_WIDER = (1, 4, 16, 64)
_KEPT = 4
_READ = 10
# With room for fewer rows that a weighted sum brings, all would be measured twice.
_REACHED = 4096
_memories = threading.local()


class Trace(NamedTuple):
    """Every candidate of a question, by place: rows, signals float64 (signals, candidates), places in order, and the
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

    `signals` are those of `SHOWN`; successors are row ids, -1 for none. `missing` is what gaps are found by, None for
    one that was decomposed, which has its gaps.
    """

    keys: list[int]
    scores: list[float]
    confidence: list[float]
    reasons: list[int]
    signals: list[list[float]]
    successors: list[int]
    brought: int
    gaps: tuple[str, ...]
    trace: Trace | None = None
    missing: Missing | None = None


def answer_all(opened: Opened, queries: Queries, request: Request, *, decomposed: bool = False) -> list[Answer]:
    """The answer to every question, or to one that is decomposed; groups run side by side.

    Where hits need a least confidence there may be more of them than the limit: their texts may lower that of some.
    """
    profile = request.profile
    plain = profile.mmr_lambda is None and not request.one_per_source and request.diversify_by is None
    if plain and profile.min_confidence > 0 and request.limit < _READ:
        request = structs.replace(request, limit=_READ)
    count = len(queries.texts)
    size = count if decomposed else max(1, min(_GROUP, -(-count // threads())))
    if (request.explain or opened.memory_index.waiting) and not decomposed:
        size = 1
    wanted = wanted_of(
        request, opened.view, opened.embedder_name, by_vector=queries.vectors is not None,
        by_tokens=queries.tokens is not None, shared=decomposed,
    )  # fmt: skip
    if count <= size:
        return _answer(opened, queries, request, wanted, _asked(opened, queries, request, wanted))
    groups = [queries.part(start, start + size) for start in range(0, count, size)]
    tasks = [
        partial(_answer, opened, group, request, wanted, _asked(opened, group, request, wanted)) for group in groups
    ]
    return [answer for group in run_tasks(tasks) for answer in group]


def _asked(opened: Opened, queries: Queries, request: Request, wanted: Wanted) -> AskedQuestions:
    return ask(opened.reader, opened.memory_index.generation, queries, request, wanted.by_vector)


def _answer(
    opened: Opened, queries: Queries, request: Request, wanted: Wanted, questions: AskedQuestions
) -> list[Answer]:  # fmt: skip
    plan = at(plan_of(request.profile, wanted), request.clock)
    hits, work = call(opened.view, plan, questions)
    if opened.memory_index.waiting and plan.changes:
        best = work.order[: min(plan.changes, hits.figures[0, _CANDIDATES])]
        if opened.memory_index.read_waiting_frames(opened.reader, work.rows[best]):
            hits, work = call(opened.view, plan, questions)
    answers = _read(opened, queries.texts, request, plan, questions, hits, work)
    figures = hits.figures.tolist()
    if not any(figure[_MORE] and figure[_AVAILABLE] < request.limit for figure in figures[: len(answers)]):
        return answers
    for place, figure in enumerate(figures[: len(answers)]):
        if figure[_MORE] and figure[_AVAILABLE] < request.limit:
            again = queries if wanted.shared else queries.part(place, place + 1)
            more = wanted._replace(wanted=4 * wanted.wanted)
            again_asked = questions if wanted.shared else _asked(opened, again, request, more)
            (answers[place],) = _answer(opened, again, request, more, again_asked)
    return answers


def call(view: kernels.View, plan: kernels.Plan, batch: AskedQuestions) -> tuple[kernels.Hits, kernels.Workspace]:
    """The hits of some questions, and the memory in which they were found; both last until this thread calls again."""
    asking, room, wider = batch.asking, _room(view, plan), 0
    questions, words = len(asking.counting), len(asking.shares)
    while True:
        work, hits = _memory(view, plan, questions, words, batch, room)
        status = kernels.recall(view, plan, asking, work, hits, checked=True)
        if status == kernels.DONE:
            return hits, work
        if status == kernels.ROOM:
            room = max(room, int(work.needed[0]))
        else:
            wider += 1
            size = shortlist_size(view.vectors.visible, plan.wanted * 4**wider)
            plan = plan._replace(shortlist=max(4 * plan.shortlist, size) if wider > len(_WIDER) else size)


def _room(view: kernels.View, plan: kernels.Plan) -> int:
    """Room for rows within reach of a score, or for the neighbours of the best: a link is in the lists of both ends."""
    if plan.exhaustive:
        return _REACHED
    links, rows = len(view.graph.targets), max(len(view.terms.lengths), 1)
    return (4 + 2 * links // rows) * min(plan.parameters.expansion_depth, 2 * min(plan.wanted, rows))


def _memory(
    view: kernels.View, plan: kernels.Plan, questions: int, words: int, batch: AskedQuestions, room: int
) -> tuple[kernels.Workspace, kernels.Hits]:
    """The memory of this thread, made again where it does not fit."""
    longest, tokens, words = (
        -(-batch.longest // 16) * 16,
        -(-batch.tokens // 64) * 64,
        -(-words // 16) * 16,
    )
    rows, visible = len(view.terms.lengths), view.vectors.visible
    if visible > kernels.SCAN_ALL:  # above it `workspace` makes the same
        visible = min(visible, plan.shortlist + kernels.SCAN_ALL)
    key = (
        questions, longest, tokens, words, room, min(rows, plan.wanted), len(view.terms.segments),
        view.vectors.sketches.shape[1], visible, len(view.standing) > 0, plan.by_vector, plan.wanted,
        plan.shortlist, plan.top, plan.depth, plan.changes, plan.least_confidence > 0, plan.shared,
        plan.limit, plan.standing, view.stated.frames.shape[1],
    )  # fmt: skip
    memories: dict[Any, tuple[kernels.Workspace, kernels.Hits]] | None = getattr(_memories, "memory", None)
    if memories is None:
        memories = _memories.memory = {}
    memory = memories.get(key)
    if memory is None:
        while len(memories) >= _KEPT:
            del memories[next(iter(memories))]
        work = kernels.workspace(view, plan, questions, longest, tokens, room)
        memory = memories[key] = work, kernels.hits(plan, work, questions, words, longest)
    elif len(memory[0].scratch) != rows:  # records were added: one array has a place for each, the other eighty stay
        memory = memories[key] = memory[0]._replace(scratch=np.zeros(rows, dtype=np.float32)), memory[1]
    return memory


def _read(
    opened: Opened, texts: Sequence[str], request: Request, plan: kernels.Plan, questions: AskedQuestions,
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
    for place, figure in enumerate(figures[:1] if plan.shared else figures):
        count, brought = figure[_HITS], figure[_BROUGHT]
        fields = [column[place] for column in columns]
        picked = None
        if plan.limit != plan.final or request.diversify_by is not None:
            picked = choose(opened, request, hits, place, count)
        if plan.shared:
            fields[2] = hits.confidence[:, : count + brought].max(axis=0).tolist()
        shown = min(count if picked is None else len(picked), plan.final - brought)
        if picked is not None:
            ranks = [*picked[:shown], *range(count, count + brought)]
            fields = [[column[rank] for rank in ranks] for column in fields]
        elif brought:
            fields = [[*column[:shown], *column[count : count + brought]] for column in fields]
        else:
            fields = [column[:shown] for column in fields]
        trace = _trace(plan, figure[_CANDIDATES], work, len(texts)) if request.explain else None
        missing: Missing | None = None
        best = -1.0 if plan.shared else max(fields[1][:shown], default=0.0)  # sub-questions go by confidence alone
        any_hit = count > 0 if picked is None else bool(picked)
        dates = hits.signals[place, slice(shown) if picked is None else picked[:shown], SIGNALS.date]
        dated = bool((dates > 0).any())
        for query in range(len(texts)) if plan.shared else (place,):
            sure = float(hits.sure[query]) if picked is None else max(hits.confidence[query, picked], default=-1.0)
            if plan.shared and sure >= least:
                gaps.append(())
                continue
            words = slice(bounds[query], bounds[query + 1])
            state = hits.known[words] if picked is None else _state(hits, query, words, picked)
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


def _state(hits: kernels.Hits, query: int, words: slice, ranks: Sequence[int]) -> NDArray[np.uint8]:
    """`Hits.known`, of some hits alone."""
    contained = hits.contained[query, ranks, : words.stop - words.start].any(axis=0)
    return np.minimum(hits.known[words], 1) + contained.astype(np.uint8)


def _trace(plan: kernels.Plan, m: int, work: kernels.Workspace, questions: int) -> Trace:
    best_of = None
    if plan.shared:
        best_of = 1 + np.argmax(work.pool[1:questions, SIGNALS.score, :m], axis=0)
    return Trace(
        work.rows[:m].copy(), work.table[:, :m].copy(), work.order[:m].copy(), work.formula[:m].copy(),
        work.features[:, : min(plan.depth, m)].copy(), work.evidence.copy(), best_of,
    )  # fmt: skip
