"""The features and the evidence of candidates of many queries: what a ranking or a confidence is trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.recall.decomposition import SubQueries
from recallite.recall.pipeline import embed_queries
from recallite.recall.plan import NO_TREES, call, open_view, plan_key, plan_of, with_clock
from recallite.recall.query import question_arrays
from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.engine import Engine
    from recallite.recall.request import Request
    from recallite.store.sql.record_reading import Found


class MeasuredQuery(NamedTuple):
    """The best candidates of one query by the formula, best first.

    - ids: those of their records
    - features: float64 (features, candidates), in rows as `FEATURES` names them
    - signals: float64 (signals, candidates), in rows as `SIGNALS` names them
    - evidence: float64 (evidence, candidates), in rows as `EVIDENCE` names them
    - records: what is stored of each
    """

    ids: list[str]
    features: NDArray[np.float64]
    signals: NDArray[np.float64]
    evidence: NDArray[np.float64]
    records: list[Found]


def measure_queries(engine: Engine, queries: Sequence[str], request: Request, depth: int = 100) -> list[MeasuredQuery]:
    """The best `depth` candidates of each query by the formula alone; no question is decomposed."""
    return list(_measured(engine, queries, request, depth))


def _measured(engine: Engine, queries: Sequence[str], request: Request, depth: int) -> Iterator[MeasuredQuery]:
    embedded, request = embed_queries(engine, queries, None, request, SubQueries(()))
    with engine.store.read() as reader, open_view(engine, reader, embedded, request) as opened:
        key = plan_key(opened, embedded, request, shared=False)
        plan = with_clock(plan_of(request.profile, key), request.clock)._replace(
            limit=depth, final=depth, depth=depth, forest=NO_TREES, changes=0, standing=0
        )
        for place in range(len(queries)):
            one = embedded.part(place, place + 1)
            batch = question_arrays(opened, one, request, key.by_vector)
            hits, work = call(opened.view, plan, batch)
            count = int(hits.figures[0, kernels.FIGURES.hits])
            keys = hits.keys[0, :count].tolist()
            records = reader.records.fetch(keys)
            yield MeasuredQuery(
                [records[key].public_id for key in keys], work.features[:, :count].copy(),
                hits.signals[0, :count].T.copy(), work.evidence[:, :count].copy(), [records[key] for key in keys],
            )  # fmt: skip
