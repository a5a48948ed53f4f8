"""The tool experience: what worked before."""

from __future__ import annotations

from msgspec import Struct

from recallite.doors.tools.action import Action, Call, Quotes, Tool, ToolFault
from recallite.doors.tools.fields import TaskType, ToolName, Words
from recallite.doors.tools.schema import allowed_in


class Tip(Struct, frozen=True, kw_only=True):
    """A sentence about what worked."""

    text: str


class Tips(Action, frozen=True, kw_only=True, tag="tips"):
    """find what worked before on tasks of this type; with tool and error, what helped against it"""

    task_type: TaskType | None = None
    tool: ToolName | None = None
    error: Words | None = None

    def __call__(self, call: Call) -> Quotes:
        if (self.tool is None) != (self.error is None):
            missing = "tool" if self.tool is None else "error"
            raise ToolFault(
                "missing_field", missing, f"{missing} is missing: tool and error go together", allowed_in(Tips, missing)
            )
        tips = call.memory.experience.tips(self.task_type, tool=self.tool, error=self.error)
        return Quotes(results=[Tip(text=str(tip)) for tip in tips])


TOOL = Tool(
    "experience",
    "What worked before: tools by type of task, and recoveries from errors.",
    (Tips,),
)
