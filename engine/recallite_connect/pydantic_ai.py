"""Pydantic AI: a toolset with which an agent remembers, recalls, corrects and forgets."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.model.checks import check_scope
from recallite.system.messages import shown
from recallite_connect.common import OnMemory, in_thread, needed
from recallite_tools import as_text
from recallite_tools.action import Action, Call, DocumentAccess
from recallite_tools.calling import SERVER_TOOLS, execute
from recallite_tools.server_tools import INSTRUCTIONS

with needed("pydantic-ai"):
    from pydantic_ai import ModelRetry, RunContext, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema

__all__ = ["RecalliteToolset"]

Deps = TypeVar("Deps")
_BY_NAME = {name: tool for name, tool in SERVER_TOOLS.items() if not tool.plain and not tool.reaches_out}
_OFFERED = ("recall", "remember", "update", "forget", "list_memories")
# The fields are checked when the tool is called, with a message for the model.
_AN_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


class RecalliteToolset(OnMemory, AbstractToolset[Deps], Generic[Deps]):
    """A toolset for `Agent(toolsets=[...])` with tools of the MCP server, called in threads of this process.

    - scope: what the agent sees and writes is in it. A function gets the `RunContext` of a run and returns it, so that
      each user has a scope: `scope=lambda ctx: f"/users/{ctx.deps.user}"`
    - tools: names of tools: "recall", "remember", "update", "forget", "list_memories", and "search_documents"
    - max_retries: how often a model may correct the arguments of a call; None is the agent's number
    - token_budget: about how many tokens an answer has at most
    - id: of the toolset, which durable execution needs

    What the model gets wrong raises ModelRetry with what is allowed; an error of the store ends the run.
    """

    def __init__(
        self,
        memory: Memory | str | os.PathLike[str],
        *,
        scope: str | Callable[[RunContext[Deps]], str] = "/",
        tools: Sequence[str] = _OFFERED,
        max_retries: int | None = None,
        token_budget: int = 2_000,
        id: str | None = None,
    ) -> None:
        self._scope = scope if callable(scope) else check_scope(scope)
        for name in tools:
            if not isinstance(name, str) or name not in _BY_NAME:
                raise InvalidInput(f"there is no tool {shown(name)}: use {', '.join(_BY_NAME)}")
        self._offered: dict[str, Action] = {name: _BY_NAME[name] for name in tools}
        self._max_retries, self._token_budget, self._id = max_retries, token_budget, id
        super().__init__(memory)

    @property
    def id(self) -> str | None:
        """The id of the toolset."""
        return self._id

    async def get_instructions(self, ctx: RunContext[Deps]) -> str:
        """Tell the agent how to use the tools together."""
        return INSTRUCTIONS

    async def get_tools(self, ctx: RunContext[Deps]) -> dict[str, ToolsetTool[Deps]]:
        """The tools by name."""
        retries = ctx.max_retries if self._max_retries is None else self._max_retries
        return {
            name: ToolsetTool(toolset=self, tool_def=_definition(tool), max_retries=retries, args_validator=_AN_OBJECT)
            for name, tool in self._offered.items()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Deps], tool: ToolsetTool[Deps]
    ) -> str:
        """The answer of a tool: JSON between marks that stored text cannot forge."""
        scope = check_scope(self._scope(ctx)) if callable(self._scope) else self._scope
        call = Call(self.memory.scoped(scope), "/", DocumentAccess(), self._token_budget)
        result = await in_thread(execute, self._offered[name], tool_args, call)
        if "error" in result:
            raise ModelRetry(as_text(result) if "candidates" in result["error"] else result["error"]["message"])
        return as_text(result)


def _definition(tool: Action) -> ToolDefinition:
    parameters = {
        name: {key: value for key, value in schema.items() if key != "default"}
        for name, schema in tool.properties.items()
    }
    return ToolDefinition(
        name=tool.name,
        description=tool.about,
        parameters_json_schema={
            "type": "object", "properties": parameters, "required": tool.required, "additionalProperties": False
        },
        metadata={"writes": tool.writes, "destructive": tool.destructive},
    )  # fmt: skip
