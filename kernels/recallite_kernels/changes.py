"""What changed among the best candidates of a query: what holds at the time it asks about comes first."""

from __future__ import annotations

from itertools import pairwise

from recallite_kernels import contract, dispatch
from recallite_kernels.arguments import Asked, Statements
from recallite_kernels.contract import I64, KernelError, array
from recallite_kernels.groups import check_group


def order_changes(statements: Statements, asked: Asked) -> tuple[I64, I64]:
    """The candidates of each query with what holds before what it replaced: int64 order (m,) and leads (m,).

    Candidates that give one frame different values are rivals. A candidate that began at or before the moment asked
    about goes before one that began after it; of two before it the later goes first, of two after it the earlier. Where
    `former` is asked for, one that is replaced goes before one that is not, and the later first. In the order of the
    candidates, each has directly before it those of its frames that go first, if one of them is its rival.

    `order` has places that count from the first candidate of the query. `leads` has the place of the candidate that
    replaced one: for every frame of it the latest of that frame, whatever time is asked for, is its rival, and `leads`
    has the latest of these; -1 where there is none.
    """
    statements, asked = check_group(statements, Statements), check_group(asked, Asked, "asked.")
    m = statements.moments.shape[0]
    array("keys", statements.keys, contract.i64, m)
    array("frames", statements.frames, contract.u32, m, None)
    array("values", statements.values, contract.u32, *statements.frames.shape)
    contract.offsets("offsets", statements.offsets, m)
    queries = statements.offsets.shape[0] - 1
    array("asked.moments", asked.moments, contract.i64, queries)
    array("asked.former", asked.former, contract.u8, queries)
    keys = statements.keys.tolist()
    if len(set(keys)) < m:  # the same record may be a candidate of several queries
        for start, stop in pairwise(statements.offsets.tolist()):
            if len(set(keys[start:stop])) < stop - start:
                raise KernelError("keys: two candidates of a query have the same; wanted one for each")
    return dispatch.active.order_changes(statements, asked)
