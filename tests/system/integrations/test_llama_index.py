"""LlamaIndex's memory with a block over a Memory, and its query engines with a retriever over one."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("llama_index.core", reason="the extra llama-index is not installed")

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.llms import MockLLM, mock
from llama_index.core.memory import Memory as LlamaMemory
from llama_index.core.prompts import RichPromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer

from recallite import Memory
from recallite.errors import InvalidInput, StoreClosed
from recallite_connect.llama_index import RecalliteMemoryBlock, RecalliteRetriever

pytestmark = pytest.mark.usefixtures("offline")


def said(text, role="user", **beside):
    return ChatMessage(role=role, content=text, additional_kwargs=beside)


def small(block, session):
    """A memory whose short-term part holds a message or two."""
    return LlamaMemory.from_defaults(
        session_id=session, memory_blocks=[block], token_limit=200, token_flush_size=10, chat_history_token_ratio=0.1
    )


async def talk(block, session):
    memory = small(block, session)
    for text in ("I am allergic to peanuts, please remember that", "My dog is called Nero and he is seven years old"):
        await memory.aput_messages([said(text), said("I see, and thank you for telling me all of that", "assistant")])
    await memory.aput(said("Now let us talk about the weather of the coming week in Lisbon"))
    return memory


# ── the block ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_recalls_between_sessions_and_after_reopening(path):
    block = RecalliteMemoryBlock(memory=path, scope="/users/ada")
    asyncio.run(talk(block, "monday"))
    block.close()

    async def ask():
        block = RecalliteMemoryBlock(memory=path, scope="/users/ada", similarity_top_k=2)
        memory = small(block, "tuesday")
        messages = await memory.aget(input="Which food is dangerous for me?")
        block.close()
        return messages

    (system,) = asyncio.run(ask())
    assert system.role == "system"
    assert "I am allergic to peanuts, please remember that" in system.content
    assert "<Recallite>" in system.content


def test_messages_are_records_with_role_session_and_position(memory):
    block = RecalliteMemoryBlock(memory=memory, scope="/ada")
    asyncio.run(block.aput([said("one"), said("two", "assistant")], session_id="s"))
    asyncio.run(block.aput([said("three")], session_id="s"))
    asyncio.run(block.aput([said("four")]))
    found = [(each.text, each.context, each.source, each.position) for each in memory.list(order="oldest")]
    assert found == [
        ("one", "user", "s", 0),
        ("two", "assistant", "s", 1),
        ("three", "user", "s", 2),
        ("four", "user", None, None),
    ]
    assert {(each.scope, each.kind) for each in memory.list()} == {("/ada", "message")}


def test_what_has_no_text_is_not_kept_and_asks_nothing(memory):
    block = RecalliteMemoryBlock(memory=memory)
    picture = ChatMessage(role="user", blocks=[ImageBlock(url="http://example.com/a.png")])
    asyncio.run(block.aput([picture, said("  "), said(None)]))
    assert memory.count() == 0
    memory.remember("apple")
    assert [asyncio.run(block.aget(messages)) for messages in (None, [], [picture])] == ["", "", ""]


def test_a_block_that_takes_nothing_from_the_short_term_memory(memory):
    block = RecalliteMemoryBlock(memory=memory, accept_short_term_memory=False)
    asyncio.run(block.aput([said("one")], from_short_term_memory=True))
    assert memory.count() == 0


def test_sessions_and_scopes_are_apart(memory):
    block = RecalliteMemoryBlock(memory=memory, scope="/ada", across_sessions=False)
    other = RecalliteMemoryBlock(memory=memory, scope="/bob")
    for session in ("a", "b"):
        asyncio.run(block.aput([said(f"apple of {session}")], session_id=session))
    asyncio.run(other.aput([said("apple of bob")]))
    assert asyncio.run(block.aget([said("apple")], session_id="a")) == "apple of a"
    assert asyncio.run(other.aget([said("apple")], session_id="a")) == "apple of bob"
    block.across_sessions = True
    assert sorted(asyncio.run(block.aget([said("apple")], session_id="a")).split("\n\n")) == [
        "apple of a",
        "apple of b",
    ]


def test_the_last_messages_of_the_user_are_the_query(memory):
    memory.remember_many(["the pear is green", "the plum is blue", "the apple is red"])
    block = RecalliteMemoryBlock(memory=memory, similarity_top_k=1)
    messages = [said("plum"), said("pear"), said("an apple then", "assistant")]
    assert asyncio.run(block.aget(messages)) == "the pear is green"
    block.retrieval_context_window, block.similarity_top_k = 2, 2
    assert sorted(asyncio.run(block.aget(messages)).split("\n\n")) == ["the pear is green", "the plum is blue"]
    assert asyncio.run(block.aget(messages[2:])) == "the apple is red"


def test_a_template_frames_what_is_recalled(memory):
    block = RecalliteMemoryBlock(memory=memory, format_template=RichPromptTemplate("Known: {{ text }}"))
    assert asyncio.run(block.aget([said("apple")])) == ""
    memory.remember("the apple is red")
    assert asyncio.run(block.aget([said("apple")])) == "Known: the apple is red"


def test_what_fits_least_is_truncated_first(memory):
    block = RecalliteMemoryBlock(memory=memory)
    content = "one two three\n\nfour five six\n\nseven eight nine"
    assert asyncio.run(block.atruncate(content, 0)) == content
    assert asyncio.run(block.atruncate(content, 2)) == "one two three\n\nfour five six"
    assert asyncio.run(block.atruncate(content, 1_000)) is None


def test_messages_are_kept_all_or_none(memory):
    block = RecalliteMemoryBlock(memory=memory)
    with pytest.raises(InvalidInput):
        asyncio.run(block.aput([said("one"), said("long " * memory.settings.max_text_chars)]))
    assert memory.count() == 0
    asyncio.run(block.aput([said("one"), said("with a NUL \0")]))
    assert [record.text for record in memory.list(order="oldest")] == ["one", "with a NUL \ufffd"]


@pytest.mark.skipif(
    not hasattr(mock, "MockFunctionCallingLLM"), reason="this version of LlamaIndex has no scripted model for agents"
)
def test_an_agent_is_told_what_is_recalled(memory):
    memory.remember("The rent is due on the fifth", scope="/ada")
    prompts = []

    def answer(messages, **_):
        prompts.append("\n".join(block.text for message in messages for block in message.blocks))
        return ChatMessage(role="assistant", blocks=[TextBlock(text="On the fifth")])

    async def run():
        agent = FunctionAgent(llm=mock.MockFunctionCallingLLM(response_generator=answer), tools=[])
        llama = LlamaMemory.from_defaults(
            session_id="s", memory_blocks=[RecalliteMemoryBlock(memory=memory, scope="/ada")], token_limit=4_000
        )
        return await agent.run("When is the rent due?", memory=llama)

    assert str(asyncio.run(run())) == "On the fifth"
    assert "The rent is due on the fifth" in prompts[-1]


# ── the retriever ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_query_engine_answers_from_what_is_remembered(memory):
    memory.remember("The rent is due on the fifth", scope="/home", metadata={"page": 3}, context="Ada")
    memory.remember("The rent of the boat is due on the ninth", scope="/boat")
    retriever = RecalliteRetriever(memory, similarity_top_k=1, options={"scope": "/home"})
    engine = RetrieverQueryEngine(retriever, get_response_synthesizer(llm=MockLLM()))
    answers = [engine.query("When is the rent due?"), asyncio.run(engine.aquery("When is the rent due?"))]
    for answer in answers:
        (found,) = answer.source_nodes
        assert "The rent is due on the fifth" in str(answer)
        assert (found.text, found.score > 0) == ("The rent is due on the fifth", True)
        assert found.metadata.keys() == {"page", "scope", "kind", "created_at", "confidence", "context"}
        assert memory.get(found.node_id).text == found.text
    assert "confidence" not in str(answers[0])


def test_a_path_is_closed_and_a_memory_is_not(memory, path):
    with Memory(path) as opened:
        opened.remember("apple")
    with RecalliteRetriever(path) as retriever:
        assert [each.text for each in retriever.retrieve("apple")] == ["apple"]
    with pytest.raises(StoreClosed):
        retriever.retrieve("apple")
    RecalliteMemoryBlock(memory=memory).close()
    assert memory.count() == 0
    with pytest.raises(InvalidInput, match="memory is 7: give a Memory"):
        RecalliteRetriever(7)
    with pytest.raises(ValueError, match="memory is 7: give a Memory"):
        RecalliteMemoryBlock(memory=7)
