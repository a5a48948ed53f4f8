"""A search of a workspace: strategy -> threshold -> age -> diversity -> the caller's own -> the best, with snippets."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from recollect.checks import check_count, check_finite, check_name, check_query, check_unit, now_us, shown
from recollect.errors import InvalidInput
from recollect.store import documents
from recollect.workspace.postprocessors import apply_own, check_postprocessor, diversify, fade, reach
from recollect.workspace.rules import age_days, age_source, source_label
from recollect.workspace.snippets import cut_snippet
from recollect.workspace.strategies import BUILT_IN, Found, RawSearchRow, ask_strategy, check_strategy, find

if TYPE_CHECKING:
    from recollect.engine import Engine
    from recollect.workspace.config import MemoryConfig, QueryConfig

__all__ = ["Choices", "Extensions", "Finish", "SearchResult", "SearchResults", "choose", "finish_here", "search"]

Finish = Callable[[Any], Any]
"""Waits for what foreign code returned, where that is awaitable."""


class SearchResult(Struct, frozen=True, kw_only=True):
    """A chunk of a file that answers, with its lines from 1.

    `snippet` is the part of the chunk that is shown, which begins in line `snippet_line`; `text` is all of it.
    `source` is the file's label. `score` is after all stages; `vector_score` is the cosine and `text_score` BM25 as a
    share of the best chunk's, None where there was no such search.
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


class SearchResults(list[SearchResult]):
    """The results of one search, best first. `problems` say what could not be searched, such as meaning."""

    __slots__ = ("problems", "query", "strategy")

    def __init__(
        self,
        results: Iterable[SearchResult] = (),
        *,
        query: str = "",
        strategy: str = "hybrid",
        problems: tuple[str, ...] = (),
    ) -> None:
        super().__init__(results)
        self.query, self.strategy, self.problems = query, strategy, problems


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

    `mmr_lambda` and `half_life_days` are None where results are not diversified, or do not age.
    """

    strategy: str
    max_results: int
    min_score: float
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
    strategy: str | None = None,
    source_filter: str | None = None,
    mmr_lambda: float | None = None,
    decay_half_life_days: float | None = None,
    snippet_max_chars: int | None = None,
    **options: Any,
) -> Choices:
    """What the arguments of a call ask for. Raises InvalidInput, which names the one that is wrong."""
    balance = config.mmr.lambda_param if config.mmr.enabled else None
    half_life = config.temporal_decay.half_life_days if config.temporal_decay.enabled else None
    if decay_half_life_days is not None:
        half_life = check_finite(decay_half_life_days, "decay_half_life_days")
        if half_life <= 0:
            raise InvalidInput(f"decay_half_life_days is {shown(decay_half_life_days)}: give days above 0")
    return Choices(
        strategy=config.strategy if strategy is None else check_name(strategy, "strategy"),
        max_results=check_count(config.max_results if max_results is None else max_results, "max_results"),
        min_score=check_unit(config.min_score if min_score is None else min_score, "min_score"),
        source_filter=None if source_filter is None else check_name(source_filter, "source_filter"),
        mmr_lambda=balance if mmr_lambda is None else check_unit(mmr_lambda, "mmr_lambda"),
        half_life_days=half_life,
        snippet_max_chars=check_count(
            config.snippet_max_chars if snippet_max_chars is None else snippet_max_chars, "snippet_max_chars"
        ),
        options=options,
    )


def search(engine: Engine, config: MemoryConfig, own: Extensions, query: object, choices: Choices) -> SearchResults:
    """The chunks that answer a query, best first.

    Raises InvalidInput for an unknown strategy or option, and EmbedderError where the strategy is "vector" and the
    query cannot be embedded.
    """
    text = check_query(query)
    if choices.options and not own.postprocessors:
        raise InvalidInput(
            f"search has no option {shown(next(iter(choices.options)))}, and there is no post-processor to take it"
        )
    found = _found(engine, config, own, text, choices)
    rows = reach(found.rows, choices.min_score)
    if choices.half_life_days is not None:
        rows = fade(rows, _ages(engine, config, rows), choices.half_life_days)
    if choices.mmr_lambda is not None:
        rows = diversify(rows, choices.mmr_lambda)
    passed = {
        "min_score": choices.min_score, "mmr_lambda": choices.mmr_lambda,
        "decay_half_life_days": choices.half_life_days, **choices.options,
    }  # fmt: skip
    rows = apply_own(rows, text, own.postprocessors, own.finish, passed)
    results = [_result(row, text, choices.snippet_max_chars) for row in rows[: choices.max_results]]
    problems = found.problems
    if not found.rows and choices.source_filter is not None:
        problems += _no_such_label(engine, choices.source_filter)
    return SearchResults(results, query=text, strategy=choices.strategy, problems=problems)


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


def _found(engine: Engine, config: MemoryConfig, own: Extensions, query: str, choices: Choices) -> Found:
    name, source = choices.strategy, choices.source_filter
    limit = choices.max_results * config.query.hybrid.candidate_multiplier
    if name in own.strategies:
        return ask_strategy(engine, name, own.strategies[name], query, limit, source, own.finish)
    if name not in BUILT_IN:
        known = ", ".join((*BUILT_IN, *own.strategies))
        raise InvalidInput(f"strategy is {shown(name)}: use one of {known}, or register_strategy first")
    return find(engine, name, query, limit, config.query.hybrid, source)


def _no_such_label(engine: Engine, label: str) -> tuple[str, ...]:
    """That no file has a label, and which there are."""
    with engine.store.read() as connection:
        labels = {source_label(path) for path in documents.find_many(connection, "/")}
    if label in labels:
        return ()
    there = ", ".join(sorted(labels)) or "none yet"
    return (f"no file has the label {shown(label)}; there are: {there}",)


def _ages(engine: Engine, config: MemoryConfig, rows: Sequence[RawSearchRow]) -> list[float | None]:
    """How old the file of each row is, in days; None for one that does not age or is not in the index."""
    mtimes: dict[str, int | None] = {}
    with engine.store.read() as connection:
        for path in {row.path for row in rows}:
            document = documents.find(connection, "/", path)
            mtimes[path] = None if document is None else document.mtime_ns
    now = now_us()
    return [_age(config, row.path, mtimes[row.path], now) for row in rows]


def _age(config: MemoryConfig, path: str, mtime_ns: int | None, now: int) -> float | None:
    if mtime_ns is None and age_source(path, config.evergreen) == "mtime":
        return None
    return age_days(path, mtime_ns or 0, patterns=config.evergreen, timezone=config.timezone, now=now)


def _result(row: RawSearchRow, query: str, max_chars: int) -> SearchResult:
    snippet = cut_snippet(row.text, query, max_chars)
    return SearchResult(
        path=row.path, start_line=row.start_line, end_line=row.end_line, score=row.score, snippet=snippet.text,
        source=row.source, vector_score=row.vector_score, text_score=row.text_score, text=row.text,
        headings=row.headings, id=row.chunk_id, snippet_line=row.start_line + snippet.line,
    )  # fmt: skip
