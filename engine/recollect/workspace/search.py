"""A search of a workspace: strategy -> threshold -> age -> diversity -> the caller's own -> the best, with snippets."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from recollect.checks import check_count, check_finite, check_name, check_query, check_unit, now_us, shown
from recollect.errors import InvalidInput
from recollect.records import Plain
from recollect.workspace.postprocessors import apply_own, check_postprocessor, diversify, fade, reach
from recollect.workspace.rules import age_days, age_source, source_label
from recollect.workspace.snippets import cut_snippet
from recollect.workspace.strategies import BUILT_IN, Found, RawSearchRow, ask_strategy, check_strategy, find

if TYPE_CHECKING:
    from recollect.engine import Engine
    from recollect.workspace.config import HybridConfig, QueryConfig, WorkspaceConfig

__all__ = [
    "MIN_CONFIDENCE",
    "MIN_SCORE",
    "Choices",
    "Extensions",
    "Finish",
    "SearchResult",
    "SearchResults",
    "choose",
    "finish_here",
    "search",
]

MIN_SCORE = 0.35
"""The threshold of memweave, for rows that have no confidence."""
MIN_CONFIDENCE = {"hybrid": 0.3, "vector": 0.04, "keyword": 0.02}
"""The threshold unless one is given, by what the confidence is from."""

Finish = Callable[[Any], Any]
"""Waits for what foreign code returned, where that is awaitable."""


class SearchResult(Plain, frozen=True, kw_only=True):
    """A chunk of a file that answers, with its lines from 1.

    `snippet` is the part of the chunk that is shown, which begins in line `snippet_line`; `text` is all of it.
    `source` is the file's label. `score` is after all stages; `vector_score` is the cosine and `text_score` BM25 as a
    share of the best chunk's, None where there was no such search. `confidence` is how likely the chunk answers, and
    compares across queries; None for a strategy of the caller's.
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

    `problems` say what could not be searched, such as meaning. `dropped` counts what was found and did not reach the
    threshold, `best_dropped` is the best of it; where nothing did, `evidence_gaps` says so.
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
        """The query, the results and what is said of them, of values that JSON has."""
        beside = {name: getattr(self, name) for name in sorted(self.__slots__)}
        said: dict[str, Any] = msgspec.json.decode(msgspec.json.encode({"results": list(self), **beside}))
        return said

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return msgspec.json.encode(self.to_dict()).decode()


class Extensions:
    """Strategies and post-processors of the caller's, and how what they return is waited for."""

    def __init__(self) -> None:
        self.strategies: dict[str, Any] = {}
        self.postprocessors: list[Any] = []
        self.finish: Finish = finish_here

    def add_strategy(self, name: str, strategy: object) -> None:
        """Register a strategy, in place of one of the same name. Raises InvalidInput for what is none."""
        self.strategies[check_strategy(name, strategy)] = strategy

    def add_postprocessor(self, processor: object) -> None:
        """Register a post-processor, behind the others. Raises InvalidInput for what is none."""
        self.postprocessors.append(check_postprocessor(processor))


class Choices(Struct, frozen=True):
    """What one search does: the arguments of its call, checked, and the configuration's where they are None.

    `min_score` and `min_confidence` are both None where the threshold is Recollect's own. `mmr_lambda` and
    `half_life_days` are None where results are not diversified, or do not age.
    """

    strategy: str
    max_results: int
    min_score: float | None
    min_confidence: float | None
    hybrid: HybridConfig
    source_filter: str | None
    mmr_lambda: float | None
    half_life_days: float | None
    snippet_max_chars: int
    options: dict[str, Any]


def choose(
    config: QueryConfig,
    *,
    max_results: int | None = None,
    min_score: float | None = None,
    min_confidence: float | None = None,
    strategy: str | None = None,
    source_filter: str | None = None,
    vector_weight: float | None = None,
    text_weight: float | None = None,
    candidate_multiplier: int | None = None,
    mmr_lambda: float | None = None,
    temporal_decay: bool | None = None,
    decay_half_life_days: float | None = None,
    snippet_max_chars: int | None = None,
    **options: Any,
) -> Choices:
    """What the arguments of a call ask for. Raises InvalidInput, which names the one that is wrong."""
    balance = config.mmr.lambda_param if config.mmr.enabled else None
    if min_score is None and min_confidence is None:
        min_score, min_confidence = config.min_score, config.min_confidence
    return Choices(
        strategy=config.strategy if strategy is None else check_name(strategy, "strategy"),
        max_results=check_count(config.max_results if max_results is None else max_results, "max_results"),
        min_score=None if min_score is None else check_unit(min_score, "min_score"),
        min_confidence=None if min_confidence is None else check_unit(min_confidence, "min_confidence"),
        hybrid=_weights(config.hybrid, vector_weight, text_weight, candidate_multiplier),
        source_filter=None if source_filter is None else check_name(source_filter, "source_filter"),
        mmr_lambda=balance if mmr_lambda is None else check_unit(mmr_lambda, "mmr_lambda"),
        half_life_days=_half_life(config, temporal_decay, decay_half_life_days),
        snippet_max_chars=check_count(
            config.snippet_max_chars if snippet_max_chars is None else snippet_max_chars, "snippet_max_chars"
        ),
        options=options,
    )


def _weights(
    config: HybridConfig, vector_weight: float | None, text_weight: float | None, candidate_multiplier: int | None
) -> HybridConfig:
    """The shares of a call: one that is given alone leaves the other the rest."""
    vector = None if vector_weight is None else check_unit(vector_weight, "vector_weight")
    text = None if text_weight is None else check_unit(text_weight, "text_weight")
    if vector is not None and text is not None and abs(vector + text - 1.0) > 1e-6:
        raise InvalidInput(
            f"vector_weight {vector:g} and text_weight {text:g} sum to {vector + text:g}: they sum to 1, one is enough"
        )
    if vector is None:
        vector = config.vector_weight if text is None else 1.0 - text
    most = config.candidate_multiplier
    if candidate_multiplier is not None:
        most = check_count(candidate_multiplier, "candidate_multiplier")
    return structs.replace(config, vector_weight=vector, text_weight=1.0 - vector, candidate_multiplier=most)


def _half_life(config: QueryConfig, temporal_decay: bool | None, half_life_days: float | None) -> float | None:
    """In how many days scores halve; None where they do not."""
    if temporal_decay is not None and not isinstance(temporal_decay, bool):
        raise InvalidInput(f"temporal_decay is {shown(temporal_decay)}: True, False, or None for the configuration's")
    if half_life_days is not None and check_finite(half_life_days, "decay_half_life_days") <= 0:
        raise InvalidInput(
            f"decay_half_life_days is {shown(half_life_days)}: give days above 0, or temporal_decay=False"
        )
    if temporal_decay is False:
        return None
    if half_life_days is not None:
        return float(half_life_days)
    on = config.temporal_decay.enabled if temporal_decay is None else temporal_decay
    return config.temporal_decay.half_life_days if on else None


def search(engine: Engine, config: WorkspaceConfig, own: Extensions, query: object, choices: Choices) -> SearchResults:
    """The chunks that answer a query, best first.

    Raises InvalidInput for an unknown strategy or option, and EmbedderError where the strategy is "vector" and the
    query cannot be embedded.
    """
    text = check_query(query)
    if choices.options and not own.postprocessors:
        raise InvalidInput(
            f"search has no option {shown(next(iter(choices.options)))}, and there is no post-processor to take it"
        )
    found = _found(engine, own, text, choices)
    min_score, min_confidence = _threshold(choices, found)
    rows = reach(found.rows, min_score, partial(_least, choices, found, min_confidence))
    kept = {row.chunk_id for row in rows}
    dropped = [row for row in found.rows if row.chunk_id not in kept]
    if choices.half_life_days is not None:
        rows = fade(rows, _ages(engine, config, rows), choices.half_life_days)
    if choices.mmr_lambda is not None:
        rows = diversify(rows, choices.mmr_lambda)
    passed = {
        "min_score": min_score, "min_confidence": min_confidence, "mmr_lambda": choices.mmr_lambda,
        "decay_half_life_days": choices.half_life_days, **choices.options,
    }  # fmt: skip
    rows = apply_own(rows, text, own.postprocessors, own.finish, passed)
    results = [_result(row, text, choices.snippet_max_chars) for row in rows[: choices.max_results]]
    problems = found.problems
    if not found.rows and choices.source_filter is not None:
        problems += _no_such_label(engine, choices.source_filter)
    gaps: tuple[str, ...] = ()
    best = _best(dropped)
    if best is not None and not kept:
        gaps = (_nothing_reached(len(dropped), best, min_score, min_confidence),)
    return SearchResults(
        results, query=text, strategy=choices.strategy, problems=problems, evidence_gaps=gaps, dropped=len(dropped),
        best_dropped=None if best is None else _result(best, text, choices.snippet_max_chars),
    )  # fmt: skip


def _threshold(choices: Choices, found: Found) -> tuple[float, float]:
    """The least score and the least confidence."""
    if choices.min_score is not None or choices.min_confidence is not None:
        return choices.min_score or 0.0, choices.min_confidence or 0.0
    if found.evidence is None:
        return MIN_SCORE, 0.0
    return 0.0, MIN_CONFIDENCE[found.evidence]


def _least(choices: Choices, found: Found, min_confidence: float, row: RawSearchRow) -> float:
    """The least confidence of a row: one that waits for its vector has that of its words."""
    if choices.min_confidence is None and found.evidence == "hybrid" and row.vector_score is None:
        return min(min_confidence, MIN_CONFIDENCE["keyword"])
    return min_confidence


def _best(rows: Sequence[RawSearchRow]) -> RawSearchRow | None:
    return max(rows, key=lambda row: (row.confidence or 0.0, row.score), default=None)


def _nothing_reached(count: int, best: RawSearchRow, min_score: float, min_confidence: float) -> str:
    """That a threshold dropped everything, and what the best was."""
    wanted = [f"{name} {least:.2f}" for name, least in (("score", min_score), ("confidence", min_confidence)) if least]
    has = f"score {best.score:.2f}" + ("" if best.confidence is None else f", confidence {best.confidence:.2f}")
    return (
        f"{count:,} passages were found and none reaches {' and '.join(wanted)}; the best is "
        f"{best.path}:{best.start_line} ({has}). min_score=0 shows them"
    )


def finish_here(given: Any) -> Any:
    """What an awaitable gives, run to its end in this thread, or in one of its own where this one has a running loop;
    anything else as it is.
    """
    if not inspect.isawaitable(given):
        return given

    async def wait() -> Any:
        return await given

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, wait()).result()


def _found(engine: Engine, own: Extensions, query: str, choices: Choices) -> Found:
    name, source = choices.strategy, choices.source_filter
    limit = choices.max_results * choices.hybrid.candidate_multiplier
    if name in own.strategies:
        return ask_strategy(engine, name, own.strategies[name], query, limit, source, own.finish)
    if name not in BUILT_IN:
        known = ", ".join((*BUILT_IN, *own.strategies))
        raise InvalidInput(f"strategy is {shown(name)}: use one of {known}, or register_strategy first")
    return find(engine, name, query, limit, choices.hybrid, source)


def _no_such_label(engine: Engine, label: str) -> tuple[str, ...]:
    """That no file has a label, and which there are."""
    with engine.store.read() as reader:
        labels = {source_label(path) for path in reader.documents.find_many("/")}
    if label in labels:
        return ()
    there = ", ".join(sorted(labels)) or "none yet"
    return (f"no file has the label {shown(label)}; there are: {there}",)


def _ages(engine: Engine, config: WorkspaceConfig, rows: Sequence[RawSearchRow]) -> list[float | None]:
    """How old the file of each row is, in days; None for one that does not age or is not in the index."""
    mtimes: dict[str, int | None] = {}
    with engine.store.read() as reader:
        for path in {row.path for row in rows}:
            document = reader.documents.find("/", path)
            mtimes[path] = None if document is None else document.mtime_ns
    now = now_us()
    return [_age(config, row.path, mtimes[row.path], now) for row in rows]


def _age(config: WorkspaceConfig, path: str, mtime_ns: int | None, now: int) -> float | None:
    if mtime_ns is None and age_source(path, config.evergreen) == "mtime":
        return None
    return age_days(path, mtime_ns or 0, patterns=config.evergreen, timezone=config.timezone, now=now)


def _result(row: RawSearchRow, query: str, max_chars: int) -> SearchResult:
    snippet = cut_snippet(row.text, query, max_chars)
    return SearchResult(
        path=row.path, start_line=row.start_line, end_line=row.end_line, score=row.score, snippet=snippet.text,
        source=row.source, vector_score=row.vector_score, text_score=row.text_score, text=row.text,
        headings=row.headings, id=row.chunk_id, snippet_line=row.start_line + snippet.line, confidence=row.confidence,
    )  # fmt: skip
