"""The providers for Microsoft's agent framework, in agents with a scripted chat client."""

from __future__ import annotations

import asyncio
import json
import math

import pytest

from tests.raising import raises

pytest.importorskip("agent_framework", reason="agent-framework-core is not installed")

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

from recallite import Memory
from recallite.errors import InvalidInput, StoreClosed
from recallite_connect.agent_framework import (
    RecalliteContextProvider,
    RecalliteHistoryProvider,
)


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A chat client that answers with these contents in turn; `asked` are the messages it got."""

    def __init__(self, *answers):
        super().__init__(middleware=[])
        self.answers, self.asked, self.tools = [*answers], [], []

    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        self.asked.append([*messages])
        self.tools.append([tool.name for tool in options.get("tools") or ()])
        content = self.answers.pop(0)
        content = Content.from_text(content) if isinstance(content, str) else content

        async def whole():
            return ChatResponse(messages=[Message(role="assistant", contents=[content])])

        async def parts():
            yield ChatResponseUpdate(role="assistant", contents=[content])

        return ResponseStream(parts(), finalizer=ChatResponse.from_updates) if stream else whole()


def call(**arguments):
    return Content.from_function_call(call_id="c1", name="memory", arguments=json.dumps(arguments))


def run(coroutine):
    return asyncio.run(coroutine)


def texts(messages):
    return [message.text for message in messages]


# ── history ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_messages_are_given_back_as_they_were(memory):
    provider = RecalliteHistoryProvider(memory)
    given = [
        Message(role="user", contents=["What is it? ☕"], message_id="m1", additional_properties={"n": 1}),
        Message(role="assistant", contents=[call(action="recall", query="tea")]),
        Message(role="tool", contents=[Content.from_function_result(call_id="c1", result="tea")]),
    ]
    run(provider.save_messages("s", given))
    assert [each.to_dict() for each in run(provider.get_messages("s"))] == [each.to_dict() for each in given]
    assert run(provider.get_messages("other")) == []


def test_numbers_that_json_has_not_are_given_back(memory):
    provider = RecalliteHistoryProvider(memory)
    properties = {"scores": [math.inf, {"worst": -math.inf}, 0.5], "told": {"$number": "NaN"}}
    given = [
        Message(role="tool", contents=["measured"], additional_properties={"loss": math.nan}),
        Message(role="tool", contents=["ranked"], additional_properties=properties),
        Message(role="user", contents=["fine"], additional_properties={"told": {"$number": "NaN"}}),
    ]
    run(provider.save_messages("s", given))
    loss, ranked, fine = (each.additional_properties for each in run(provider.get_messages("s")))
    assert math.isnan(loss["loss"])
    assert ranked == properties
    assert fine == {"told": {"$number": "NaN"}}


def test_messages_are_added_at_the_end(memory):
    provider = RecalliteHistoryProvider(memory)
    run(provider.save_messages("s", [Message(role="user", contents=["yes"])]))
    run(provider.save_messages("s", []))
    run(provider.save_messages("s", [Message(role="user", contents=["yes"])]))
    assert texts(run(provider.get_messages("s"))) == ["yes", "yes"]


def test_without_an_id_there_is_one_session(memory):
    provider = RecalliteHistoryProvider(memory)
    run(provider.save_messages(None, [Message(role="user", contents=["hello"])]))
    assert texts(run(provider.get_messages(None))) == ["hello"]
    assert [each.id for each in memory.sessions.list()] == ["default"]


@pytest.mark.parametrize(("skips", "kept"), [(False, ["keep", "skip"]), (True, ["keep"])])
def test_excluded_messages_are_left_out_on_request(memory, skips, kept):
    provider = RecalliteHistoryProvider(memory, skip_excluded=skips)
    excluded = Message(role="assistant", contents=["skip"], additional_properties={"_excluded": True})
    run(provider.save_messages("s", [Message(role="user", contents=["keep"]), excluded]))
    assert texts(run(provider.get_messages("s"))) == kept


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_goes_on_after_reopening(path, streamed):
    async def ask(client, question):
        agent, session = Agent(client=client, context_providers=[provider]), AgentSession(session_id="chat")
        if not streamed:
            return (await agent.run(question, session=session)).text
        return (await agent.run(question, session=session, stream=True).get_final_response()).text

    with RecalliteHistoryProvider(path) as provider:
        assert run(ask(Scripted("Paris."), "Where is the tower?")) == "Paris."
    with pytest.raises(StoreClosed):
        run(provider.get_messages("chat"))
    second = Scripted("France.")
    with RecalliteHistoryProvider(path) as provider:
        assert run(ask(second, "In which country?")) == "France."
        stored = run(provider.get_messages("chat"))
    assert texts(second.asked[0]) == ["Where is the tower?", "Paris.", "In which country?"]
    assert texts(stored) == ["Where is the tower?", "Paris.", "In which country?", "France."]


def test_scopes_keep_sessions_of_the_same_id_apart(memory):
    ada, bob = (RecalliteHistoryProvider(memory, scope=f"/users/{name}") for name in ("ada", "bob"))
    run(ada.save_messages("s", [Message(role="user", contents=["secret"])]))
    assert run(bob.get_messages("s")) == []


def test_what_is_stored_follows_the_flags(memory):
    provider = RecalliteHistoryProvider(memory, load_messages=False, store_outputs=False, source_id="audit")
    client, session = Scripted("one", "two"), AgentSession(session_id="s")
    agent = Agent(client=client, context_providers=[provider])
    for question in ("first", "second"):
        run(agent.run(question, session=session))
    assert texts(run(provider.get_messages("s"))) == ["first", "second"]


# ── context ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_model_gets_what_is_recalled_and_remembers_with_the_tool(memory):
    memory.remember("Ada takes no sugar in her tea", scope="/users/ada")
    client = Scripted(call(action="write", text="Ada has her tea at four"), "Noted.")
    provider = RecalliteContextProvider(memory, scope=lambda session: f"/users/{session.state['user']}")
    agent = Agent(client=client, context_providers=[provider], instructions="Be brief.")

    def ask(user, question):
        session = AgentSession(session_id=f"chat-{user}")
        session.state["user"] = user
        return run(agent.run(question, session=session)).text

    assert ask("ada", "I take my tea at four. Sugar?") == "Noted."
    recalled = next(text for text in texts(client.asked[0]) if "<recalled-memories>" in text)
    assert "Ada takes no sugar in her tea" in recalled
    assert client.tools[0] == ["memory"]
    assert {(each.text, each.scope) for each in memory.list()} == {
        ("Ada takes no sugar in her tea", "/users/ada"), ("Ada has her tea at four", "/users/ada"),
    }  # fmt: skip
    client.answers = ["I do not know."]
    ask("bob", "sugar in her tea?")
    assert not any("<recalled-memories>" in text for text in texts(client.asked[-1]))


def test_what_the_model_gets_wrong_is_its_answer(memory):
    client = Scripted(call(action="remove", id="unknown"), "Sorry.")
    run(Agent(client=client, context_providers=[RecalliteContextProvider(memory)]).run("forget it"))
    (result,) = [each for message in client.asked[1] for each in message.contents if each.type == "function_result"]
    assert '"not_found"' in str(result.result)


def test_inputs_are_remembered_on_request_only(memory):
    for remembers, texts_after in ((False, []), (True, ["Ada moved to Rome in May"])):
        provider = RecalliteContextProvider(memory, tool=False, remember_inputs=remembers, scope="/ada")
        client = Scripted("I see.")
        run(Agent(client=client, context_providers=[provider]).run("Ada moved to Rome in May"))
        assert [(each.text, each.scope) for each in memory.list()] == [(text, "/ada") for text in texts_after]
        assert client.tools == [[]]


def test_nothing_is_recalled_with_a_limit_of_none_or_for_a_blank_input(memory):
    memory.remember("Ada drinks tea")
    client = Scripted("one", "two")
    run(Agent(client=client, context_providers=[RecalliteContextProvider(memory, limit=0)]).run("tea"))
    run(Agent(client=client, context_providers=[RecalliteContextProvider(memory)]).run(" "))
    assert not any("<recalled" in text for asked in client.asked for text in texts(asked))


def test_both_providers_share_a_memory(memory):
    memory.remember("Ada drinks tea")
    history, context = RecalliteHistoryProvider(memory), RecalliteContextProvider(memory)
    client, session = Scripted("Tea.", "Yes."), AgentSession(session_id="s")
    agent = Agent(client=client, context_providers=[history, context])
    run(agent.run("What does Ada drink?", session=session))
    run(agent.run("Does Ada drink tea?", session=session))
    assert texts(run(history.get_messages("s"))) == ["What does Ada drink?", "Tea.", "Does Ada drink tea?", "Yes."]


def test_a_provider_of_a_path_closes_its_memory(path):
    with RecalliteContextProvider(path, remember_inputs=True) as provider:
        run(Agent(client=Scripted("I see."), context_providers=[provider]).run("Ada moved to Rome"))
    with Memory(path) as again:
        assert again.count() == 1


def test_bad_arguments_are_refused(memory):
    with raises(InvalidInput, "filter", match="absolute"):
        RecalliteHistoryProvider(memory, scope="users")
    with pytest.raises(InvalidInput, match="limit"):
        RecalliteContextProvider(memory, limit=-1)
    with pytest.raises(InvalidInput, match="source_id"):
        RecalliteContextProvider(memory, source_id="")
    with pytest.raises(InvalidInput, match="id"):
        run(RecalliteHistoryProvider(memory).save_messages("", [Message(role="user", contents=["x"])]))
    provider = RecalliteContextProvider(memory, scope=lambda session: "users")
    with raises(InvalidInput, "filter", match="absolute"):
        run(Agent(client=Scripted("x"), context_providers=[provider]).run("hello"))
