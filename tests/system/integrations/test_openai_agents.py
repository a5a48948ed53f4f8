"""The Session, the tool and the instructions for the OpenAI Agents SDK, in runs with its scripted model."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing

import apsw
import pytest

from tests.raising import raises

agents = pytest.importorskip("agents", reason="openai-agents is not installed")

from agents.testing import ScriptedModel, assistant_message, function_call  # noqa: E402

from recallite import Memory, Settings  # noqa: E402
from recallite.errors import InvalidInput  # noqa: E402
from recallite_connect.openai_agents import RecalliteSession, memory_tool, recalling  # noqa: E402

PLAIN = Settings(embedder="none")
CALL = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"city": "Zürich"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "🗻"}


@pytest.fixture(autouse=True)
def no_tracing():
    agents.set_tracing_disabled(True)  # traces are sent to OpenAI


def said(content, role="user"):
    return {"role": role, "content": content}


def run(coroutine):
    return asyncio.run(coroutine)


async def texts(session, limit=None):
    return [item.get("content") for item in await session.get_items(limit)]


def test_it_is_a_session_of_the_sdk(memory):
    assert isinstance(RecalliteSession("s", memory), agents.Session)


def test_items_without_a_role_are_kept_as_they_are(memory):
    session = RecalliteSession("s", memory)
    items = [said("where?"), CALL, OUTPUT, {"role": "assistant", "content": [{"type": "output_text", "text": "there"}]}]
    run(session.add_items(items))
    assert run(session.get_items()) == items


def test_an_output_with_characters_that_no_text_has_does_not_end_a_run(memory):
    session = RecalliteSession("s", memory)
    listed = {"type": "function_call_output", "call_id": "c1", "output": "src/a.py\0src/b\udcff.py\0"}
    run(session.add_items([said("which files?"), CALL, listed]))
    *_, kept = run(session.get_items())
    assert kept == listed | {"output": "src/a.py\ufffdsrc/b\ufffd.py\ufffd"}


def test_the_last_item_is_popped_and_an_empty_session_has_none(memory):
    session = RecalliteSession("s", memory)
    assert run(session.pop_item()) is None
    run(session.add_items([said("one"), CALL]))
    assert run(session.pop_item()) == CALL
    assert run(session.pop_item()) == said("one")
    assert run(session.pop_item()) is None


def test_concurrent_pops_take_each_item_once(on_disk):
    session = RecalliteSession("s", on_disk)
    run(session.add_items([said(str(number)) for number in range(20)]))

    async def pop_all():
        return await asyncio.gather(*(session.pop_item() for _ in range(25)))

    popped = [item["content"] for item in run(pop_all()) if item is not None]
    assert sorted(popped, key=int) == [str(number) for number in range(20)]


@pytest.mark.parametrize(
    ("settings", "limit", "wanted"),
    [
        (None, None, ["0", "1", "2", "3"]),
        ({"limit": 2}, None, ["2", "3"]),
        (agents.SessionSettings(limit=3), None, ["1", "2", "3"]),
        ({"limit": 2}, 1, ["3"]),
        ({"limit": 2}, 9, ["0", "1", "2", "3"]),
        (None, 0, []),
        ({"limit": 0}, None, []),
    ],
)
def test_a_limit_takes_the_last_items(memory, settings, limit, wanted):
    session = RecalliteSession("s", memory, session_settings=settings)
    run(session.add_items([said(str(number)) for number in range(4)]))
    assert run(texts(session, limit)) == wanted


def test_a_session_that_another_process_ends_meanwhile_is_empty(memory, monkeypatch):
    session = RecalliteSession("s", memory)
    run(session.add_items([said("one")]))
    opened = session._session()
    monkeypatch.setattr(session, "_session", lambda: opened)
    memory.sessions.get("s").end()
    assert run(session.pop_item()) is None
    run(session.clear_session())


def test_instructions_refuse_a_limit_when_they_are_made(memory):
    with pytest.raises(InvalidInput, match="limit"):
        recalling("Be brief.", memory, limit=0)


def test_a_cleared_session_is_empty_and_takes_new_items(memory):
    session, other = RecalliteSession("s", memory), RecalliteSession("other", memory)
    run(session.clear_session())
    run(session.add_items([said("old")]))
    run(other.add_items([said("other")]))
    run(session.clear_session())
    assert run(session.get_items()) == []
    run(session.add_items([said("new")]))
    assert run(texts(session)) == ["new"]
    assert run(texts(other)) == ["other"]


def test_scopes_keep_sessions_of_the_same_id_apart(memory):
    ada, bob = (RecalliteSession("s", memory, scope=scope) for scope in ("/users/ada", "/users/bob"))
    run(ada.add_items([said("secret")]))
    assert run(bob.get_items()) == []
    run(bob.clear_session())
    assert run(texts(ada)) == ["secret"]
    assert [each.scope for each in memory.sessions.list()] == ["/users/ada"]


def test_a_session_of_a_path_is_there_again_after_reopening(path):
    with RecalliteSession("s", path) as session:
        run(session.add_items([said("kept"), CALL]))
    with pytest.raises(RuntimeError, match="RecalliteSession is closed"):
        run(session.get_items())
    with pytest.raises(RuntimeError, match="RecalliteSession is closed"):
        run(session.add_items([]))
    with RecalliteSession("s", path) as again:
        assert run(again.get_items()) == [said("kept"), CALL]


def test_damaged_items_are_left_out_and_do_not_count(path):
    with Memory(path, settings=PLAIN) as memory:
        session = RecalliteSession("s", memory)
        run(session.add_items([said("0"), said("1"), said("2"), said("3")]))
        with closing(apsw.Connection(str(path))) as other:
            other.execute("UPDATE session_message SET message = '{' WHERE position IN (1, 3)")
        assert run(texts(session, 2)) == ["0", "2"]
        assert run(session.pop_item()) == said("2")
        assert run(texts(session)) == ["0"]


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([{}], InvalidInput, "message"),
        (["text"], InvalidInput, "message"),
        ([said("ok"), {"role": "user", "content": object()}], TypeError, "not JSON serializable"),
    ],
)
def test_items_that_are_no_json_objects_are_refused_and_nothing_is_stored(memory, items, error, message):
    session = RecalliteSession("s", memory)
    with pytest.raises(error, match=message):
        run(session.add_items(items))
    assert memory.sessions.list() == []


def test_bad_arguments_are_refused(memory):
    with pytest.raises(InvalidInput, match="session_id"):
        RecalliteSession("", memory)
    with raises(InvalidInput, "filter", match="absolute"):
        RecalliteSession("s", memory, scope="users")
    with pytest.raises(InvalidInput, match="session_settings is 3"):
        RecalliteSession("s", memory, session_settings=3)
    with pytest.raises(InvalidInput, match="limit is -1"):
        run(RecalliteSession("s", memory).get_items(-1))


@pytest.mark.parametrize("streamed", [False, True])
def test_a_second_run_sees_the_first(memory, streamed):
    model = ScriptedModel([[assistant_message("It is in Paris.")], [assistant_message("In France.")]])
    agent = agents.Agent(name="guide", model=model)
    session = RecalliteSession("s", memory)

    async def ask(question):
        if not streamed:
            return (await agents.Runner.run(agent, question, session=session)).final_output
        result = agents.Runner.run_streamed(agent, question, session=session)
        async for _ in result.stream_events():
            pass
        return result.final_output

    async def both():
        return await ask("Where is the tower?"), await ask("In which country?")

    assert run(both()) == ("It is in Paris.", "In France.")
    second = model.calls[-1].input
    assert [item["content"] for item in second if item["role"] == "user"] == [
        "Where is the tower?",
        "In which country?",
    ]
    assert len(run(session.get_items())) == 4


def test_an_agent_writes_with_the_tool_and_another_one_recalls_it(memory):
    writer = ScriptedModel(
        [
            [function_call("memory", {"action": "write", "text": "Ada takes no sugar in her tea"}, call_id="c1")],
            [assistant_message("Noted.")],
        ]
    )
    session = RecalliteSession("s", memory, scope="/users/ada")
    tool = memory_tool(memory, scope="/users/ada")
    agent = agents.Agent(name="writer", model=writer, tools=[tool])
    assert run(agents.Runner.run(agent, "I take no sugar", session=session)).final_output == "Noted."
    (record,) = memory.list(kinds=["memory"])
    assert (record.text, record.scope) == ("Ada takes no sugar in her tea", "/users/ada")
    assert [item.get("type") for item in run(session.get_items())][1:3] == ["function_call", "function_call_output"]

    reader = ScriptedModel([[assistant_message("No.")], [assistant_message("I do not know.")]])
    for scope in ("/users/ada", "/users/bob"):
        instructions = recalling("Be brief.", memory, scope=scope)
        run(agents.Runner.run(agents.Agent(name="reader", model=reader, instructions=instructions), "sugar in tea?"))
    ada, bob = (call.system_instructions for call in reader.calls)
    assert ada.startswith("Be brief.\n\n<recalled-memories>")
    assert "Ada takes no sugar in her tea" in ada
    assert bob == "Be brief."


def test_what_the_model_gets_wrong_is_its_answer(memory):
    model = ScriptedModel([[function_call("memory", {"action": "burn"}, call_id="c1")], [assistant_message("Sorry.")]])
    agent = agents.Agent(name="clumsy", model=model, tools=[memory_tool(memory)])
    run(agents.Runner.run(agent, "burn it"))
    output = next(item["output"] for item in model.calls[-1].input if item.get("type") == "function_call_output")
    assert json.loads(output.splitlines()[1])["error"]["type"] == "unknown_action"
