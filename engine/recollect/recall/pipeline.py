"""Recall, from queries to hits:

query -> embed -> candidates by vector and keyword -> fuse -> look -> spread -> weigh -> threshold -> diversify -> hits

Many queries go through together, a group at a time: every kernel takes a group, and groups run side by side. A long
question and its parts are a group of their own, which becomes one from the threshold on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter

import numpy as np
from msgspec import structs

from recollect.checks import check_query
from recollect.engine import Engine
from recollect.filters import Filter, Versions
from recollect.index.memory_index import Selection
from recollect.index.query_batch import IndexView
from recollect.index.table import RowFilter
from recollect.parallel import run_tasks, threads
from recollect.recall.answer import Answer, Rows, answer
from recollect.recall.depth import Parts, find_parts
from recollect.recall.hits import build_hits, fit_budget
from recollect.recall.query import Queries, Words, check_comparable, prepare_queries, query_words
from recollect.recall.request import Request
from recollect.records import Hits
from recollect.store.protocol import Reader

__all__ = ["answer_all", "ask_parts", "find_words", "open_view", "recall_queries", "show"]

# Queries that go through the kernels together: with more, their buffers leave the second-level cache.
_GROUP = 32


def recall_queries(
    engine: Engine, queries: Sequence[str], vectors: Sequence[object] | None, request: Request
) -> list[Hits]:
    """The hits of each query. One embedding batch and one read transaction serve them all, but for long questions:
    each of those has its own.
    """
    engine.start_kernels(len(queries))
    if vectors is not None or request.profile.long_query_chars is None:
        return _recall(engine, queries, vectors, request, Parts(()))
    every, split_ms = [], []
    for query in queries:
        started = perf_counter()
        every.append(find_parts(engine, check_query(query), request))
        split_ms.append((perf_counter() - started) * 1e3)
    plain = [place for place, parts in enumerate(every) if parts == Parts(())]
    at_once = _recall(engine, [queries[place] for place in plain], None, request, Parts(())) if plain else []
    found = dict(zip(plain, at_once, strict=True))
    for place, parts in enumerate(every):
        if place not in found:
            (found[place],) = _recall(engine, [queries[place]], None, request, parts)
            found[place].stages = {"split": split_ms[place], **found[place].stages}
    return [found[place] for place in range(len(every))]


def _recall(
    engine: Engine,
    queries: Sequence[str],
    vectors: Sequence[object] | None,
    request: Request,
    parts: Parts,
) -> list[Hits]:
    """The hits of each query, or of one and its parts."""
    started = perf_counter()
    asked, request = ask_parts(engine, queries, vectors, request, parts)
    embedded_at = perf_counter()
    with engine.store.read() as reader, open_view(engine, reader, asked, request) as (view, rows):
        opened_at = perf_counter()
        answers = answer_all(engine, reader, view, rows, asked, request, whole=bool(parts.queries))
        answered_at = perf_counter()
        hits = show(engine, reader, asked, answers, request)
    stages = {
        "embed": (embedded_at - started) * 1e3,
        "catch_up": (opened_at - embedded_at) * 1e3,
        "search": (answered_at - opened_at) * 1e3,
        "fetch": (perf_counter() - answered_at) * 1e3,
    }
    for each in hits:
        each.stages = stages
        each.sub_queries, each.scopes = parts.queries, parts.scopes
    engine.accesses.add(hit.id for each in hits for hit in each)
    return hits


def ask_parts(
    engine: Engine,
    queries: Sequence[object],
    vectors: Sequence[object] | None,
    request: Request,
    parts: Parts,
) -> tuple[Queries, Request]:
    """The queries with those parts, embedded, and the request within the scopes that the parts are for."""
    asked = prepare_queries(engine, [*queries, *parts.queries], vectors, request)
    if parts.gap is not None:
        asked = asked._replace(gap=parts.gap if asked.gap is None else f"{asked.gap}; {parts.gap}")
    if not parts.scopes:
        return asked, request
    within = Filter(scope=parts.scopes).within(request.filter.base).scopes
    return asked, structs.replace(request, filter=request.filter.replaced(scopes=within))


def answer_all(
    engine: Engine,
    reader: Reader,
    view: IndexView,
    rows: Rows,
    asked: Queries,
    request: Request,
    *,
    whole: bool = False,
) -> list[Answer]:
    """Every query through every stage; with `whole` they are a question and its parts, and have one answer."""
    words = find_words(engine, reader, asked, request)
    wanted = request.wanted
    size = len(words) if whole else max(1, min(_GROUP, -(-len(words) // threads())))

    def work(start: int) -> list[Answer]:
        group = slice(start, start + size)
        vectors = None if asked.vectors is None else np.stack(asked.vectors[group])
        tokens = None if asked.tokens is None else asked.tokens[group]
        return answer(view, rows, asked.texts[group], vectors, tokens, words[group], request, wanted, whole=whole)

    groups = run_tasks([partial(work, start) for start in range(0, len(words), size)])
    return [each for group in groups for each in group]


def find_words(engine: Engine, reader: Reader, asked: Queries, request: Request) -> list[Words]:
    """The words of each query by number; what some of them are to its handle, `carried_words` says."""
    texts = [[] if request.mode == "vector" else query_words(text) for text in asked.texts]
    every = list(dict.fromkeys(word for words in texts for word in words))
    numbers = reader.lexicon.recalled(every, engine.index.loads)
    return [Words.of(words, numbers) for words in texts]


def see(engine: Engine, reader: Reader, request: Request) -> Selection:
    """What the request's filter admits at the index's commit."""
    chosen = request.filter
    listed, rest = None, chosen.unindexed
    if rest is not None:
        versions: Versions = "open" if chosen.as_of is None else "any"
        key = rest, versions
        listed = engine.index.listing(key, partial(reader.records.matching_ids, rest, request.now, versions=versions))
    visible = RowFilter(
        now=request.now,
        as_of=chosen.as_of,
        scopes=tuple(reader.scopes.within(chosen.scopes)) if chosen.scopes else None,
        kinds=chosen.kinds or (),
        since=chosen.since,
        until=chosen.until,
        listed=listed,
    )
    return engine.index.selection(visible, rest)


@contextmanager
def open_view(engine: Engine, reader: Reader, asked: Queries, request: Request) -> Iterator[tuple[IndexView, Rows]]:
    """The store at this read transaction's commit, under the request's filter."""
    with engine.index.current(reader):
        embedder = reader.vectors.active_embedder()
        check_comparable(asked, embedder, engine.store.path)
        rows = Rows(reader, embedder)
        statistics = engine.index.corpus_statistics(_statistics_scopes(reader, request))
        yield IndexView(engine.index, see(engine, reader, request), statistics, rows.originals), rows


def _statistics_scopes(reader: Reader, request: Request) -> tuple[int, ...] | None:
    """The scopes by whose records words are weighed: all that the handle may see, whatever the filter; None is all."""
    base = request.filter.base
    return None if base == "/" else tuple(reader.scopes.within((base,)))


def show(
    engine: Engine,
    reader: Reader,
    asked: Queries,
    answers: Sequence[Answer],
    request: Request,
) -> list[Hits]:
    """Fetch the chosen records of all answers at once and build their hits."""
    found = reader.records.fetch([line.key for each in answers for line in each.lines]) if answers else {}
    shown = []
    for text, each in zip(asked.texts, answers, strict=False):  # parts have no answer of their own
        gaps = each.gaps if asked.gap is None else (*each.gaps, asked.gap)
        hits = build_hits(each.lines, found, gaps, request, each.candidates, each.chosen)
        left_out = 0
        if request.token_budget is not None:
            hits, left_out = fit_budget(hits, request.token_budget, engine.embedder.count_tokens)
        shown.append(Hits(hits, query=text, evidence_gaps=gaps, left_out=left_out))
    return shown
