"""Strategies: hybrid, vector and keyword search, and registered ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from recallite.engine import Engine
from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput
from recallite.model.records import Hit
from recallite.recall.pipeline import recall_queries
from recallite.recall.query import query_words
from recallite.recall.request import MAX_LIMIT, build_request
from recallite.store.values import CHUNK_KIND
from recallite.system.messages import shown
from recallite.system.numerics import kernel_errors
from recallite.text.index_terms import tokenize
from recallite.text.stopwords import STOP_TERMS
from recallite_notes.config import HybridConfig
from recallite_notes.rules import source_label

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
    if strategy == "vector":
        _require_embedder(engine, query)
    try:
        return _recalled(engine, strategy, query, limit, weights, source_filter)
    except EmbedderMismatch as reason:
        if strategy == "vector":
            raise
        answer = _recalled(engine, "keyword", query, limit, weights, source_filter)
        return answer._replace(problems=(f"meaning was not searched: {reason}",))


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
            model = engine.embedder.identity(queries_first=True).name
            vector = engine.embedder.queries([query])[0].vector.tolist()
        except EmbedderError as reason:
            problems = (f"the query was not embedded: {reason}",)
    with engine.store.read() as reader:
        returned = finish(strategy.search(reader.sql(), query, vector, model, limit, source_filter=source_filter))
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
    for place, row in enumerate(rows):
        if not isinstance(row, RawSearchRow):
            raise InvalidInput(f"{who} gave {shown(row)} as row {place}: it gives RawSearchRow")
        for name in ("score", "vector_score", "text_score", "confidence"):
            value = getattr(row, name)
            if not _is_finite(value) and (value is not None or name == "score"):
                raise InvalidInput(f"{who} gave row {place} the {name} {shown(value)}: give a finite number")
        if not all(isinstance(field, str) for field in (row.path, row.source, row.text, row.chunk_id)):
            raise InvalidInput(f"{who} gave row {place} of {shown(row.path)}: path, source, text and chunk_id are str")
        lines = (row.start_line, row.end_line)
        if not all(type(line) is int for line in lines) or not 1 <= row.start_line <= row.end_line <= _MAX_LINE:
            raise InvalidInput(
                f"{who} gave row {place} of {shown(row.path)} the lines {shown(lines)}: start_line and end_line are "
                "int, from 1 and in this order"
            )
        if not isinstance(row.headings, tuple) or not all(isinstance(heading, str) for heading in row.headings):
            raise InvalidInput(
                f"{who} gave row {place} of {shown(row.path)} the headings {shown(row.headings)}: give a tuple of str"
            )
    return rows


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _require_embedder(engine: Engine, query: str) -> None:
    """Raise EmbedderError if the query cannot be embedded; recall does not try while the store has no vectors."""
    engine.check_embedder(engine.active_embedder(), queries_first=True)
    engine.embedder.queries([query])


def _recalled(
    engine: Engine, strategy: str, query: str, limit: int, weights: HybridConfig, source_filter: str | None
) -> StrategyAnswer:
    shares: dict[str, Any] = {"vector_weight": weights.vector_weight, "keyword_weight": weights.text_weight}
    if strategy != "hybrid":
        shares = {}
    request = build_request(
        "/", "default", mode=strategy, limit=min(limit, MAX_LIMIT), kinds=[CHUNK_KIND],
        tags=None if source_filter is None else [source_filter],
        profile={"name": "memweave", "candidate_multiplier": 1, "min_score": 0.0, "gap_confidence": 0.0, **shares},
    )  # fmt: skip
    with kernel_errors():
        (hits,) = recall_queries(engine, [query], None, request)
    problems = tuple(hits.evidence_gaps)
    by_meaning = strategy == "vector" or (strategy == "hybrid" and weights.vector_weight > 0 and not problems)
    if by_meaning and engine.active_embedder() is None:
        by_meaning = False
        problems = ("meaning was not searched: nothing is embedded yet",) if engine.embedder.enabled and hits else ()
    best = max((hit.signals["bm25"] for hit in hits), default=0.0)
    rows = [_row(hit, strategy, hit.signals["cosine"] if by_meaning else None, best, weights) for hit in hits]
    has_words = any(word not in STOP_TERMS for word in query_words(query))
    if not has_words and strategy != "vector":
        rows = [_of_stop_words(row, weights.text_weight if by_meaning else 1.0) for row in rows]
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


def _of_stop_words(row: RawSearchRow, text_weight: float) -> RawSearchRow:
    """A row of a query of stop words only, which are no evidence."""
    text = row.text_score or 0.0
    weight = text_weight if row.vector_score is not None else 1.0
    share = _STOP_WORDS_SHARE * text
    return replace(row, score=max(row.score - weight * (text - share), 0.0), text_score=share)


def _with_keyword_floor(rows: Sequence[RawSearchRow], query: str) -> list[RawSearchRow]:
    """Rows with every word of the query score as keyword hits at least, whatever their cosine."""
    words = set(query_words(query))
    raised = []
    for row in rows:
        least = _ALL_WORDS * (row.text_score or 0.0)
        if words and row.score < least and words <= set(tokenize(" ".join((*row.headings, row.text)))):
            row = replace(row, score=least)
        raised.append(row)
    return raised
