"""The services of AsyncMemory: awaited, sessions too, working memory iterated."""

from __future__ import annotations

import asyncio
import inspect
from importlib import import_module
from importlib.metadata import EntryPoint

import pytest

from recallite import AsyncMemory, Memory
from recallite.agents.sessions import AsyncSession, Session
from recallite.errors import NotFound, StoreClosed
from recallite.plugin import Service
from recallite.system import plugins
from recallite.system.asynchrony import AsyncService, awaited
from tests.unit.core.memory.support import PLAIN


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


class Greetings(Service):
    def greet(self, name: str) -> str:
        return f"Hello {name}, in {self._base}"


class AsyncGreetings(AsyncService[Greetings]):
    greet = awaited(Greetings.greet)


SERVICES = {name: plugins.load("services", name) for name in plugins.names("services")}


def twin_of(kind):
    return getattr(import_module(kind.__module__), f"Async{kind.__name__}")


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("kind", "twin"),
    [*((kind, twin_of(kind)) for kind in SERVICES.values()), (Session, AsyncSession)],
    ids=[*SERVICES, "session"],
)
def test_the_async_twin_of_a_service_has_its_names_and_signatures(kind, twin):
    assert public(twin) == public(kind)
    for name in public(kind):
        if isinstance(getattr(kind, name), property):
            assert isinstance(getattr(twin, name), property), name
        else:
            assert inspect.signature(getattr(twin, name)) == inspect.signature(getattr(kind, name)), name
            assert inspect.iscoroutinefunction(getattr(twin, name)), name


def test_each_handle_has_each_service_once():
    awaits = AsyncMemory(":memory:", settings=PLAIN)
    with Memory(":memory:", settings=PLAIN) as memory:
        for name, kind in SERVICES.items():
            assert type(getattr(memory, name)) is kind
            assert type(getattr(awaits, name)) is twin_of(kind)
            assert Memory.__annotations__[name] == kind.__name__
            assert AsyncMemory.__annotations__[name] == twin_of(kind).__name__
            assert getattr(memory, name) is getattr(memory, name)
            assert getattr(memory, name) is not getattr(memory.scoped("/"), name)
            assert name in dir(memory)
            assert name in dir(awaits)


def test_a_registered_service_is_an_attribute(monkeypatch):
    entry = EntryPoint("greetings", f"{__name__}:Greetings", "recallite.services")
    entry = plugins.Registered(entry, "greetings")
    monkeypatch.setattr(plugins, "_registered", lambda: {"services": {"greetings": [entry]}})
    with Memory(":memory:", settings=PLAIN) as memory:
        assert memory.scoped("/a").greetings.greet("Ada") == "Hello Ada, in /a"

    async def live():
        async with AsyncMemory(":memory:", settings=PLAIN) as memory:
            assert await memory.scoped("/a").greetings.greet("Ada") == "Hello Ada, in /a"

    asyncio.run(live())
    plugins.load.cache_clear()


def test_what_is_read_without_awaiting_says_that_it_is_not_open():
    memory = AsyncMemory(":memory:", settings=PLAIN)
    for read in (lambda: memory.path, lambda: memory.settings, lambda: memory.scoped("/a")):
        with pytest.raises(StoreClosed, match="this AsyncMemory is not open yet"):
            read()
    with pytest.raises(AttributeError):
        memory.sessions.nothing_like_it  # noqa: B018
