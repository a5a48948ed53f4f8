"""The OpenAI Agents SDK: its `Session`, a tool for long-term memory, and instructions that recall."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from recallite.agents.sessions import Session, plain_text
from recallite.errors import InvalidInput, NotFound, StoreClosed
from recallite.memory import Memory
from recallite.model.checks import check_count, check_name, check_scope
from recallite.system.messages import shown
from recallite_connect.common import (
    OnMemory,
    call_memory_tool,
    existing_session,
    memory_tool_schema,
    needed,
    recalled_text,
    threaded,
)
from recallite_connect.importers.reading import cleaned_json

with needed("openai-agents"):
    from agents import Agent, FunctionTool, RunContextWrapper, SessionSettings, TResponseInputItem

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["RecalliteSession", "memory_tool", "recalling"]


def _raises_as_theirs(method: Callable[P, R]) -> Callable[P, R]:
    """The method with the errors of the SDK's sessions: RuntimeError after `close`, TypeError for what is not JSON."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except StoreClosed as fault:
            if fault.reason == "closed":
                raise RuntimeError(f"{type(args[0]).__name__} is closed: open it again") from fault
            raise
        except InvalidInput:
            json.dumps([args[1:], kwargs])  # says what is not JSON
            raise

    return call


class RecalliteSession(OnMemory):
    """A `Session` of the SDK: a session of `memory.sessions` in `scope`, under the same id.

    An item, with a role or without, is a message, kept as it is. Every call is one transaction, so that processes may
    share a session. An item that another program has damaged is left out, and does not count for a limit. Errors are
    those of the SDK's SQLiteSession: RuntimeError after `close`, TypeError for an item that is not JSON.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory | str | os.PathLike[str],
        *,
        scope: str = "/",
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
    ) -> None:
        self.session_id = check_name(session_id, "session_id")
        self.scope = check_scope(scope)
        if not isinstance(session_settings, SessionSettings | Mapping | None):
            raise InvalidInput(
                f"session_settings is {shown(session_settings)}: give SessionSettings(...), or a dict of its fields"
            )
        if not isinstance(session_settings, SessionSettings):
            session_settings = SessionSettings().resolve(dict(session_settings or {}))
        self.session_settings: SessionSettings | None = session_settings
        super().__init__(memory)
        self._sessions = self.memory.scoped(self.scope).sessions

    def _session(self) -> Session | None:
        return existing_session(self._sessions, self.session_id)

    def _get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in order; the last `limit` of them, or as many as `session_settings` say."""
        most = self.session_settings.limit if limit is None and self.session_settings else limit
        checked = None if most is None else check_count(most, "limit", minimum=0)
        session = self._session()
        return [] if session is None else session.messages(limit=checked, skip_damaged=True)

    def _add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items at the end, all or none; when this returns, they survive power loss.

        NUL and lone surrogates, as outputs of tools have, become U+FFFD. Raises TypeError for one that is not JSON.
        """
        with self.memory.transaction():
            self._sessions.open(self.session_id, provider="openai-agents").extend(cleaned_json([*items]))

    def _pop_item(self) -> TResponseInputItem | None:
        """Remove the last item and return it; None if there is none."""
        session = self._session()
        try:
            return None if session is None else session.pop(skip_damaged=True)
        except NotFound:  # another process has just ended it
            return None

    def _clear_session(self) -> None:
        session = self._session()
        with suppress(NotFound):
            if session is not None:
                session.clear()

    get_items, add_items = threaded(_raises_as_theirs(_get_items)), threaded(_raises_as_theirs(_add_items))
    pop_item, clear_session = threaded(_raises_as_theirs(_pop_item)), threaded(_raises_as_theirs(_clear_session))


def memory_tool(memory: Memory, *, scope: str = "/") -> FunctionTool:
    """The tool `memory` of `recallite.tools`: with it an agent writes, recalls and removes memories of `scope`.

    What the model gets wrong is in the answer to it; an error of the store ends the run.
    """
    description, parameters = memory_tool_schema()
    within = check_scope(scope)

    async def invoke(_: RunContextWrapper[Any], arguments: str) -> str:
        return await call_memory_tool(memory, within, arguments)

    return FunctionTool(
        name="memory", description=description, params_json_schema=parameters, on_invoke_tool=invoke,
        strict_json_schema=False,  # an action takes some of the fields only
    )  # fmt: skip


def recalling(
    instructions: str | None, memory: Memory, *, scope: str = "/", limit: int = 5
) -> Callable[[RunContextWrapper[Any], Agent[Any]], Awaitable[str]]:
    """Instructions for an agent: yours, and below them the memories of `scope` that answer the user's last message."""
    handle, most = memory.scoped(check_scope(scope)), check_count(limit, "limit")

    async def instruct(context: RunContextWrapper[Any], _: Agent[Any]) -> str:
        messages = [item for item in context.turn_input if isinstance(item, Mapping) and item.get("role") == "user"]
        query = plain_text(messages[-1].get("content")) if messages else ""
        recalled = await asyncio.to_thread(recalled_text, handle, query, most)
        return "\n\n".join(filter(None, (instructions, recalled)))

    return instruct
