"""Microsoft's agent framework: a `HistoryProvider` for conversations and a `ContextProvider` for long-term memory."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from recallite.memory import Memory
from recallite.model.checks import check_count, check_name, check_scope
from recallite_connect.common import (
    OnMemory,
    call_memory_tool,
    in_thread,
    memory_tool_schema,
    needed,
    recalled_text,
    stored_messages,
    to_embed,
)
from recallite_connect.importers.reading import cleaned_json

with needed("agent-framework"):
    from agent_framework import AgentSession, ContextProvider, FunctionTool, HistoryProvider, Message, SessionContext

__all__ = ["RecalliteContextProvider", "RecalliteHistoryProvider"]

_DEFAULT_SESSION = "default"
_MARK, _MARKED_BY = "$number", "$numbers"


class RecalliteHistoryProvider(OnMemory, HistoryProvider):
    """A `HistoryProvider`: the messages of a session are those of a session of `memory.sessions` in `scope`.

    The id is the same; without one it is "default". `skip_excluded` leaves out messages that a compaction has marked.
    The other arguments are those of `HistoryProvider`.
    """

    def __init__(
        self,
        memory: Memory | str | os.PathLike[str],
        *,
        scope: str = "/",
        source_id: str = "recallite_history",
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
    ) -> None:
        within = check_scope(scope)
        HistoryProvider.__init__(
            self, check_name(source_id, "source_id"), load_messages=load_messages, store_inputs=store_inputs,
            store_context_messages=store_context_messages, store_context_from=store_context_from,
            store_outputs=store_outputs,
        )  # fmt: skip
        OnMemory.__init__(self, memory)
        self.skip_excluded = skip_excluded
        self._sessions = self.memory.scoped(within).sessions

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """The messages of a session, in order; none for one that is not there."""
        return await in_thread(self._read, session_id)

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store messages at the end of a session, all or none; when this returns, they survive power loss."""
        if messages:
            await in_thread(self._save, session_id, [*messages])

    def _read(self, session_id: str | None) -> list[Message]:
        stored = stored_messages(self._sessions, _named(session_id))
        messages = [Message.from_dict(_restored(message)) for message in stored]
        if not self.skip_excluded:
            return messages
        return [message for message in messages if not message.additional_properties.get("_excluded", False)]

    def _save(self, session_id: str | None, messages: list[Message]) -> None:
        stored = cleaned_json([_stored(message.to_dict()) for message in messages])
        with self.memory.transaction(embed=to_embed(stored)):
            self._sessions.open(_named(session_id), provider="agent-framework").extend(stored)


class RecalliteContextProvider(OnMemory, ContextProvider):
    """A `ContextProvider`: before a run the model gets what is recalled of its input, and a tool to remember by.

    - scope: what is recalled and written is in it. A function gets the `AgentSession` and returns it, so that each user
      has a scope: `scope=lambda session: f"/users/{session.state['user']}"`
    - limit: how many memories are recalled for a run; 0 recalls none
    - tool: whether the model gets the tool `memory` of `recallite.tools`, confined to the scope
    - remember_inputs: whether the texts of the user are remembered after a run, each as a memory
    """

    def __init__(
        self,
        memory: Memory | str | os.PathLike[str],
        *,
        scope: str | Callable[[AgentSession], str] = "/",
        source_id: str = "recallite",
        limit: int = 5,
        tool: bool = True,
        remember_inputs: bool = False,
    ) -> None:
        self._scope = scope if callable(scope) else check_scope(scope)
        self._limit = check_count(limit, "limit", minimum=0)
        self._tool, self._remembers = tool, remember_inputs
        ContextProvider.__init__(self, check_name(source_id, "source_id"))
        OnMemory.__init__(self, memory)

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add what is recalled as a message of the user, quoted, and the tool."""
        scope = self._scope_of(session)
        query = "\n".join(_texts(context))
        if self._limit:
            recalled = await asyncio.to_thread(recalled_text, self.memory.scoped(scope), query, self._limit)
            if recalled:
                context.extend_messages(self, [Message(role="user", contents=[recalled])])
        if self._tool:
            context.extend_tools(self.source_id, [_memory_tool(self.memory, scope)])

    async def after_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Remember the texts of the user, with `remember_inputs`."""
        texts = [*_texts(context)] if self._remembers else []
        if texts:
            await in_thread(self.memory.scoped(self._scope_of(session)).remember_many, cleaned_json(texts))

    def _scope_of(self, session: AgentSession) -> str:
        return check_scope(self._scope(session)) if callable(self._scope) else self._scope


def _named(session_id: str | None) -> str:
    return _DEFAULT_SESSION if session_id is None else session_id


def _stored(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as JSON: NaN and the infinities, which a tool may give and JSON has not, by their names."""
    text = json.dumps(message)
    mark, names = _MARK, list[str]()
    while mark in text:
        mark += "$"

    def named(constant: str) -> dict[str, str]:
        names.append(constant)
        return {mark: constant}

    plain: dict[str, Any] = json.loads(text, parse_constant=named)
    return {**plain, _MARKED_BY: mark} if names else message


def _restored(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message that `_stored` got."""
    mark = message.pop(_MARKED_BY, None)
    if mark is None:
        return message

    def number(part: dict[str, Any]) -> Any:
        return float(part[mark]) if part.keys() == {mark} else part

    restored: dict[str, Any] = json.loads(json.dumps(message), object_hook=number)
    return restored


def _texts(context: SessionContext) -> list[str]:
    """Return the texts of the user in this run."""
    return [message.text for message in context.input_messages if message.role == "user" and message.text.strip()]


def _memory_tool(memory: Memory, scope: str) -> FunctionTool:
    description, parameters = memory_tool_schema()

    async def call(**arguments: Any) -> str:
        return await call_memory_tool(memory, scope, arguments)

    return FunctionTool(name="memory", description=description, func=call, input_model=parameters)
