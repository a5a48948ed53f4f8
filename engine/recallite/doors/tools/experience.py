"""The tool experience: what worked before."""

from __future__ import annotations

from msgspec import Struct

from recallite.doors.tools.action import Action, Call, Quotes, Recorded, Tool, ToolFault
from recallite.doors.tools.fields import Count, Flag, TaskType, ToolName, ToolNames, Words
from recallite.doors.tools.schema import allowed_in


class Tip(Struct, frozen=True, kw_only=True):
    """A sentence about what worked."""

    content: str


class RecordRun(Action, frozen=True, kw_only=True, tag="record"):
    """note how a task went"""

    task_type: TaskType
    tools: ToolNames
    success: Flag
    steps: Count | None = None
    tokens: Count | None = None

    def __call__(self, call: Call) -> Recorded:
        call.memory.experience.record(
            task_type=self.task_type, tools=self.tools, success=self.success, steps=self.steps, tokens=self.tokens
        )
        return Recorded(outcome="recorded")


class RecordRecovery(Action, frozen=True, kw_only=True, tag="record_recovery"):
    """note what helped against an error of a tool"""

    tool: ToolName
    error: Words
    recovery: Words

    def __call__(self, call: Call) -> Recorded:
        call.memory.experience.record_recovery(tool=self.tool, error=self.error, recovery=self.recovery)
        return Recorded(outcome="recorded")


class Tips(Action, frozen=True, kw_only=True, tag="tips"):
    """what worked before on tasks of this type; with tool and error, what helped against it"""

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
        return Quotes(results=[Tip(content=str(tip)) for tip in tips])


TOOL = Tool(
    "experience",
    "What worked before: tools by type of task, and recoveries from errors.",
    (RecordRun, RecordRecovery, Tips),
)
