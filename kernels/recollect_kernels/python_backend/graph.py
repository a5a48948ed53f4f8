"""Graph kernels in NumPy float64."""

from __future__ import annotations

import numpy as np

from recollect_kernels.contract import F64, I32, I64, U8


def spread(scores: F64, offsets: I64, targets: I64, strengths: F64) -> F64:
    out = np.zeros(len(scores))
    np.maximum.at(out, np.repeat(np.arange(len(scores)), np.diff(offsets)), strengths * scores[targets])
    return out


def spread_chain(
    scores: F64, rows: I64, previous: I32, following: I32, mask: U8, near: float, far: float
) -> tuple[F64, I64] | None:
    out, company = np.zeros(len(rows)), np.ones(len(rows), np.int64)
    for links in (previous, following):
        at = rows
        for weight in (near, far):
            at = np.where(at >= 0, links[at], -1).astype(np.int64)
            if at.size and int(at.max()) >= len(previous):
                return None
            allowed = (at >= 0) & (mask[at] > 0) if mask.size else at >= 0
            company += allowed
            place = np.minimum(np.searchsorted(rows, at), max(len(rows) - 1, 0))
            among = allowed & (rows[place] == at)
            out[among] = np.maximum(out[among], weight * scores[place[among]])
    return out, np.minimum(company, 3)
