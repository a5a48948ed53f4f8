"""The services of AsyncMemory: awaited, sessions too, working memory iterated."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from recollect import AsyncMemory, Memory
from recollect.aio import SERVICES, AsyncService
from recollect.errors import NotFound
from recollect.tiers.service import Service
from tests.memory.support import PLAIN


def test_every_service_is_awaitable(path):
    async def live():
        async with AsyncMemory(path, settings=PLAIN) as memory:
            for number in range(8):
                added = await memory.working.add(f"item {number}")
            assert added.evicted.item.content == "item 0"
            assert [item.content async for item in memory.working] == [f"item {number}" for number in range(1, 8)]
            adas = await memory.working.agent("ada")
            await adas.add("ada's")
            assert [item.content async for item in adas] == ["ada's"]
            fact = await memory.semantic.add("a fact", agent="ada")
            assert (await memory.semantic.get(fact.id)).text == "a fact"
            await asyncio.gather(*(memory.episodes.log(f"episode {n}", agent="ada") for n in range(20)))
            assert (await memory.consolidator.run("ada")).compressed == 20
            await memory.procedures.save("way", "how")
            await asyncio.gather(*(memory.procedures.record_outcome("way", True) for _ in range(20)))
            assert (await memory.procedures.get("way")).use_count == 20
            await memory.experience.record(task_type="query", tools=["x"], success=True)
            session = await memory.sessions.open("s", agent="ada")
            assert (session.id, session.agent) == ("s", "ada")
            await asyncio.gather(*(session.append("user", f"message {n}") for n in range(20)))
            assert len(await session.messages()) == 20
            assert (await session.end(snapshot=True)).session_id == "s"
            with pytest.raises(NotFound):
                await session.append("user", "too late")
            ready = await memory.bootstrap("ada", "a fact", 500)
            assert ready.records[0].id == fact.id
            scoped = memory.scoped("/agents/ada")
            assert len(await scoped.episodes.list()) == 20

    asyncio.run(live())


def test_asyncmemory_has_every_service_of_memory(memory):
    attributes = {name for name, item in vars(memory).items() if isinstance(item, Service)}
    assert attributes == set(SERVICES)
    for name, kind in SERVICES.items():
        assert type(getattr(memory, name)) is kind
        assert isinstance(getattr(AsyncMemory(":memory:", settings=PLAIN), name), AsyncService)


def test_an_async_method_has_the_signature_of_its_twin():
    memory = AsyncMemory(":memory:", settings=PLAIN)
    assert inspect.iscoroutinefunction(memory.sessions.open)
    assert str(inspect.signature(memory.sessions.open)) == str(
        inspect.signature(Memory(":memory:").sessions.open)
    ).replace("(", "(self, ", 1)
    with pytest.raises(AttributeError):
        memory.sessions.nothing_like_it  # noqa: B018
