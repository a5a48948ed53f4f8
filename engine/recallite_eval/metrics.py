"""Metrics of one question, from the ranks of what it expects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import structs

from recallite.model.evaluations import Figures


def measure(ranks: Sequence[int | None], k: int) -> Figures:
    """Return the figures of a question by the rank of each expected memory among its first `k` hits, None for one lost.

    nDCG is that of Järvelin and Kekäläinen (2002) with binary relevance; the ideal has all that is expected first.
    """
    hits = [rank for rank in ranks if rank is not None]
    best = min(hits, default=None)
    gain = math.fsum(map(_discount, hits))
    ideal = math.fsum(map(_discount, range(1, min(len(ranks), k) + 1)))
    return Figures(
        recall=len(hits) / len(ranks),
        hit=float(best is not None),
        hit_at_1=float(best == 1),
        mrr=0.0 if best is None else 1.0 / best,
        ndcg=gain / ideal,
    )


def mean_figures(figures: Iterable[Figures]) -> Figures | None:
    """Return the means of the figures of some questions; None without questions."""
    rows = [*map(structs.asdict, figures)]
    if not rows:
        return None
    return Figures(**{name: math.fsum(row[name] for row in rows) / len(rows) for name in Figures.__struct_fields__})


def _discount(rank: int) -> float:
    return 1.0 / math.log2(rank + 1)
