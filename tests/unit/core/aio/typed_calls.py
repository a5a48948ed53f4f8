"""What a type checker sees of the asynchronous API; test_types.py has mypy read it."""

from __future__ import annotations

from typing import Any, assert_type

from recallite import AsyncMemory, AsyncWorkspace, Filter, Memory
from recallite.agents.consolidation import Cycle
from recallite.agents.experience import Tip
from recallite.agents.sessions import AsyncSession, AsyncSessions, Session, SessionInfo, Sessions
from recallite.agents.tiers import Procedure
from recallite.agents.working import Added, AsyncWorking, Working, WorkingItem
from recallite.documents.document import Ingested
from recallite.model.records import Hits, Record, Records
from recallite_notes.search import SearchResults


def shown(memory: Memory) -> None:
    """The services of a memory."""
    assert_type(memory.sessions, Sessions)
    assert_type(memory.sessions.open("id"), Session)
    assert_type(memory.working.agent("ada"), Working)


async def awaited(memory: AsyncMemory, workspace: AsyncWorkspace) -> None:
    """The verbs and services of an AsyncMemory, and the verbs of an AsyncWorkspace."""
    assert_type(await memory.recall("question", limit=3), Hits)
    assert_type(
        await memory.recall(
            "question", profile={"neighbor_boost": 0}, filter=Filter(scope="/a", tags=["x"], since="2026-01-01")
        ),
        Hits,
    )
    assert_type(await memory.list(filter=Filter(kinds=["note"], where={"topic": "t"})), Records)
    assert_type(await memory.scoped("/a").get("id"), Record)
    assert_type(memory.sessions, AsyncSessions)
    assert_type(await memory.sessions.list(), list[SessionInfo])
    session = await memory.sessions.open("id", agent="ada")
    assert_type(session, AsyncSession)
    assert_type(await session.messages(limit=2), list[dict[str, Any]])
    assert_type(session.id, str)
    assert_type(await memory.working.agent("ada"), AsyncWorking)
    assert_type(await memory.working.add("text"), Added)
    assert_type([item async for item in memory.working], list[WorkingItem])
    assert_type(await memory.semantic.add("fact"), Record)
    assert_type(await memory.episodes.list(), list[Record])
    assert_type(await memory.procedures.get("deploy"), Procedure)
    assert_type(await memory.experience.tips(None), list[Tip])
    assert_type(await memory.consolidator.run(), Cycle)
    assert_type(await memory.knowledge.ingest(b"text"), Ingested)
    assert_type(await workspace.search("question"), SearchResults)


async def refused(memory: AsyncMemory, workspace: AsyncWorkspace) -> None:
    """Each line is an error; mypy reports an ignored error that is none."""
    await memory.recall(3)  # type: ignore[arg-type]
    await memory.recall("question", scopes="/a")  # type: ignore[call-arg]
    await memory.count(kinds=3)  # type: ignore[arg-type]
    Filter(tag="x")  # type: ignore[call-arg]
    await memory.sessions.open(agent=3)  # type: ignore[arg-type]
    await memory.semantic.add()  # type: ignore[call-arg]
    await memory.episodes.nothing()  # type: ignore[attr-defined]
    await workspace.search(b"question")  # type: ignore[arg-type]
    memory.procedures.get("deploy")  # type: ignore[unused-coroutine]
