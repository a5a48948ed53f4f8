"""The actions of the tool experience."""

from __future__ import annotations

from msgspec import Struct

from recollect.memory import Memory
from recollect.tools import arguments as asked
from recollect.tools.checking import allowed_in
from recollect.tools.failures import ToolFault
from recollect.tools.results import Quotes, Recorded, Tip

__all__ = ["answer"]


def answer(action: asked.Action, memory: Memory, within: str) -> Struct:
    """Carry out an action; experience is that of the handle."""
    match action:
        case asked.RecordRun():
            memory.experience.record(
                task_type=action.task_type, tools=action.tools, success=action.success, steps=action.steps,
                tokens=action.tokens,
            )  # fmt: skip
            return Recorded(outcome="recorded")
        case asked.RecordRecovery():
            memory.experience.record_recovery(tool=action.tool, error=action.error, recovery=action.recovery)
            return Recorded(outcome="recorded")
        case asked.Tips():
            if (action.tool is None) != (action.error is None):
                missing = "tool" if action.tool is None else "error"
                raise ToolFault(
                    "missing_field", missing, f"{missing} is missing: tool and error go together", allowed_in(missing)
                )
            tips = memory.experience.tips(action.task_type, tool=action.tool, error=action.error)
            return Quotes.of(Tip(content=str(tip)) for tip in tips)
        case _:
            raise AssertionError(action)
