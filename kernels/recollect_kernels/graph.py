"""Graph kernels (float64): one step of spreading activation among one query's candidates.

Activation flows from neighbours (Collins and Loftus, 1975); of all that reaches a node the strongest counts. A sum
would lift what stands between two strong nodes above both.
"""

from __future__ import annotations

from recollect_kernels import contract, dispatch
from recollect_kernels.contract import F64, I32, I64, Mask, array
from recollect_kernels.errors import KernelError


def spread(scores: F64, offsets: I64, targets: I64, strengths: F64) -> F64:
    """The strongest activation that reaches each node over its edges: out[i] = max of strength * scores[target].

    scores float64 (m,); the edges of i are targets[offsets[i]:offsets[i + 1]], int64 indices into `scores`, with
    strengths float64 -> float64 (m,), 0 where a node has no edge or nothing above 0 reaches it.
    """
    array("scores", scores, contract.f64, None)
    contract.finite("scores", scores)
    contract.indices("targets", targets, scores.shape[0])
    contract.offsets("offsets", offsets, targets.shape[0], scores.shape[0])
    array("strengths", strengths, contract.f64, targets.shape[0])
    contract.finite("strengths", strengths)
    return dispatch.active.spread(scores, offsets, targets, strengths)


def spread_chain(
    scores: F64, rows: I64, previous: I32, following: I32, mask: Mask | None, near: float, far: float
) -> tuple[F64, I64]:
    """The strongest activation that reaches each candidate from two places either way in its chain.

    rows int64 (m,) strictly ascending, with scores float64 (m,); previous, following int32 (n,) name the row before
    and after each row, -1 for none; mask bytes (n,) or None. A neighbour one place away passes on `near` of its score,
    two places away `far`; one that is masked or not among `rows` passes on nothing. Returns the strongest, float64
    (m,), and the company, int64 (m,): min(3, 1 + allowed rows within two places).
    """
    array("rows", rows, contract.i64, None)
    array("scores", scores, contract.f64, rows.shape[0])
    contract.finite("scores", scores)
    array("previous", previous, contract.i32, None)
    n = previous.shape[0]
    array("following", following, contract.i32, n)
    contract.indices("rows", rows, n)
    if rows.shape[0] > 1 and not bool((rows[1:] > rows[:-1]).all()):
        raise KernelError("rows: not strictly ascending; wanted each row once, in order")
    checked = contract.mask(mask, n)
    near = contract.real("near", near, low=0.0, high=1.0)
    far = contract.real("far", far, low=0.0, high=1.0)
    found = dispatch.active.spread_chain(scores, rows, previous, following, checked, near, far)
    if found is None:
        raise KernelError(f"previous, following: name a row of {n} or more; wanted -1 to {n - 1}")
    return found
