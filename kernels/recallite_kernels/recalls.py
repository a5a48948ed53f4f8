"""The kernel of a recall: every step from the words and the vector of a question to its hits, in one call."""

from __future__ import annotations

from recallite_kernels import dispatch
from recallite_kernels.composition import DONE, FAULTS, NARROW, ROOM
from recallite_kernels.contract import KernelError
from recallite_kernels.view import Asking, Hits, Plan, View, Workspace

__all__ = ["DONE", "NARROW", "ROOM", "recall"]


def recall(view: View, plan: Plan, asking: Asking, work: Workspace, hits: Hits) -> int:
    """Write the hits of each question to `hits`: `DONE`, or `ROOM` or `NARROW` where it takes more room.

    The groups are made by those who know that they fit together, once until the index changes: nothing is checked here
    but what is measured. Raises KernelError where that is not finite or out of range.
    """
    status = dispatch.active.recall(view, plan, asking, work, hits)
    if status in FAULTS:
        raise KernelError(FAULTS[status])
    return status
