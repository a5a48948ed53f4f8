"""The kernel of a recall: every step from the words and the vector of a question to its hits, in one call."""

from __future__ import annotations

from recallite_kernels import dispatch
from recallite_kernels.composition import DONE, FAULTS, NARROW, ROOM
from recallite_kernels.contract import KernelError
from recallite_kernels.recall_checks import check_recall
from recallite_kernels.view import Asking, Hits, Plan, View, Workspace

__all__ = ["DONE", "NARROW", "ROOM", "recall"]


def recall(
    view: View, plan: Plan, asking: Asking, work: Workspace, hits: Hits, *, checked: bool = False
) -> int:  # fmt: skip
    """Write the hits of each question to `hits`: `DONE`, or `ROOM` or `NARROW` where it takes more room.

    Checking that the groups are whole and fit together takes longer than many a recall. `checked=True` says that it is
    known, as of an index that was checked when it was loaded; then only what is measured is checked. Raises KernelError
    where that is not finite or out of range.
    """
    if not checked:
        view, plan, asking, work, hits = check_recall(view, plan, asking, work, hits)
    status = dispatch.active.recall(view, plan, asking, work, hits)
    if status in FAULTS:
        raise KernelError(FAULTS[status])
    return status
