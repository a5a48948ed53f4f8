"""Agents of Google's kit recall what was said in earlier sessions."""

from __future__ import annotations

import asyncio

import pytest

from recallite import Memory
from recallite.errors import InvalidInput

pytest.importorskip("google.adk", reason="google-adk is not installed")

from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.memory._utils import format_timestamp
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools import load_memory
from google.genai import types

from recallite_connect.google_adk import RecalliteMemoryService

ADA = {"app_name": "desk", "user_id": "ada"}


def event(id, text, **fields):
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(**{"id": id, "author": "user", "timestamp": 1_700_000_000.5, "content": content, **fields})


def session(*events, id="s1", **ids):
    return Session(id=id, **{**ADA, **ids}, events=list(events))


async def texts(service, query, **ids):
    found = await service.search_memory(**{**ADA, **ids}, query=query)
    return [each.content.parts[0].text for each in found.memories]


class Scripted(BaseLlm):
    """A model that loads memories before it answers with them."""

    asked: list = []  # noqa: RUF012

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[0]
        if last.function_response is None and last.text != "Billing is run by Ada":
            call = types.FunctionCall(name="load_memory", args={"query": "Who runs billing?"})
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))
            return
        response = last.function_response
        said = "Noted." if response is None else response.response["result"].memories[0].content.parts[0].text
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))


def test_an_agent_loads_memories_of_an_earlier_session(path):
    async def talk(service, text, id):
        agent = LlmAgent(name="desk", model=Scripted(model="scripted"), tools=[load_memory])
        sessions = InMemorySessionService()
        runner = Runner(app_name="desk", agent=agent, session_service=sessions, memory_service=service)
        await sessions.create_session(**ADA, session_id=id)
        message = types.Content(role="user", parts=[types.Part(text=text)])
        said = [each async for each in runner.run_async(user_id="ada", session_id=id, new_message=message)]
        await service.add_session_to_memory(await sessions.get_session(**ADA, session_id=id))
        return said[-1].content.parts[0].text

    with RecalliteMemoryService(path) as service:
        assert asyncio.run(talk(service, "Billing is run by Ada", "s1")) == "Noted."
    with RecalliteMemoryService(path) as service:
        assert asyncio.run(talk(service, "Who runs billing?", "s2")) == "Billing is run by Ada"


def test_an_event_replaces_no_other_and_is_deleted_alone(path):
    async def talk(service):
        said = [
            event("a", "The dentist is Dr. Ruiz"),
            event("b", "The dentist is Dr. Vogel now", timestamp=1_710_000_000.0),
        ]
        for _ in range(2):
            await service.add_session_to_memory(session(*said))
            service.memory.store.catch_up()
        both = await texts(service, "Who is the dentist?")
        await service.delete_memory(**ADA, memory_id="b")
        left = await texts(service, "Who is the dentist?")
        await service.delete_memory(**ADA, memory_id="a")
        return both, left, await texts(service, "Who is the dentist?")

    with RecalliteMemoryService(path) as service:
        both, left, none = asyncio.run(talk(service))
    assert sorted(both) == ["The dentist is Dr. Ruiz", "The dentist is Dr. Vogel now"]
    assert (left, none) == (["The dentist is Dr. Ruiz"], [])
    with Memory(path) as memory:
        assert memory.count(kinds="adk-event", include_superseded=True) == 0


def test_what_was_superseded_by_hand_is_known_and_deleted_like_any_other(path):
    async def talk(service):
        said = session(event("a", "Tickets cost nine euros"), event("b", "The pool is being rebuilt"))
        await service.add_session_to_memory(said)
        ids = {record.metadata["event_id"]: record.id for record in service.memory.list(kinds="adk-event")}
        service.memory.supersede(ids["a"], ids["b"])
        await service.add_session_to_memory(said)
        assert service.memory.count(kinds="adk-event", include_superseded=True) == 2
        await service.delete_memory(**ADA, memory_id="a")
        return [
            record.metadata["event_id"] for record in service.memory.list(kinds="adk-event", include_superseded=True)
        ]

    with RecalliteMemoryService(path) as service:
        assert asyncio.run(talk(service)) == ["b"]


def test_a_memory_comes_back_as_it_was(path):
    async def talk(service):
        parts = [types.Part(text="The chart"), types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")]
        content = types.Content(role="model", parts=[*parts, types.Part(text="of billing")])
        await service.add_events_to_memory(
            **ADA, events=[event("e1", "", content=content, author="desk")], session_id="s1", custom_metadata={"k": 1}
        )
        (found,) = (await service.search_memory(**ADA, query="billing chart")).memories
        assert (found.id, found.author, found.custom_metadata) == ("e1", "desk", {"k": 1})
        assert found.timestamp == "2023-11-14T22:13:20.500000+00:00"
        assert found.content == types.Content(role="model", parts=[parts[0], types.Part(text="of billing")])

    with RecalliteMemoryService(path) as service:
        asyncio.run(talk(service))


def test_a_session_that_is_added_again_is_brought_up_to_date():
    async def talk(service):
        empty = event("e0", "", content=None)
        await service.add_session_to_memory(
            session(empty, event("e1", "Ada drinks tea"), event("e2", "Ada owns a cat"))
        )
        (kept,) = service.memory.list(where={"text": "Ada drinks tea"})
        await service.add_session_to_memory(session(event("e1", "Ada drinks tea"), event("e2", "Ada owns a dog")))
        assert [each.id for each in service.memory.list(where={"text": "Ada drinks tea"})] == [kept.id]
        await service.add_events_to_memory(
            **ADA, session_id="s1", events=[event("e1", "changed"), event("e3", "Ada has a bike")]
        )
        assert sorted(each.text for each in service.memory.list()) == [
            "Ada drinks tea",
            "Ada has a bike",
            "Ada owns a dog",
        ]
        await service.add_session_to_memory(session())
        return service.memory.count()

    with RecalliteMemoryService(":memory:") as service:
        assert asyncio.run(talk(service)) == 0


def test_an_event_is_stored_once_whether_its_session_is_told_or_not():
    async def talk(service):
        first, second = event("e1", "Ada drinks tea"), event("e2", "Ada owns a cat")
        await service.add_session_to_memory(session(first))
        await service.add_events_to_memory(**ADA, events=[first, second])
        await service.add_session_to_memory(session(first, second))
        return sorted((each.text, each.source) for each in service.memory.list())

    with RecalliteMemoryService(":memory:") as service:
        assert asyncio.run(talk(service)) == [("Ada drinks tea", "s1"), ("Ada owns a cat", "s1")]


def test_a_time_in_words_or_without_a_zone_is_kept():
    async def talk(service, timestamp):
        content = types.Content(parts=[types.Part(text="Ada drinks tea")])
        await service.add_memory(**ADA, memories=[MemoryEntry(content=content, timestamp=timestamp)])
        (found,) = (await service.search_memory(**ADA, query="Ada drinks tea")).memories
        return found.timestamp

    for timestamp in ("last spring", format_timestamp(1_700_000_000.5)):
        with RecalliteMemoryService(":memory:", mode="keyword") as service:
            told = asyncio.run(talk(service, timestamp))
            (kept,) = service.memory.list()
        assert told == "last spring" or kept.created_at.timestamp() == 1_700_000_000.5


def test_what_was_deleted_is_not_added_again(path):
    async def talk(service):
        await service.add_session_to_memory(
            session(event("e1", "The vault code is 1234"), event("e2", "Ada drinks tea"))
        )
        await service.delete_memory(**ADA, memory_id="e1")
        await service.delete_memory(**ADA, memory_id="unknown")
        await service.delete_memory(**ADA)
        await service.add_session_to_memory(
            session(event("e1", "The vault code is 1234"), event("e2", "Ada drinks tea"))
        )
        return await texts(service, "vault code"), await texts(service, "tea")

    with RecalliteMemoryService(path) as service:
        assert asyncio.run(talk(service)) == ([], ["Ada drinks tea"])
        assert "1234" not in str(service.memory.list(limit=None))


def test_users_and_applications_are_kept_apart():
    async def talk(service):
        owners = [("a/b", "c"), ("a", "b/c"), ("a", ".."), ("a", "c")]
        for number, (app, user) in enumerate(owners):
            await service.add_session_to_memory(
                session(event("e", f"The code is {number}"), app_name=app, user_id=user)
            )
        return [await texts(service, "What is the code?", app_name=app, user_id=user) for app, user in owners]

    with Memory(":memory:") as memory, RecalliteMemoryService(memory) as service:
        assert asyncio.run(talk(service)) == [[f"The code is {number}"] for number in range(4)]


def test_memories_are_added_directly_and_found_by_meaning():
    async def talk(service):
        content = types.Content(parts=[types.Part(text="Ada is allergic to peanuts")])
        await service.add_memory(
            **ADA, memories=[MemoryEntry(id="m1", content=content, timestamp="2026-01-02T03:04:05Z")]
        )
        await service.add_memory(**ADA, memories=[MemoryEntry(id="m1", content=content), MemoryEntry(content=content)])
        found = (await service.search_memory(**ADA, query="What must she not eat?")).memories
        return {each.id: each.timestamp for each in found}, service.memory.count()

    with RecalliteMemoryService(":memory:", relevant=False) as service:
        times, count = asyncio.run(talk(service))
    assert times["m1"] == "2026-01-02T03:04:05+00:00"
    assert (len(times), count) == (2, 2)


@pytest.mark.parametrize(
    ("ids", "query", "why"),
    [
        ({"user_id": ""}, "q", "user_id is ''"),
        ({"app_name": None}, "q", "app_name is None"),
        ({}, None, "query is None"),
    ],
)
def test_what_is_wrong_is_named(ids, query, why):
    with RecalliteMemoryService(":memory:") as service, pytest.raises(InvalidInput, match=why):
        asyncio.run(service.search_memory(**{**ADA, **ids}, query=query))
