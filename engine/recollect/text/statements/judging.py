"""How a new statement stands to an older one."""

from __future__ import annotations

from recollect.text import contrast
from recollect.text.statements.relations import SEVERAL
from recollect.text.statements.statement import Statement
from recollect.text.statements.verdict import Verdict


def judge(
    new: Statement, old: Statement, *, cosine: float | None, later: bool, several: frozenset[str] = SEVERAL
) -> Verdict:
    """The verdict on two statements of the same scope and kind.

    `cosine`: of their vectors, where both have one; `later`: whether `new` begins to hold at or after `old`; `several`:
    the stems of relations that may hold several values.
    """
    if new.text == old.text or contrast.same_statement(new.compared, old.compared):
        return Verdict("same", 0.98, "says the same")
    difference = contrast.contradiction(new.compared, old.compared)
    if difference is None or new.context != old.context:
        return Verdict("independent", 0.9, "both may hold")
    slots = {before for before, _ in new.slots} & {before for before, _ in old.slots}
    if later and difference != "negation" and slots and all(several.isdisjoint(before) for before in slots):
        return Verdict("supersedes", 0.9, f"another {difference}")
    return Verdict("contradicts", 0.7, f"another {difference}")
