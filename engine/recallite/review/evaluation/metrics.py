"""Metrics of one question, from the ranks of what it expects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import structs

from recallite.model.reports import Figures


def measure(ranks: Sequence[int | None], k: int) -> Figures:
    """The figures of a question by the rank of each expected memory among its first `k` hits; None for one not there.

    nDCG is that of Järvelin and Kekäläinen (2002) with binary relevance; the ideal has all that is expected first.
    """
    found = [rank for rank in ranks if rank is not None]
    best = min(found, default=None)
    gain = math.fsum(map(_discount, found))
    ideal = math.fsum(map(_discount, range(1, min(len(ranks), k) + 1)))
    return Figures(
        recall=len(found) / len(ranks),
        hit=float(best is not None),
        hit_at_1=float(best == 1),
        mrr=0.0 if best is None else 1.0 / best,
        ndcg=gain / ideal,
    )


def mean_figures(each: Iterable[Figures]) -> Figures | None:
    """The means of the figures of some questions; None without questions."""
    rows = [structs.astuple(one) for one in each]
    if not rows:
        return None
    return Figures(**{
        name: math.fsum(column) / len(rows)
        for name, column in zip(Figures.__struct_fields__, zip(*rows, strict=True), strict=True)
    })  # fmt: skip


def _discount(rank: int) -> float:
    return 1.0 / math.log2(rank + 1)
