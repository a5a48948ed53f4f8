"""The tool session: conversations, kept message by message."""

from __future__ import annotations

from recallite.doors.tools.action import Action, Call, Recorded, Tool
from recallite.doors.tools.fields import Agent, MessageText, Provider, Role, SessionId, Summary


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
    (OpenSession, AppendMessage, EndSession),
)
