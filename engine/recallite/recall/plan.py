"""What a recall asks the kernel, and its answers: a view of the index under a filter, a plan, and the hits as columns.

The view is the store at one commit. The plan is a profile's numbers, its forest and its weights of confidence.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct, structs

from recallite.index.lexical import K1, B
from recallite.index.memory_index import MemoryIndex, met_conditions, view_of
from recallite.index.table import RowFilter
from recallite.index.vectors import ALIKE, shortlist_size
from recallite.model.settings import DEFAULT, Profile
from recallite.recall.confidence import (
    BY_COHORT,
    Missing,
    evidence_weights,
    find_gaps,
    is_fitted_for,
    join_gaps,
    least_before,
    least_confidence,
    load_calibration,
)
from recallite.recall.order import choose, mmr_pool
from recallite.recall.query import Queries, QuestionArrays, check_comparable, question_arrays
from recallite.recall.request import Answer, Request, Trace
from recallite.system.numerics import kernels
from recallite.system.parallel import run_tasks, threads
from recallite.text.standing import is_request

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.engine import Engine
    from recallite.model.filters import Versions
    from recallite.store.transaction import Reader

SIGNALS = kernels.SIGNALS
# The signals that a hit shows; the others are intermediate.
SHOWN = tuple(name for name in SIGNALS._fields if name not in ("similarity", "spread_gain", "linked"))


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
    # The row ids of the records that were fetched, by public id.
    row_ids: dict[str, int]

    def under(self, request: Request) -> Opened:
        """The same commit under another filter."""
        view, _ = _view_under(self.memory_index, self.reader, request)
        return self._replace(view=view)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.memory_index.lock.release_reading()


def open_view(
    engine: Engine, reader: Reader, queries: Queries, request: Request, row_ids: dict[str, int] | None = None
) -> Opened:
    """The index at this read transaction's commit, under the request's filter."""
    index = engine.index_within("/" if request.filter.shared else request.filter.base)
    index.hold(reader)
    try:
        check_comparable(queries, index.embedder, engine.store.path)
        view, superseded = _view_under(index, reader, request)
    except BaseException:
        index.lock.release_reading()
        raise
    name = None if index.embedder is None else index.embedder.name if queries.cohort is None else BY_COHORT
    return Opened(reader, index, view, name, superseded, {} if row_ids is None else row_ids)


def _view_under(index: MemoryIndex, reader: Reader, request: Request) -> tuple[kernels.View, bool]:
    """The view of a filter, made once until the index changes or a record expires; and whether any is superseded."""
    filter_, (expires, superseded) = request.filter, index.cached("lifetimes", None, index.table.lifetimes)
    expired = len(index.table.expired_rows(request.clock)) if expires else 0
    lapsed, succeeded = _lapsed(index, reader, request.clock, filter_.valid_at) if superseded else _NOTHING_LAPSED
    grouped = request.one_per_source or request.diversify_by is not None
    with_standing = request.profile.standing_instructions > 0 and not grouped

    def make() -> kernels.View:
        kinds = () if filter_.sessions else index.table.kinds_of_memories
        mask = _select_rows(index, reader, request, lapsed, kinds)
        standing, chains = _NO_ROWS, _NO_CHAINS
        if with_standing:
            standing = index.table.standing_rows
            if mask is not None:
                standing = standing[mask[standing] == 1]
        if request.about_past and superseded:
            chains = index.cached("chains", None, partial(_chains, index, reader))
        statistics = index.corpus_statistics(_statistics_scopes(reader, request), kinds)
        return view_of(index, mask, statistics, standing, chains)

    key = filter_, with_standing, expired, succeeded, request.about_past, request.profile.superseded
    return index.cached("view", key, make), superseded


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
    index: MemoryIndex, reader: Reader, request: Request, lapsed: NDArray[np.int64], kinds: tuple[str, ...]
) -> NDArray[np.uint8] | None:
    """The mask of the rows that the request's filter admits at the index's commit; None for all.

    `kinds` are those of a request that names none.
    """
    filter_ = request.filter
    condition_mask, rest = None, filter_.unindexed if filter_.tags or filter_.where is not None else None
    if rest is not None:
        versions: Versions = "open" if filter_.as_of is None else "any"
        condition_mask = index.cached(
            "conditions", (rest, versions), lambda: met_conditions(index, reader, rest, request.now, versions)
        )
    hidden: NDArray[np.int64] | None = None
    if not sees_superseded(request):
        known_at, valid_at = filter_.as_of, filter_.valid_at
        hidden = index.table.ended_rows(known_at, valid_at)
        if len(hidden) and len(lapsed):
            hidden = hidden[np.isin(hidden, lapsed, invert=True, kind="table")]
        if known_at is not None:
            moment = known_at if valid_at is None else valid_at
            undone = index.rows(("undone", known_at, moment), partial(reader.supersessions.undone, known_at, moment))
            hidden = np.union1d(hidden, undone) if len(undone) else hidden
    visible = RowFilter(
        now=request.now,
        hidden=hidden if hidden is not None and len(hidden) else None,
        as_of=filter_.as_of,
        scopes=tuple(reader.scopes.within(filter_.scopes)) if filter_.scopes else None,
        kinds=filter_.kinds or kinds,
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


# The plan of a request.

# With 0 only 3.5 % of the records without a source reach the top 20 when half of a store's sessions lose theirs.
_LONE_SHARE = 0.8
# How much of a neighbour's activation arrives: from one place away, and from two.
_NEAR, _FAR = 1.0, 0.7
# Shares of the strongest neighbour's score, and of the three best of the source.
_NEIGHBOR_SHARE, _SOURCE_SHARE = 0.4, 0.5
# How many of the best candidates make their neighbours candidates too.
_EXPANDED = 100
# Hits that are spread are chosen among this many times the limit.
_SPREAD_POOL = 8
NO_LIMIT = 2**31
# A least confidence that every candidate has.
_ANY = 1e-12
NO_TREES = kernels.Forest(np.empty((0, 1), np.uint8), np.empty((0, 1)), np.empty((0, 2)))
_CLOCK, _PARAMETERS = kernels.RankParameters._fields.index("clock"), kernels.Plan._fields.index("parameters")
# Named tuples from tuples: `_replace` takes 5 microseconds for both.
_as_parameters, _as_plan = partial(tuple.__new__, kernels.RankParameters), partial(tuple.__new__, kernels.Plan)


class PlanKey(NamedTuple):
    """The parts of a plan that are not in the profile.

    - by_vector, by_tokens: whether the questions have vectors, and token codes
    - visible: how many vectors the filter admits, `ALIKE` for fewer; factor: how many times as many vectors as rows are
      looked at
    - widening: how many times as many candidates as usual
    """

    by_vector: bool
    by_tokens: bool
    by_words: bool
    embedder: str | None
    visible: int
    factor: int
    limit: int
    grouped: bool
    diversify_by: bool
    about_past: bool
    shared: bool
    widening: int = 1


def plan_key(opened: Opened, queries: Queries, request: Request, *, shared: bool) -> PlanKey:
    """The parts of the plan that questions, their request and a view of the index decide."""
    vectors, count = opened.view.vectors, len(opened.view.vectors.scales)
    # The parts of one record may fill the list.
    factor = 1 if count <= len(opened.view.terms.lengths) else 4
    return PlanKey(
        queries.vectors is not None and request.profile.vector_weight > 0 and count > 0, queries.tokens is not None,
        request.mode != "vector", opened.embedder_name, max(vectors.visible, ALIKE), factor, request.limit,
        request.one_per_source, request.diversify_by is not None, request.about_past, shared,
    )  # fmt: skip


def candidates_per_signal(profile: Profile, limit: int, *, spread: bool) -> int:
    """The number of candidates by each signal."""
    multiplier = profile.formula.candidate_multiplier
    return max(profile.candidates, limit * (max(multiplier, _SPREAD_POOL) if spread else multiplier))


@lru_cache(maxsize=128)
def plan_of(profile: Profile, key: PlanKey) -> kernels.Plan:
    """The plan; its clock is 0: see `with_clock`."""
    ranking = load_ranking() if key.by_tokens and profile.ranks_by_forest else None
    if ranking is not None and key.embedder not in ranking.embedders:
        ranking = None
    exhaustive = profile.formula.composition == "weighted_sum" and profile.fusion == "weighted"
    least = profile.min_score if profile.min_score > 0 else -np.inf
    diverse = profile.mmr_lambda is not None and not key.diversify_by
    pool = mmr_pool(key.limit) if diverse else key.limit
    wanted = key.widening * candidates_per_signal(profile, key.limit, spread=key.diversify_by)
    # Candidates below it are dropped before hits are compared with the cohort, or read.
    least_weighed = least_before(profile.min_confidence)
    if key.embedder == BY_COHORT and least_weighed > 0:
        least_weighed = _ANY
    top = wanted if profile.min_confidence > 0 or key.diversify_by else pool
    by_words = key.by_words and (profile.keyword_weight > 0 or profile.formula.keyword_fallback)
    return kernels.Plan(
        by_vector=int(key.by_vector), by_words=int(by_words), wanted=wanted,
        shortlist=shortlist_size(key.visible, wanted * key.factor), measured=profile.rescore_depth,
        exact=int(exhaustive or profile.formula.exact_rescore), exhaustive=int(exhaustive), top=top,
        depth=0 if ranking is None else DEPTH, changes=0 if profile.superseded == "as_ranked" else DEPTH,
        marked=int(key.about_past), omit=int(profile.superseded == "omit" and not key.about_past),
        grouped=int(key.grouped and not diverse), least=least,
        least_of=SIGNALS.score if profile.formula.min_score_of == "score" else SIGNALS.spread,
        least_confidence=least_weighed,
        ranked=int(profile.fusion == "rrf" and profile.formula.composition == "product"), shared=int(key.shared),
        limit=NO_LIMIT if key.diversify_by or (diverse and key.grouped) else pool,
        final=key.limit, k1=K1, b=B,
        standing=0 if key.grouped or key.diversify_by else profile.standing_instructions,
        parameters=_rank_parameters(profile), forest=NO_TREES if ranking is None else ranking.forest,
        weights=evidence_weights(key.embedder),
    )  # fmt: skip


def with_clock(plan: kernels.Plan, clock_us: int) -> kernels.Plan:
    """The plan at a moment that ages are measured from."""
    parameters = plan.parameters
    timed = _as_parameters((*parameters[:_CLOCK], clock_us, *parameters[_CLOCK + 1 :]))
    return _as_plan((*plan[:_PARAMETERS], timed, *plan[_PARAMETERS + 1 :]))


@lru_cache(maxsize=16)
def _rank_parameters(profile: Profile) -> kernels.RankParameters:
    """The options of the same name, except those below; the clock is 0."""
    same = {
        name: getattr(part, name)
        for part in (profile, profile.formula)
        for name in kernels.RankParameters._fields
        if hasattr(part, name)
    }
    changed = {
        "rrf_k": profile.formula.rrf_k if profile.fusion == "rrf" else -1.0, "clock": 0,
        "expansion_depth": _EXPANDED if profile.neighbor_boost > 0 else 0, "near": _NEAR, "far": _FAR,
        "neighbor_weight": profile.neighbor_boost * _NEIGHBOR_SHARE,
        "source_weight": profile.neighbor_boost * _SOURCE_SHARE, "lone_share": _LONE_SHARE,
        "half_life_days": profile.half_life_days or np.inf,
        "decay_floor": profile.decay_floor if profile.half_life_days else 0.0,
        "exponential": int(profile.formula.decay == "exp"), "keyword_fallback": int(profile.formula.keyword_fallback),
        "weighted_sum": int(profile.formula.composition == "weighted_sum"),
    }  # fmt: skip
    return kernels.check_parameters(kernels.RankParameters(**{**same, **changed}))


# Learned ranking: a forest of small trees puts the best candidates of the formula in a new order.
#
# The forest was trained with LambdaMART (Burges, 2010) by `benchmarks.training.ranking` on questions with the turns
# that answer them. More of a signal never lowers a candidate, so that it holds on data that it has not seen. Age,
# importance and dates, of which it was shown nothing, count beside it. The scores of the formula stay, and go to the
# candidates in their new order: a score means what it meant, at its place, and the candidates below the best keep
# theirs.
#
# A feature describes a candidate by its signals, alone or beside the best of its query: `recallite_kernels.signals` has
# the definition. None describes the query alone, a place in a source, or an age: a forest that had them fell apart on
# data that it had not seen. To add a feature, name it there and in `FEATURES`, and train again.

# With the best 100 in a new order LoCoMo and RealMem lost 0.01 of recall@20; the first ranks gained as much.
DEPTH = 20
RANKING_FILE = Path(__file__).with_name("learned_ranking.npy")
FEATURES = {
    "cosine": "semantic", "cosine_gap": "semantic", "bm25": "keyword", "bm25_share": "keyword", "coverage": "keyword",
    "speaker": "speaker", "speaker_gap": "speaker", "rerank": "rerank", "rerank_gap": "rerank", "fused": "score",
    "fused_gap": "score", "gain": "session", "gain_gap": "session", "linked": "link", "spread": "score",
    "spread_gap": "score",
}  # fmt: skip
"""The match reason that each feature is part of, "score" for several; more of a feature speaks for a candidate."""


class LearnedRanking(Struct, frozen=True):
    """The forest, and float64 (trees, nodes) the mean output of the training candidates that reach each node."""

    forest: kernels.Forest
    values: NDArray[np.float64]
    embedders: frozenset[str]


@cache
def load_ranking() -> LearnedRanking | None:
    """The ranking that ships; None where it was learned with other features than this version has."""
    manifest = msgspec.json.decode(RANKING_FILE.with_suffix(".json").read_bytes(), type=dict[str, Any])
    if manifest["features"] != list(FEATURES):
        return None
    trees = np.load(RANKING_FILE)  # a row a tree; an archive would import 7 ms of zipfile
    thresholds, leaves, values = (trees[name].astype(np.float64) for name in ("thresholds", "leaves", "values"))
    forest = kernels.Forest(np.ascontiguousarray(trees["nodes"]), thresholds, leaves)
    kernels.check_forest(forest, len(FEATURES))
    return LearnedRanking(forest, values, frozenset(manifest["embedders"]))


def contributions(ranking: LearnedRanking, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """The part of each feature in each candidate's output, against the mean of these: float64 (features, candidates).

    A feature has the change of the mean output at every node that asks for it on the candidate's way down (Saabas,
    2014). A candidate's contributions add up to its output less the mean output of these.
    """
    forest = ranking.forest
    of_tree, candidates = np.arange(len(forest.nodes))[:, None], np.arange(features.shape[1])
    values = np.concatenate([ranking.values, forest.leaves], axis=1)
    added: NDArray[np.float64] = np.zeros(features.shape)
    node = np.zeros((len(forest.nodes), len(candidates)), dtype=np.int64)
    for _ in range(forest.nodes.shape[1].bit_length()):
        feature = forest.nodes[of_tree, node]
        below = 2 * node + 1 + (features[feature, candidates] > forest.thresholds[of_tree, node])
        change = values[of_tree, below] - values[of_tree, node]
        np.add.at(added, (feature, np.broadcast_to(candidates, feature.shape)), change)
        node = below
    added -= added.mean(axis=1, keepdims=True)
    return added


# The kernel: called for some questions, and the hits that it found as columns.

# Questions that go through the kernel together: with more, their buffers leave the second-level cache.
_GROUP = 32
_SHOWN_COLUMNS, _COSINE = np.array([getattr(SIGNALS, name) for name in SHOWN]), SHOWN.index("cosine")
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
# The least cosine of a standing record that joins the hits of what is no request. What bears on a question is near it,
# and most of it ranks by itself; the kernel also brings what bears on a request. In a store of advice in the
# imperative, 15 questions about its facts brought 23 pieces of it, up to .27 near, and 12 that advice answers had that
# first by itself and brought others, up to .33. RealMem, development part: recall@10 is .515 instead of .504 from .25
# on, recall@20 .651 instead of .647 from .3 on.
_BEARING_COSINE = 0.35
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
        return _answer(opened, queries, request, key, question_arrays(opened, queries, request, key.by_vector))
    groups = [queries.part(start, start + size) for start in range(0, count, size)]
    tasks = [
        partial(_answer, opened, group, request, key, question_arrays(opened, group, request, key.by_vector))
        for group in groups
    ]
    return [answer for answers in run_tasks(tasks) for answer in answers]


def _answer(
    opened: Opened, queries: Queries, request: Request, key: PlanKey, questions: QuestionArrays
) -> list[Answer]:  # fmt: skip
    plan = with_clock(plan_of(request.profile, key), request.clock)
    hits, work = call(opened.view, plan, questions)
    if opened.memory_index.waiting and plan.changes:
        best = work.order[: min(plan.changes, hits.figures[0, _CANDIDATES])]
        if opened.memory_index.read_waiting_frames(opened.reader, work.rows[best]):
            hits, work = call(opened.view, plan, questions)
    if queries.cohort is not None:
        weigh_by_cohort(opened, queries, request, hits, shared=bool(plan.shared))
    answers = _read(opened, queries.texts, request, plan, questions, hits, work)
    for i, figure in enumerate(hits.figures[: len(answers)].tolist()):
        if figure[_MORE] and figure[_AVAILABLE] < request.limit:
            again = queries if key.shared else queries.part(i, i + 1)
            wider = key._replace(widening=4 * key.widening)
            arrays = questions if key.shared else question_arrays(opened, again, request, key.by_vector)
            (answers[i],) = _answer(opened, again, request, wider, arrays)
    return answers


def weigh_by_cohort(
    opened: Opened, queries: Queries, request: Request, hits: kernels.Hits, *, shared: bool
) -> None:  # fmt: skip
    """Add to the confidence of hits what their cosines say beside those of the cohort."""
    if queries.cohort is None or queries.vectors is None:
        return
    weight = load_calibration().cohort["meaning" if request.mode == "vector" else "vectors"]["normalised"]
    for i, vector in enumerate(queries.vectors):
        figure = hits.figures[0 if shared else i]
        count = int(figure[_HITS] + figure[_BROUGHT])
        texts = vectors_of(opened.view.vectors, hits.rows[0 if shared else i, :count], vector)
        added = weight * queries.cohort.normalised(vector, texts) * texts.any(axis=1)
        sure = hits.confidence[i, :count]
        hits.confidence[i, :count] = sure / (sure + (1 - sure) * np.exp(-added))
        hits.sure[i] = max(hits.confidence[i, : int(figure[_HITS])], default=-1.0)


def vectors_of(vectors: kernels.Vectors, rows: NDArray[np.int64], question: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors of rows of an index, of each the part nearest to a question; zeros for a row without one."""
    found = np.zeros((len(rows), len(question)), np.float32)
    for place, row in enumerate(rows.tolist()):
        if len(vectors.first_place):
            first, count = int(vectors.first_place[row]), int(vectors.parts[row])
        else:
            first, count = row, int(row < len(vectors.codes))
        if count:
            part = slice(first, first + count)
            of_row = vectors.codes[part].astype(np.float32) * vectors.scales[part, None]
            found[place] = of_row[int((of_row @ question).argmax())]
    return found


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
        fields, picked = [*map(itemgetter(i), columns)], None
        standing = _bearing(texts[i], range(count, count + brought), fields[-2]) if brought else ()
        if plan.limit != plan.final or request.diversify_by is not None:
            picked = choose(opened, request, hits, i, count)
            if standing:  # it picks among more than the kernel takes for hits: nothing comes twice
                row_ids = fields[0]
                found = {row_ids[rank] for rank in picked[: plan.final - len(standing)]}
                standing = [rank for rank in standing if row_ids[rank] not in found]
                again = {row_ids[rank] for rank in standing}
                picked = [rank for rank in picked if row_ids[rank] not in again]
        brought = len(standing)
        if plan.shared:
            fields[2][:count] = hits.confidence[:, :count].max(axis=0).tolist()
        shown = min(count if picked is None else len(picked), plan.final - brought)
        if picked is None and not brought:
            fields = [*map(itemgetter(slice(shown)), fields)]
        else:
            ranks = [*(range(shown) if picked is None else picked[:shown]), *standing]
            fields = [[*map(column.__getitem__, ranks)] for column in fields]
            lowest = fields[1][shown - 1] if shown else 1.0
            fields[1][shown:] = [min(score, lowest) for score in fields[1][shown:]]
        trace: Trace | None = None
        if request.explain:
            m = figure[_CANDIDATES]
            best_of = 1 + np.argmax(work.pool[1 : len(texts), SIGNALS.score, :m], axis=0) if plan.shared else None
            trace = Trace(
                work.rows[:m].copy(), work.table[:, :m].copy(), work.order[:m].copy(), work.formula[:m].copy(),
                work.features[:, : min(plan.depth, m)].copy(), work.evidence.copy(), best_of,
            )  # fmt: skip
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


def _bearing(question: str, ranks: Sequence[int], signals: Sequence[Sequence[float]]) -> Sequence[int]:
    """The ranks of standing records that bear on a question: of all that the kernel brings what is near, if it is none
    that asks for something to be done.
    """
    near = [rank for rank in ranks if signals[rank][_COSINE] >= _BEARING_COSINE]
    return near if len(near) == len(ranks) or not is_request(question) else ranks


def _closing_confidence(profile: Profile, opened: Opened, plan: kernels.Plan) -> float:
    """The confidence from which a hit closes the gap: one that a caller gives is taken as it is."""
    if profile.rerank_weight > 0 or profile.gap_confidence != DEFAULT.gap_confidence:
        return profile.gap_confidence
    signals = ("words", "vectors")[plan.by_vector]
    if plan.by_vector and profile.formula.gap_score is not None and not is_fitted_for(opened.embedder_name):
        return math.inf  # its score alone closes it
    return least_confidence(profile.gap_confidence, opened.embedder_name, signals, int(opened.view.terms.records))
