"""Graph kernel (float64): one step of spreading activation among each query's candidates.

Activation flows from neighbours (Collins and Loftus, 1975); of all that reaches a node the strongest counts. A sum
would lift what stands between two strong nodes above both.

Two kinds of neighbours: `previous` and `following` int32 (n,) name the row before and after each row in its chain, -1
for none. Links are lists in arrays: heads int32 (n,) is the place of a row's first link, nexts int32 (e,) that of the
next one, -1 for none; targets int32 (e,) is the linked row, -1 where the link was removed.
"""

from __future__ import annotations

from recollect_kernels import contract, dispatch
from recollect_kernels.candidates import links
from recollect_kernels.contract import F32, F64, I32, I64, Mask, array
from recollect_kernels.errors import KernelError


def spread_activation(
    offsets: I64, rows: I64, scores: F64, previous: I32, following: I32, sources: I64, heads: I32, nexts: I32,
    targets: I32, strengths: F32, mask: Mask | None, near: float, far: float,
) -> tuple[F64, F64, F64, I64]:  # fmt: skip
    """What reaches each candidate from the other candidates of its query.

    Candidates of query i are rows[offsets[i]:offsets[i + 1]], int64 (m,) strictly ascending, with scores float64 (m,)
    of 0 or more. A neighbour one place away in the chain passes on `near` of its score, two places away `far`; a link
    its strength, float32 (e,). sources int64 (n,) is by row, -1 for none.

    Returns the strongest that arrives by chain and by link (-1 where no link leads to a candidate), float64 (m,); the
    sum of the best three scores in the candidate's source, its own among them, float64 (m,), 0 without a source; and
    its company, int64 (m,): min(3, 1 + allowed rows within two places in the chain).
    """
    array("rows", rows, contract.i64, None)
    array("scores", scores, contract.f64, rows.shape[0])
    contract.finite("scores", scores)
    if scores.size and float(scores.min()) < 0:
        raise KernelError(f"scores: holds {float(scores.min())}; wanted 0 or more")
    array("previous", previous, contract.i32, None)
    n = previous.shape[0]
    array("following", following, contract.i32, n)
    array("sources", sources, contract.i64, n)
    contract.indices("rows", rows, n)
    contract.offsets("offsets", offsets, rows.shape[0])
    ascending = rows[1:] > rows[:-1]
    if not ascending.all():
        ascending[offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(rows))] - 1] = True
        if not ascending.all():
            raise KernelError("rows: not strictly ascending; wanted each row once, in order")
    links(heads, nexts, targets, n)
    array("strengths", strengths, contract.f32, targets.shape[0])
    checked = contract.mask(mask, n)
    near = contract.real("near", near, low=0.0, high=1.0)
    far = contract.real("far", far, low=0.0, high=1.0)
    found = dispatch.active.spread_activation(
        offsets, rows, scores, previous, following, sources, heads, nexts, targets, strengths, checked, near, far
    )
    if found is None:
        raise KernelError(f"previous, following, links: name a row of {n} or more, or a place that is not there")
    return found
