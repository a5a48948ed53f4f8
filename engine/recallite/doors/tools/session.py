"""The tool session: conversations, kept message by message."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from recallite.doors.tools.action import Action, Call, Quotes, Recorded, Shown, Tool
from recallite.doors.tools.fields import Agent, Limit, MessageText, Provider, Query, Role, SessionId, Summary


class ListedSession(Shown, frozen=True, kw_only=True):
    """A session of a list."""

    id: str
    agent: str | None
    provider: str | None
    messages: int
    created_at: datetime
    updated_at: datetime


class Message(Struct, frozen=True, kw_only=True):
    """A message of a session; `content` is as it was given, for some a list of parts."""

    role: str | None
    content: Any


class FoundMessage(Shown, frozen=True, kw_only=True):
    """A message that a search found."""

    content: str
    role: str | None
    session: str
    position: int
    score: float
    created_at: datetime
    agent: str | None


class OpenSession(Action, frozen=True, kw_only=True, tag="open"):
    """begin a session, or go on with one that has this id"""

    id: SessionId | None = None
    agent: Agent | None = None
    provider: Provider | None = None

    def __call__(self, call: Call) -> Recorded:
        session = call.memory.sessions.open(self.id, agent=self.agent, provider=self.provider)
        return Recorded(outcome="opened", id=session.id)


class AppendMessage(Action, frozen=True, kw_only=True, tag="append"):
    """store a message at the end of a session"""

    id: SessionId
    role: Role
    content: MessageText
    agent: Agent | None = None

    def __call__(self, call: Call) -> Recorded:
        position = call.memory.sessions.get(self.id, agent=self.agent).append(self.role, self.content)
        return Recorded(outcome="appended", id=self.id, position=position)


class ReadMessages(Action, frozen=True, kw_only=True, tag="messages"):
    """read the last messages of a session"""

    id: SessionId
    limit: Limit = 50
    agent: Agent | None = None

    def __call__(self, call: Call) -> Quotes:
        messages = call.memory.sessions.get(self.id, agent=self.agent).messages(limit=self.limit)
        return Quotes(results=[Message(role=each.get("role"), content=each.get("content")) for each in messages])


class ListSessions(Action, frozen=True, kw_only=True, tag="list"):
    """show sessions, the one used last first"""

    limit: Limit = 20
    agent: Agent | None = None

    def __call__(self, call: Call) -> Quotes:
        found = call.memory.sessions.list(agent=self.agent, limit=self.limit)
        return Quotes(results=[ListedSession.of(each) for each in found])


class SearchSessions(Action, frozen=True, kw_only=True, tag="search"):
    """find messages of any session by their words"""

    query: Query
    limit: Limit = 10
    agent: Agent | None = None

    def __call__(self, call: Call) -> Quotes:
        found = call.memory.sessions.search(self.query, agent=self.agent, limit=self.limit)
        return Quotes(results=[FoundMessage.of(each) for each in found])


class EndSession(Action, frozen=True, kw_only=True, tag="end"):
    """remove a session; with a summary, a snapshot of it is kept"""

    id: SessionId
    summary: Summary | None = None
    agent: Agent | None = None

    def __call__(self, call: Call) -> Recorded:
        session = call.memory.sessions.get(self.id, agent=self.agent)
        session.end(snapshot=self.summary is not None, summary=self.summary or "")
        return Recorded(outcome="ended", id=self.id)


TOOL = Tool(
    "session",
    "Conversations, kept message by message.",
    (OpenSession, AppendMessage, ReadMessages, ListSessions, SearchSessions, EndSession),
)
