"""Search of a workspace: strategy -> threshold -> decay -> MMR -> registered post-processors -> snippets."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model.checks import check_query, now_us
from recallite.model.profiles import Profile
from recallite.model.records import Plain
from recallite.recall.confidence import is_fitted_for, least_confidence
from recallite.recall.snippets import cut_snippet
from recallite.system.messages import shown
from recallite.system.numerics import kernel_errors, kernels
from recallite.text.index_terms import tokenize
from recallite_notes.config import QueryConfig, WorkspaceConfig
from recallite_notes.rules import age_days, source_label
from recallite_notes.strategies import (
    BUILT_IN,
    RawSearchRow,
    StrategyAnswer,
    ask_strategy,
    check_rows,
    check_strategy,
    find,
)

MIN_SCORE = 0.35
"""memweave's threshold, for rows without a confidence and for an embedder that it was not fitted on."""
MIN_CONFIDENCE = Profile().gap_confidence
"""The default threshold: what keeps 95 % of right answers, whatever the strategy; of a small index it is higher."""


class SearchResult(Plain, frozen=True, kw_only=True):
    """A chunk of a file that answers a query; lines count from 1.

    `snippet` is the part of the chunk to show, from line `snippet_line` on; `text` is the whole chunk. `source` is the
    file's label. `score` is that of the last stage. `vector_score` is the cosine and `text_score` BM25 as a share of
    the best chunk's, each None without such a search. `confidence` is how likely the chunk answers the query,
    comparable across queries; None for a registered strategy.
    """

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: str
    vector_score: float | None = None
    text_score: float | None = None
    text: str = ""
    headings: tuple[str, ...] = ()
    id: str = ""
    snippet_line: int = 1
    confidence: float | None = None


class SearchResults(list[SearchResult]):
    """The results of one search, best first.

    `problems` says what could not be searched, such as vectors. `dropped` counts the passages below the threshold and
    `best_dropped` is the best of them; `evidence_gaps` says so if all were below.
    """

    __slots__ = ("best_dropped", "dropped", "evidence_gaps", "problems", "query", "strategy")

    def __init__(
        self,
        results: Iterable[SearchResult] = (),
        *,
        query: str = "",
        strategy: str = "hybrid",
        problems: tuple[str, ...] = (),
        evidence_gaps: tuple[str, ...] = (),
        dropped: int = 0,
        best_dropped: SearchResult | None = None,
    ) -> None:
        super().__init__(results)
        self.query, self.strategy, self.problems = query, strategy, problems
        self.evidence_gaps, self.dropped, self.best_dropped = evidence_gaps, dropped, best_dropped

    def to_dict(self) -> dict[str, Any]:
        """The query, the results and the attributes, as JSON values."""
        beside = {name: getattr(self, name) for name in sorted(self.__slots__)}
        values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode({"results": list(self), **beside}))
        return values

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return msgspec.json.encode(self.to_dict()).decode()


class Extensions:
    """Registered strategies and post-processors, and the event loop of those that are coroutines, if any."""

    def __init__(self) -> None:
        self.strategies: dict[str, Any] = {}
        self.postprocessors: list[Any] = []
        self.loop: asyncio.AbstractEventLoop | None = None

    def add_strategy(self, name: str, strategy: object) -> None:
        """Register a strategy, replacing one of the same name. Raises InvalidInput for what is not one."""
        self.strategies[check_strategy(name, strategy)] = strategy

    def add_postprocessor(self, processor: object) -> None:
        """Register a post-processor, after the others. Raises InvalidInput for what is not one."""
        if isinstance(processor, type) or not callable(getattr(processor, "apply", None)):
            raise InvalidInput(
                f"the post-processor is {shown(processor)}: give an object with apply(rows, query, **kwargs)"
            )
        self.postprocessors.append(processor)

    def finish(self, result: Any) -> Any:
        """The result of an awaitable; anything else as it is.

        It runs on `loop`; without one here or, if this thread has a running loop, in another thread.
        """
        if not inspect.isawaitable(result):
            return result

        async def wait() -> Any:
            return await result

        if self.loop is not None:
            return asyncio.run_coroutine_threadsafe(wait(), self.loop).result()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(wait())
        with ThreadPoolExecutor(1) as aside:
            return aside.submit(asyncio.run, wait()).result()


def search(
    engine: Engine,
    config: WorkspaceConfig,
    extensions: Extensions,
    query: object,
    settings: QueryConfig,
    *,
    source_filter: str | None,
    options: Mapping[str, Any],
) -> SearchResults:
    """The chunks that answer a query, best first.

    Raises InvalidInput for an unknown strategy or option, and EmbedderError if the strategy is "vector" and the
    query cannot be embedded.
    """
    text = check_query(query)
    if options and not extensions.postprocessors:
        raise InvalidInput(
            f"search has no option {shown(next(iter(options)))}, and there is no post-processor to take it"
        )
    answer = _found(engine, extensions, text, settings, source_filter)
    min_score, min_confidence = _threshold(engine, settings, answer)
    mmr_lambda = settings.mmr.lambda_param if settings.mmr.enabled else None
    half_life_days = settings.temporal_decay.half_life_days if settings.temporal_decay.enabled else None
    rows = [row for row in answer.rows if row.score >= min_score and _confident(row, min_confidence)]
    kept_ids = {row.chunk_id for row in rows}
    dropped = [row for row in answer.rows if row.chunk_id not in kept_ids]
    if half_life_days is not None:
        rows = _fade(rows, _ages(engine, config, rows), half_life_days)
    if mmr_lambda is not None:
        rows = _diversify(rows, mmr_lambda)
    passed = {
        "min_score": min_score, "min_confidence": min_confidence, "mmr_lambda": mmr_lambda,
        "decay_half_life_days": half_life_days, **options,
    }  # fmt: skip
    for processor in extensions.postprocessors:
        processed = extensions.finish(processor.apply(rows, text, **passed))
        rows = check_rows(processed, f"the post-processor {type(processor).__name__}")
    results = [_result(row, text, settings.snippet_max_chars) for row in rows[: settings.max_results]]
    problems = answer.problems
    if not answer.rows and source_filter is not None:
        problems += _no_such_label(engine, source_filter)
    gaps: tuple[str, ...] = ()
    best = max(dropped, key=lambda row: (row.confidence or 0.0, row.score), default=None)
    if best is not None and not kept_ids:
        gaps = (_nothing_reached(len(dropped), best, min_score, min_confidence),)
    return SearchResults(
        results, query=text, strategy=settings.strategy, problems=problems, evidence_gaps=gaps, dropped=len(dropped),
        best_dropped=None if best is None else _result(best, text, settings.snippet_max_chars),
    )  # fmt: skip


def _threshold(engine: Engine, settings: QueryConfig, answer: StrategyAnswer) -> tuple[float, float]:
    """The least score and the least confidence."""
    if settings.min_score is not None or settings.min_confidence is not None:
        return settings.min_score or 0.0, settings.min_confidence or 0.0
    active = None if answer.evidence in (None, "keyword") else engine.active_embedder()
    embedder = None if active is None else active.name
    if answer.evidence is None or not is_fitted_for(embedder):
        return MIN_SCORE, 0.0
    signals = {"keyword": "words", "vector": "meaning"}.get(answer.evidence, "vectors")
    return 0.0, least_confidence(MIN_CONFIDENCE, embedder, signals, answer.chunks)


def _confident(row: RawSearchRow, min_confidence: float) -> bool:
    """Whether a row is confident enough, if that is known."""
    return row.confidence is None or row.confidence >= min_confidence


def _nothing_reached(count: int, best: RawSearchRow, min_score: float, min_confidence: float) -> str:
    wanted = [f"{name} {least:.2f}" for name, least in (("score", min_score), ("confidence", min_confidence)) if least]
    has = f"score {best.score:.2f}" + ("" if best.confidence is None else f", confidence {best.confidence:.2f}")
    return (
        f"{count:,} passages were found and none reaches {' and '.join(wanted)}; the best is "
        f"{best.path}:{best.start_line} ({has}). A minimum score of 0 shows them"
    )


def _found(
    engine: Engine, extensions: Extensions, query: str, settings: QueryConfig, source: str | None
) -> StrategyAnswer:
    name, limit = settings.strategy, settings.max_results * settings.hybrid.candidate_multiplier
    if name in extensions.strategies:
        return ask_strategy(engine, name, extensions.strategies[name], query, limit, source, extensions.finish)
    if name not in BUILT_IN:
        known = ", ".join((*BUILT_IN, *extensions.strategies))
        raise InvalidInput(f"strategy is {shown(name)}: use one of {known}, or register_strategy first")
    return find(engine, name, query, limit, settings.hybrid, source)


def _no_such_label(engine: Engine, label: str) -> tuple[str, ...]:
    with engine.store.read() as reader:
        labels = {source_label(path) for path in reader.documents.find_many("/")}
    if label in labels:
        return ()
    there = ", ".join(sorted(labels)) or "none yet"
    return (f"no file has the label {shown(label)}; there are: {there}",)


def _ages(engine: Engine, config: WorkspaceConfig, rows: Sequence[RawSearchRow]) -> list[float | None]:
    """The age in days of each row's file; None for one that does not age or is not in the index."""
    mtimes: dict[str, int | None] = {}
    with engine.store.read() as reader:
        for path in {row.path for row in rows}:
            document = reader.documents.find("/", path)
            mtimes[path] = None if document is None else document.mtime_ns
    now = now_us()
    return [
        age_days(row.path, mtimes[row.path], patterns=config.evergreen, timezone=config.timezone, now=now)
        for row in rows
    ]


def _fade(rows: Sequence[RawSearchRow], ages: Sequence[float | None], half_life_days: float) -> list[RawSearchRow]:
    """Rows with their score times 0.5 ** (age / half-life), best first; one without an age keeps its score."""
    if not rows:
        return []
    with kernel_errors():
        weights = kernels.decay(np.array([age or 0.0 for age in ages]), half_life_days).tolist()
    faded = [replace(row, score=row.score * weight) for row, weight in zip(rows, weights, strict=True)]
    return sorted(faded, key=lambda row: -row.score)


def _diversify(rows: Sequence[RawSearchRow], mmr_lambda: float) -> list[RawSearchRow]:
    """The rows by maximal marginal relevance over the sets of their words (bigrams for CJK)."""
    if len(rows) < 2:
        return list(rows)
    numbers: dict[str, int] = {}
    sets = [np.unique([numbers.setdefault(word, len(numbers)) for word in tokenize(row.text)]) for row in rows]
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    with kernel_errors():
        order = kernels.maximal_marginal_relevance(
            np.array([row.score for row in rows], dtype=np.float64),
            np.concatenate(sets).astype(np.int32), offsets, mmr_lambda, len(rows),
        )  # fmt: skip
    return [rows[place] for place in order.tolist()]


def _result(row: RawSearchRow, query: str, max_chars: int) -> SearchResult:
    snippet = cut_snippet(row.text, query, max_chars)
    # The columns of a table stand above the rows of each passage.
    repeated = max(row.text.count("\n") - (row.end_line - row.start_line), 0)
    snippet_line = row.start_line + max(snippet.line - repeated, 0)
    return SearchResult(
        path=row.path, start_line=row.start_line, end_line=row.end_line, score=row.score, snippet=snippet.text,
        source=row.source, vector_score=row.vector_score, text_score=row.text_score, text=row.text,
        headings=row.headings, id=row.chunk_id, snippet_line=snippet_line, confidence=row.confidence,
    )  # fmt: skip
