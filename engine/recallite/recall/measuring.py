"""The features of the best candidates of many queries: what a ranking or a confidence is trained on.

Recall itself measures the same in `features.py`; nothing here is used by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.recall.candidates import Candidates, rank_parameters
from recallite.recall.decomposition import SubQueries
from recallite.recall.features import rank_by_forest
from recallite.recall.pipeline import Group, embed_queries, search
from recallite.recall.query import Words, find_words
from recallite.recall.query_evidence import said_in, weigh
from recallite.recall.view import open_view
from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.engine import Engine
    from recallite.index.query_batch import QueryBatch
    from recallite.recall.request import Request


_GROUP = 32


class WeighedQuery(NamedTuple):
    """The best candidates of one query, best first, with the evidence of each: float64 (evidence, candidates)."""

    ids: list[str]
    evidence: NDArray[np.float64]


class MeasuredQuery(NamedTuple):
    """The best candidates of one query, best first.

    - ids: those of their records
    - features: float64 (features, candidates), in rows as `FEATURES` names them
    - signals: float64 (signals, candidates), in rows as `SIGNALS` names them
    """

    ids: list[str]
    features: NDArray[np.float64]
    signals: NDArray[np.float64]


def measure_queries(engine: Engine, queries: Sequence[str], request: Request, depth: int = 100) -> list[MeasuredQuery]:
    """The best `depth` candidates of each query by the formula; no question is decomposed."""
    found = []
    for batch, known, candidates, offsets, places, ids in _searched(engine, queries, request, depth):
        features = rank_by_forest(batch, candidates, known, request.profile, depth).features
        found += [
            MeasuredQuery(ids[begin:end], features[:, begin:end], candidates.signals[:, places[begin:end]])
            for begin, end in pairwise(offsets.tolist())
        ]
    return found


def weigh_queries(engine: Engine, queries: Sequence[str], request: Request, depth: int = 10) -> list[WeighedQuery]:
    """The evidence of the best `depth` candidates of each query; no question is decomposed."""
    found, kinds = [], len(kernels.EVIDENCE) + 1
    for batch, known, candidates, offsets, places, ids in _searched(engine, queries, request, depth):
        ranks = [np.arange(stop - start, dtype=np.float64) for start, stop in pairwise(offsets.tolist())]
        evidence = weigh(
            batch, said_in(batch, known), candidates, offsets, candidates.rows[places],
            candidates.signals.take(places, axis=1), np.concatenate(ranks), np.zeros((len(known), kinds)),
            np.zeros(kinds), rank_parameters(request.profile, 0),
        ).evidence  # fmt: skip
        found += [WeighedQuery(ids[begin:end], evidence[:, begin:end]) for begin, end in pairwise(offsets.tolist())]
    return found


class _Searched(NamedTuple):
    """Queries that went through the search together, with the places of the best candidates and their records' ids."""

    batch: QueryBatch
    words: Sequence[Words]
    candidates: Candidates
    offsets: NDArray[np.int64]
    places: NDArray[np.int64]
    ids: list[str]


def _searched(engine: Engine, queries: Sequence[str], request: Request, depth: int) -> Iterator[_Searched]:
    embedded, request = embed_queries(engine, queries, None, request, SubQueries(()))
    with engine.store.read() as reader, open_view(engine, reader, embedded, request) as (view, _):
        words = find_words(reader, view.index.generation, embedded, request)
        for start in range(0, len(words), _GROUP):
            own = slice(start, start + _GROUP)
            vectors = None if embedded.vectors is None else np.stack(embedded.vectors[own])
            tokens = None if embedded.tokens is None else embedded.tokens[own]
            group = Group(embedded.texts[own], vectors, tokens, words[own], False)
            batch, known, candidates, _ = search(view, group, request, request.wanted)
            offsets, places = best_places(candidates, depth)
            records = reader.records.fetch(candidates.keys[places].tolist())
            ids = [records[key].public_id for key in candidates.keys[places].tolist()]
            yield _Searched(batch, known, candidates, offsets, places, ids)


def best_places(candidates: Candidates, depth: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of the best `depth` of each query, best first."""
    best = candidates.best(depth)
    offsets = np.cumsum([0, *map(len, best)], dtype=np.int64)
    return offsets, np.concatenate([np.empty(0, dtype=np.int64), *best])
