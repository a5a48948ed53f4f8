"""Search of a workspace: strategy -> threshold -> decay -> MMR -> registered post-processors -> snippets."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
from msgspec import structs

from recallite.engine import Engine
from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput
from recallite.model.checks import check_query, now_us
from recallite.model.configuration import Section, declared
from recallite.model.filters import CHUNK_KIND
from recallite.model.records import Hit, Plain
from recallite.model.settings import Profile
from recallite.recall.confidence import is_fitted_for, least_confidence, passage_weights
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import ANSWER_SHARE, MAX_LIMIT, Request, build_request
from recallite.recall.snippets import cut_snippet
from recallite.store.transaction import Reader
from recallite.system.messages import shown
from recallite.system.numerics import kernel_errors, kernels
from recallite.text.questions import read_question
from recallite.text.words import STOP_TERMS, tokenize
from recallite_documents.markdown_sections import cited_headings
from recallite_notes.config import HybridConfig, QueryConfig, WorkspaceConfig
from recallite_notes.note_files import age_days, source_label

MIN_SCORE = 0.35
"""memweave's threshold, for rows without a confidence and for an embedder that it was not fitted on."""
MIN_CONFIDENCE = Profile().gap_confidence
"""The default threshold: what keeps 95 % of right answers, whatever the strategy; of a small index it is higher."""
# A passage of at least this share of the threshold is weak, but may answer.
_WEAK_SHARE, _MOST_WEAK = 1 / 3, 3


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
    `weak` are the best of those that are near it, at most three; `evidence_gaps` says so if all were below.
    """

    __slots__ = ("dropped", "evidence_gaps", "problems", "query", "strategy", "weak")

    def __init__(
        self,
        results: Iterable[SearchResult] = (),
        *,
        query: str = "",
        strategy: str = "hybrid",
        problems: tuple[str, ...] = (),
        evidence_gaps: tuple[str, ...] = (),
        dropped: int = 0,
        weak: Sequence[SearchResult] = (),
    ) -> None:
        super().__init__(results)
        self.query, self.strategy, self.problems = query, strategy, problems
        self.evidence_gaps, self.dropped, self.weak = evidence_gaps, dropped, tuple(weak)

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
    min_score, min_confidence, share = _threshold(engine, settings, answer)
    least = max(min_confidence, share * max((row.confidence or 0.0 for row in answer.rows), default=0.0))
    mmr_lambda = settings.mmr.lambda_param if settings.mmr.enabled else None
    decay = settings.temporal_decay
    half_life_days = decay.half_life_days if decay.enabled and decay.half_life_days else None
    rows = [row for row in answer.rows if _reaches(row, min_score, least)]
    passing_ids = {row.chunk_id for row in rows}
    dropped = [row for row in answer.rows if row.chunk_id not in passing_ids]
    if half_life_days is not None and rows:
        ages = np.array([age or 0.0 for age in _ages(engine, config, rows)])  # a row without an age keeps its score
        with kernel_errors():
            weights = kernels.decay(ages, half_life_days).tolist()
        rows = [replace(row, score=row.score * weight) for row, weight in zip(rows, weights, strict=True)]
        rows.sort(key=lambda row: -row.score)
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
        with engine.store.read() as reader:
            labels = {source_label(config.as_memory(path)) for path in reader.documents.find_many("/")}
        if source_filter not in labels:
            problem = (
                f"no file has the label {shown(source_filter)}; there are: {', '.join(sorted(labels)) or 'none yet'}"
            )
            problems += (problem,)
    gaps: tuple[str, ...] = ()
    dropped.sort(key=lambda row: (-(row.confidence or 0.0), -row.score))
    weak = [row for row in dropped if _reaches(row, _WEAK_SHARE * min_score, _WEAK_SHARE * min_confidence)]
    if dropped and not passing_ids:
        gaps = (_nothing_reached(len(dropped), dropped[0], min_score, min_confidence),)
    return SearchResults(
        results, query=text, strategy=settings.strategy, problems=problems, evidence_gaps=gaps, dropped=len(dropped),
        weak=[_result(row, text, settings.snippet_max_chars) for row in weak[:_MOST_WEAK]],
    )  # fmt: skip


def _threshold(engine: Engine, settings: QueryConfig, answer: StrategyAnswer) -> tuple[float, float, float]:
    """The least score, the least confidence, and the least share of the best confidence."""
    if settings.min_score is not None or settings.min_confidence is not None:
        return settings.min_score or 0.0, settings.min_confidence or 0.0, 0.0
    active = None if answer.evidence in (None, "keyword") else engine.active_embedder()
    embedder = None if active is None else active.name
    if answer.evidence is None or not is_fitted_for(embedder):
        return MIN_SCORE, 0.0, 0.0
    signals = {"keyword": "words", "vector": "meaning"}.get(answer.evidence, "vectors")
    if passage_weights(embedder, signals) is not None:
        return 0.0, MIN_CONFIDENCE, ANSWER_SHARE
    return 0.0, least_confidence(MIN_CONFIDENCE, embedder, signals, answer.chunks), ANSWER_SHARE


def _reaches(row: RawSearchRow, score: float, confidence: float) -> bool:
    return row.score >= score and (row.confidence is None or row.confidence >= confidence)


def _nothing_reached(count: int, best: RawSearchRow, min_score: float, min_confidence: float) -> str:
    least = {"score": min_score, "confidence": min_confidence}
    minima = " and ".join(f"{name} {value:.2f}" for name, value in least.items() if value)
    has = f"score {best.score:.2f}" + ("" if best.confidence is None else f", confidence {best.confidence:.2f}")
    return (
        f"{count:,} passages were found and none reaches {minima}; the best is "
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


def _ages(engine: Engine, config: WorkspaceConfig, rows: Sequence[RawSearchRow]) -> list[float | None]:
    """The age in days of each row's file; None for one that does not age or is not in the index."""
    mtimes: dict[str, int | None] = {}
    with engine.store.read() as reader:
        for path in {row.path for row in rows}:
            document = reader.documents.find("/", path)
            mtimes[path] = None if document is None else document.mtime_ns
    now = now_us()
    return [
        age_days(
            row.path, mtimes[row.path], patterns=config.evergreen, as_memory=config.as_memory(row.path),
            timezone=config.timezone, now=now,
        )
        for row in rows
    ]  # fmt: skip


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
    return [rows[i] for i in order.tolist()]


def _result(row: RawSearchRow, query: str, max_chars: int) -> SearchResult:
    snippet = cut_snippet(row.text, query, max_chars)
    # The columns of a table stand above the rows of each passage.
    repeated = max(row.text.count("\n") - (row.end_line - row.start_line), 0)
    snippet_line = row.start_line + max(snippet.line - repeated, 0)
    return SearchResult(
        path=row.path, start_line=row.start_line, end_line=row.end_line, score=row.score, snippet=snippet.text,
        source=row.source, vector_score=row.vector_score, text_score=row.text_score, text=row.text,
        headings=cited_headings(row.text, row.headings, query), id=row.chunk_id, snippet_line=snippet_line,
        confidence=row.confidence,
    )  # fmt: skip


# The setting that an argument replaces: its section of QueryConfig ("" is itself), and its name there.
_SETTINGS = {
    "vector_weight": ("hybrid", "vector_weight"),
    "text_weight": ("hybrid", "text_weight"),
    "candidate_multiplier": ("hybrid", "candidate_multiplier"),
    "mmr_lambda": ("mmr", "lambda_param"),
    "temporal_decay": ("temporal_decay", "enabled"),
    "decay_half_life_days": ("temporal_decay", "half_life_days"),
}


def query_settings(config: QueryConfig, **arguments: object) -> QueryConfig:
    """The settings of a call; what is None is the configuration's. InvalidInput names the argument that is wrong."""
    changes: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for argument, value in arguments.items():
        if value is not None:
            section, name = _SETTINGS.get(argument, ("", argument))
            owner: Section = getattr(config, section) if section else config
            changes[section][name] = declared(type(owner))[name].check(value, argument)
    top, hybrid, decay = changes.pop("", {}), changes["hybrid"], changes["temporal_decay"]
    if not top.keys().isdisjoint(("min_score", "min_confidence")):
        top = {"min_score": None, "min_confidence": None, **top}
    for one, other in (("vector_weight", "text_weight"), ("text_weight", "vector_weight")):
        if one in hybrid:
            hybrid.setdefault(other, 1.0 - hybrid[one])
    if changes["mmr"]:
        changes["mmr"]["enabled"] = True
    if decay:
        decay.setdefault("enabled", True)
    sections = {name: structs.replace(getattr(config, name), **values) for name, values in changes.items()}
    return structs.replace(config, **top, **sections)


BUILT_IN = ("hybrid", "vector", "keyword")
# Least share of BM25 in the score of a chunk with every word of the query, whatever its cosine. Unrelated cosines are
# around 0 to 0.1, so 0.3 of BM25 alone would not reach memweave's threshold of 0.35: no error code would be found.
_ALL_WORDS = 0.4
# Stop words are in nearly every chunk, so a match of them alone is hardly an answer.
_STOP_WORDS_SHARE = 0.3
_MAX_LINE = 2**31


@dataclass(frozen=True, slots=True)
class RawSearchRow:
    """A chunk that a strategy found, before post-processing; change a copy with `dataclasses.replace`.

    `chunk_id` is the chunk's id in the index, `score` any finite number (built-in strategies: 0 to 1), `source` the
    file's label; lines count from 1. `vector_score` is the cosine and `text_score` BM25 as a share of the best chunk's,
    each None without such a search. `confidence` is how likely the chunk answers, from 0 to 1, or None if unknown.
    """

    chunk_id: str
    path: str
    source: str
    start_line: int
    end_line: int
    text: str
    score: float
    vector_score: float | None = None
    text_score: float | None = None
    headings: tuple[str, ...] = ()
    confidence: float | None = None


class StrategyAnswer(NamedTuple):
    """The rows of a strategy, best first, and its problems. `evidence` is the built-in strategy that the confidence of
    the rows is from ("keyword" for a hybrid search without vectors), None for a registered strategy; `chunks` are those
    of the index.
    """

    rows: list[RawSearchRow]
    problems: tuple[str, ...] = ()
    evidence: str | None = None
    chunks: int = 0


def find(
    engine: Engine, strategy: str, query: str, limit: int, weights: HybridConfig, source_filter: str | None
) -> StrategyAnswer:
    """The rows of a built-in strategy, filtered by label during the scan.

    - "hybrid": `vector_weight` of the cosine plus `text_weight` of BM25. If nothing can be embedded, BM25 alone, and
      `problems` says why. A chunk with every word of the query scores at least 0.4 of its BM25.
    - "vector": the cosine. Raises EmbedderError if the query cannot be embedded.
    - "keyword": BM25 as a share of the best.

    For a query of stop words only, BM25 is multiplied by 0.3.
    """
    if strategy == "vector":  # recall does not try to embed while the store has no vectors
        engine.check_embedder(engine.active_embedder())
        engine.embedder.queries([query])
    try:
        return _recalled(engine, strategy, query, limit, weights, source_filter)
    except EmbedderMismatch as reason:
        if strategy == "vector":
            raise
        answer = _recalled(engine, "keyword", query, limit, weights, source_filter)
        return answer._replace(problems=(f"meaning was not searched: {reason}",))


class Rows:
    """The rows of a statement, to be iterated, awaited or entered, as aiosqlite's cursor; nothing waits for them."""

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Sequence[Any]]:
        return self._rows

    def __await__(self) -> Generator[None, None, Self]:
        yield from ()
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        pass

    async def __aiter__(self) -> AsyncIterator[Sequence[Any]]:
        for row in self._rows:
            yield row

    async def fetchone(self) -> Sequence[Any] | None:
        """The next row; None after the last."""
        return next(self._rows, None)

    async def fetchall(self) -> list[Sequence[Any]]:
        """All rows that are left."""
        return [*self._rows]


class ReadOnlySql:
    """SQL for the custom strategies of a workspace, inside a read transaction."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def execute(self, statement: str, bindings: Any = ()) -> Rows:
        """Run a statement; returns its rows as tuples, to be read once."""
        return Rows(self._reader.sql(statement, bindings))


def ask_strategy(
    engine: Engine,
    name: str,
    strategy: Any,
    query: str,
    limit: int,
    source_filter: str | None,
    finish: Callable[[Any], Any],
) -> StrategyAnswer:
    """The checked rows of a registered strategy, best first; `finish` waits for an awaitable.

    Raises InvalidInput for rows of another label than `source_filter`.
    """
    vector, model = None, "none"
    problems: tuple[str, ...] = ()
    if engine.embedder.enabled:
        try:
            model = engine.embedder.identity().name
            vector = engine.embedder.queries([query])[0].vector.tolist()
        except EmbedderError as reason:
            problems = (f"the query was not embedded: {reason}",)
    with engine.store.read() as reader:
        returned = finish(
            strategy.search(ReadOnlySql(reader), query, vector, model, limit, source_filter=source_filter)
        )
    rows = check_rows(returned, f"the strategy {name!r}")
    for row in rows:
        if source_filter is not None and row.source != source_filter:
            raise InvalidInput(
                f"the strategy {name!r} gave a row of {row.source!r}, not of {source_filter!r}: {row.path}"
            )
    return StrategyAnswer(sorted(rows, key=lambda row: -row.score), problems)


def check_strategy(name: object, strategy: object) -> str:
    """The name under which a strategy is registered. Raises InvalidInput."""
    if not isinstance(name, str) or not name.strip() or name in BUILT_IN:
        raise InvalidInput(f"strategy name {shown(name)}: give a name that is none of {', '.join(BUILT_IN)}")
    if isinstance(strategy, type) or not callable(getattr(strategy, "search", None)):
        raise InvalidInput(
            f"the strategy {name!r} is {shown(strategy)}: give an object with "
            "search(db, query, query_vec, model, limit, *, source_filter=None)"
        )
    return name


def check_rows(returned: object, who: str) -> list[RawSearchRow]:
    """The rows that an extension returned. InvalidInput names it if they are wrong."""
    if isinstance(returned, str | bytes | dict) or not isinstance(returned, Iterable):
        raise InvalidInput(f"{who} gave {shown(returned)}: it gives a list of RawSearchRow")
    rows = list(returned)
    for i, row in enumerate(rows):
        if not isinstance(row, RawSearchRow):
            raise InvalidInput(f"{who} gave {shown(row)} as row {i}: it gives RawSearchRow")
        for name in ("score", "vector_score", "text_score", "confidence"):
            value = getattr(row, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (is_number and abs(value) <= sys.float_info.max) and (value is not None or name == "score"):
                raise InvalidInput(f"{who} gave row {i} the {name} {shown(value)}: give a finite number")
        if not all(isinstance(field, str) for field in (row.path, row.source, row.text, row.chunk_id)):
            raise InvalidInput(f"{who} gave row {i} of {shown(row.path)}: path, source, text and chunk_id are str")
        lines = (row.start_line, row.end_line)
        if not all(type(line) is int for line in lines) or not 1 <= row.start_line <= row.end_line <= _MAX_LINE:
            raise InvalidInput(
                f"{who} gave row {i} of {shown(row.path)} the lines {shown(lines)}: start_line and end_line are "
                "int, from 1 and in this order"
            )
        if not isinstance(row.headings, tuple) or not all(isinstance(heading, str) for heading in row.headings):
            raise InvalidInput(
                f"{who} gave row {i} of {shown(row.path)} the headings {shown(row.headings)}: give a tuple of str"
            )
    return rows


def _request(strategy: str, limit: int, weights: HybridConfig, source_filter: str | None) -> Request:
    shares: dict[str, Any] = {"vector_weight": weights.vector_weight, "keyword_weight": weights.text_weight}
    if strategy != "hybrid":
        shares = {}
    return build_request(
        "/", "default", mode=strategy,  # type: ignore[arg-type]
        limit=min(limit, MAX_LIMIT), kinds=[CHUNK_KIND],
        tags=None if source_filter is None else [source_filter],
        profile={"name": "memweave", "candidate_multiplier": 1, "min_score": 0.0, "gap_confidence": 0.0, **shares},
    )  # fmt: skip


def _recalled(
    engine: Engine, strategy: str, query: str, limit: int, weights: HybridConfig, source_filter: str | None
) -> StrategyAnswer:
    request = _request(strategy, limit, weights, source_filter)
    with kernel_errors():
        (hits,) = recall_queries(engine, [query], None, request)
    problems = tuple(hits.evidence_gaps)
    by_meaning = strategy == "vector" or (strategy == "hybrid" and weights.vector_weight > 0 and not problems)
    if by_meaning and engine.active_embedder() is None:
        by_meaning = False
        problems = ("meaning was not searched: nothing is embedded yet",) if engine.embedder.enabled and hits else ()
    best = max((hit.signals["bm25"] for hit in hits), default=0.0)
    rows = [_row(hit, strategy, hit.signals["cosine"] if by_meaning else None, best, weights) for hit in hits]
    has_words = any(word not in STOP_TERMS for word in read_question(query).words)
    if not has_words and strategy != "vector":  # stop words are no evidence
        for i, row in enumerate(rows):
            text = row.text_score or 0.0
            weight = weights.text_weight if by_meaning and row.vector_score is not None else 1.0
            share = _STOP_WORDS_SHARE * text
            rows[i] = replace(row, score=max(row.score - weight * (text - share), 0.0), text_score=share)
    elif strategy == "hybrid" and by_meaning and weights.text_weight > 0:
        rows = _with_keyword_floor(rows, query)
    rows.sort(key=lambda row: -row.score)
    chunks = engine.index.corpus_statistics(None).records
    return StrategyAnswer(rows, problems, strategy if by_meaning else "keyword", chunks)


def _row(hit: Hit, strategy: str, cosine: float | None, best_bm25: float, weights: HybridConfig) -> RawSearchRow:
    source = hit.source
    assert source is not None
    if strategy == "vector":
        text = None
    elif hit.signals["bm25"] <= 0:  # no word in common: the rest of the score is rounding
        text = 0.0
    elif cosine is None or weights.text_weight == 0:
        text = hit.score if cosine is None else 0.0
    elif cosine == 0:
        # The chunk has no vector yet and BM25 is its whole score; or the cosine is 0.
        text = hit.signals["bm25"] / best_bm25 if best_bm25 > 0 else 0.0
    else:
        text = min(max((hit.score - weights.vector_weight * cosine) / weights.text_weight, 0.0), 1.0)
    lines = hit.metadata.get("lines") or [1, 1]
    headings = hit.metadata.get("headings") or ()
    return RawSearchRow(
        chunk_id=hit.id, path=source.id, source=hit.tags[0] if hit.tags else source_label(source.id),
        start_line=lines[0], end_line=lines[1], text=hit.text, score=hit.score,
        vector_score=cosine or None, text_score=text, headings=tuple(headings), confidence=hit.confidence,
    )  # fmt: skip


def _with_keyword_floor(rows: Sequence[RawSearchRow], query: str) -> list[RawSearchRow]:
    """Rows with every word of the query score as keyword hits at least, whatever their cosine."""
    words = set(read_question(query).words)
    raised = []
    for row in rows:
        least = _ALL_WORDS * (row.text_score or 0.0)
        if words and row.score < least and words <= set(tokenize(" ".join((*row.headings, row.text)))):
            row = replace(row, score=least)
        raised.append(row)
    return raised
