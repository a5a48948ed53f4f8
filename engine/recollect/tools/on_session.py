"""The actions of the tool session."""

from __future__ import annotations

from msgspec import Struct

from recollect.memory import Memory
from recollect.tools import arguments as asked
from recollect.tools.results import FoundMessage, ListedSession, Message, Quotes, Recorded

__all__ = ["answer"]


def answer(action: asked.Action, memory: Memory, within: str) -> Struct:
    """Carry out an action; sessions are those of the handle."""
    sessions = memory.sessions
    match action:
        case asked.OpenSession():
            session = sessions.open(action.id, agent=action.agent, provider=action.provider)
            return Recorded(outcome="opened", id=session.id)
        case asked.AppendMessage():
            position = sessions.get(action.id, agent=action.agent).append(action.role, action.content)
            return Recorded(outcome="appended", id=action.id, position=position)
        case asked.ReadMessages():
            messages = sessions.get(action.id, agent=action.agent).messages(limit=action.limit)
            return Quotes.of(Message(role=each["role"], content=each.get("content")) for each in messages)
        case asked.ListSessions():
            return Quotes.of(
                ListedSession(
                    id=each.id, agent=each.agent, provider=each.provider, messages=each.messages,
                    created_at=each.created_at, updated_at=each.updated_at,
                )
                for each in sessions.list(agent=action.agent, limit=action.limit)
            )  # fmt: skip
        case asked.SearchSessions():
            return Quotes.of(
                FoundMessage(
                    content=each.content, role=each.role, session=each.session, position=each.position,
                    score=each.score, created_at=each.created_at, agent=each.agent,
                )
                for each in sessions.search(action.query, agent=action.agent, limit=action.limit)
            )  # fmt: skip
        case asked.EndSession():
            session = sessions.get(action.id, agent=action.agent)
            session.end(snapshot=action.summary is not None, summary=action.summary or "")
            return Recorded(outcome="ended", id=action.id)
        case _:
            raise AssertionError(action)
