"""Sessions (seed 002) and their search (seed 003): stored as they are said, restored, shared, searched, ended."""

from __future__ import annotations

import contextlib
import re
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from recallite import Memory, NewRecord, Settings
from recallite.errors import EmbedderError, InvalidInput, NotFound, StoreCorrupt
from tests.limits import LAST_RESORT_SECONDS
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, WordEmbedder, raw, scored, state

MESSAGES = [
    {"role": "system", "content": "Be brief"},
    {"role": "user", "content": "What are the main risks in this architecture? 🎉"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"arguments": '{"n": 1}'}}]},
    {"role": "tool", "content": [{"type": "text", "text": "three risks"}, {"type": "image", "data": "…"}]},
    {"role": "user", "content": "", "n": 2**53 + 1, "deep": {"x": [1.5, None, True]}},
]


def test_a_session_without_an_id_gets_a_uuid(memory):
    session = memory.sessions.open()
    assert str(uuid.UUID(session.id)) == session.id
    session.append("user", "hello")
    assert memory.sessions.open(session.id).messages() == [{"role": "user", "content": "hello"}]


def test_each_agent_has_session_ids_of_its_own(memory):
    """A foreign id is indistinguishable from a missing one, so one id opens another session for another agent."""
    memory.sessions.open("s", agent="ada").append("user", "ada's words")
    bobs = memory.sessions.open("s", agent="bob")
    assert bobs.messages() == []
    bobs.append("user", "bob's words")
    assert memory.sessions.open("s", agent="ada").messages() == [{"role": "user", "content": "ada's words"}]
    assert [(each.id, each.agent) for each in memory.sessions.list(agent="bob")] == [("s", "bob")]
    assert [hit.agent for hit in memory.sessions.search("words", agent="bob")] == ["bob"]
    bobs.end()
    assert memory.sessions.open("s", agent="ada").messages() != []
    assert memory.scoped("/agents/ada").sessions.list()[0].messages == 1


def test_the_provider_is_the_last_that_was_named(memory):
    memory.sessions.open("s", provider="anthropic")
    assert memory.sessions.open("s").provider == "anthropic"
    assert memory.sessions.open("s", provider="openai").provider == "openai"
    assert memory.sessions.list()[0].provider == "openai"


def test_end_removes_the_session_and_may_leave_a_snapshot(memory):
    session = memory.sessions.open("s", agent="ada")
    session.extend(MESSAGES)
    taken = session.end(snapshot=True, summary="risks", key_decisions=["mitigate"], total_tokens=12)
    assert ([*taken.messages], taken.summary, taken.total_tokens) == (MESSAGES, "risks", 12)
    assert memory.episodes.last_snapshot("ada") == taken
    assert memory.sessions.list() == []
    assert memory.sessions.search("risks architecture") == []
    assert session.end() is None
    with pytest.raises(NotFound, match="no session 's' here"):
        session.append("user", "too late")
    with pytest.raises(NotFound):
        session.messages()
    assert memory.sessions.open("s", agent="ada").messages() == []
    assert memory.store.verify().problems == ()


def test_sessions_are_listed_by_last_use_and_cleaned_up_by_age(memory):
    now = datetime.now(UTC)
    for days in (40, 1, 20):
        memory.sessions.open(f"{days} days").append("user", "x", created_at=now - timedelta(days=days))
    assert [each.id for each in memory.sessions.list()] == ["1 days", "20 days", "40 days"]
    assert memory.sessions.list()[0].updated_at == now - timedelta(days=1)
    assert memory.sessions.cleanup(timedelta(days=30)) == 1
    assert memory.sessions.cleanup(timedelta(days=10), agent="ada") == 0
    assert [each.id for each in memory.sessions.list(limit=1)] == ["1 days"]
    assert len(memory.sessions.list()) == 2


def test_session_search_is_by_keyword_with_stems_and_cjk(memory):
    session = memory.sessions.open("s")
    for content in (
        "We were deploying on Friday",
        "東京の天気は晴れです",
        "Nothing of note",
        "The Deployment failed: x",
    ):
        session.append("user", content)

    def found(query, **options):
        return [hit.content for hit in memory.sessions.search(query, **options)]

    assert sorted(found("deployed", limit=2)) == ["The Deployment failed: x", "We were deploying on Friday"]
    assert found("天気", relevant=True) == ["東京の天気は晴れです"]
    assert found("the friday failure nothing", limit=2) != []
    hit = memory.sessions.search("天気")[0]
    assert (hit.session, hit.position, hit.role) == ("s", 1, "user")
    assert hit.score > 0
    scores = [each.score for each in memory.sessions.search("deploying friday failed")]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    "query", ['"', "' OR 1=1 --", "NEAR(", "words*", "a AND NOT b", "(((", "\x00", "", "   ", "{}^:", "\ud800"]
)
def test_any_text_is_a_valid_query(memory, query):
    memory.sessions.open("s").append("user", "some words")
    assert isinstance(memory.sessions.search(query), list)


def test_parts_are_searched_and_tool_calls_kept(memory):
    memory.sessions.open("s").extend(MESSAGES)
    assert memory.sessions.search("three")[0].position == 3


def test_the_last_message_is_popped_and_all_are_cleared(memory):
    session = memory.sessions.open("s")
    assert session.pop() is None
    session.extend(MESSAGES)
    assert session.pop() == MESSAGES[-1]
    assert session.append("user", "instead") == 4
    assert session.messages() == [*MESSAGES[:-1], {"role": "user", "content": "instead"}]
    assert session.clear() == 5
    assert session.messages() == []
    assert session.clear() == 0
    assert memory.sessions.search("architecture") == []
    assert session.append("user", "again") == 0
    assert memory.store.verify().problems == ()
    session.end()
    for gone in (session.pop, session.clear):
        with pytest.raises(NotFound, match="no session 's' here"):
            gone()


def test_items_of_a_run_need_no_role(memory):
    items = [
        {"role": "user", "content": "What is the weather?"},
        {"type": "function_call", "name": "weather", "arguments": "{}", "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": "sunny"},
        {"role": None, "content": "nobody said this"},
    ]
    session = memory.sessions.open("s")
    session.extend(items)
    assert session.messages() == items
    assert memory.sessions.search("nobody")[0].role is None
    assert session.pop() == items[-1]
    assert session.end(snapshot=True).messages == tuple(items[:-1])


def test_limits_count_intact_messages(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.sessions.open("s").extend(MESSAGES)
        raw(path).execute("UPDATE session_message SET message = '{' WHERE position IN (1, 3, 4)")
        session = memory.sessions.open("s")
        assert session.messages(limit=0) == []
        assert session.messages(limit=1, skip_damaged=True) == [MESSAGES[2]]
        assert session.messages(limit=2, skip_damaged=True) == [MESSAGES[0], MESSAGES[2]]
        assert session.messages(limit=9, skip_damaged=True) == [MESSAGES[0], MESSAGES[2]]
        with raises(StoreCorrupt, "message", match="message 4"):
            session.pop()
        assert memory.sessions.list()[0].messages == 5
        assert session.pop(skip_damaged=True) == MESSAGES[2]
        assert session.pop(skip_damaged=True) == MESSAGES[0]
        assert session.pop(skip_damaged=True) is None
        assert memory.store.verify().problems == ()


def test_a_session_ended_by_another_process_says_so(path):
    with Memory(path, settings=PLAIN) as memory, Memory(path, settings=PLAIN) as other:
        session = memory.sessions.open("s")
        session.append("user", "one")
        other.sessions.open("s").end()
        with pytest.raises(NotFound, match="no session 's' here"):
            session.append("user", "two")
        assert memory.sessions.list() == []


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ('{"role": "user"', "not JSON"),
        ('["a"]', "not a message"),
        ('{"role": 1}', "not a message"),
        (b"\xff", "not JSON.*utf-8"),
    ],
)
def test_a_malformed_row_is_named_and_nothing_else_is_lost(path, broken, reason):
    with Memory(path, settings=PLAIN) as memory:
        memory.sessions.open("broken").extend(MESSAGES)
        memory.sessions.open("whole").extend(MESSAGES)
    other = raw(path)
    other.execute(
        "UPDATE session_message SET message = ? WHERE position = 2 AND session_id = "
        "(SELECT id FROM session WHERE name = 'broken')",
        (broken,),
    )
    other.close()
    with Memory(path, settings=PLAIN) as memory:
        session = memory.sessions.open("broken")
        with raises(StoreCorrupt, "message", match=f"session 'broken', message 2: .*{reason}"):
            session.messages()
        with raises(StoreCorrupt, "message"):
            session.end(snapshot=True)
        assert session.messages(skip_damaged=True) == [*MESSAGES[:2], *MESSAGES[3:]]
        assert session.append("user", "goes on") == 5
        assert memory.sessions.open("whole").messages() == MESSAGES
        assert {each.id: each.messages for each in memory.sessions.list()} == {"broken": 6, "whole": 5}
        assert {hit.session for hit in memory.sessions.search("architecture")} == {"broken", "whole"}
        session.end()
        assert [each.id for each in memory.sessions.list()] == ["whole"]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (7, "the message is int 7: give a dict"),
        ({}, "the message is empty"),
        ({"role": ""}, "the message's role is ''"),
        ({"role": 7}, "the message's role is 7"),
        ({"role": "user", "content": float("nan")}, "message.content is nan: JSON has no such number"),
        ({"role": "user", "content": b"x"}, "message.content is bytes"),
        ({"role": "user", "content": {1, 2}}, "message.content is set"),
        ({"role": "user", 7: "x"}, "message has the key 7: keys are str"),
        ({"role": "user", "content": "\ud800"}, "lone surrogate"),
        ({"role": "user", "content": "a\x00b"}, "NUL"),
    ],
)
def test_messages_that_are_no_json_are_refused(memory, message, reason):
    session = memory.sessions.open("s")
    session.append("user", "stays")
    with pytest.raises(InvalidInput, match=re.escape(reason)):
        session.extend([{"role": "user", "content": "all or none"}, message])
    assert session.messages() == [{"role": "user", "content": "stays"}]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda sessions: sessions.open(""), "id is ''"),
        (lambda sessions: sessions.open(7), "id is 7"),
        (lambda sessions: sessions.open("x", provider=""), "provider is ''"),
        (lambda sessions: sessions.search(7), "query is int 7"),
        (lambda sessions: sessions.search("x", limit=0), "limit is 0"),
        (lambda sessions: sessions.cleanup(30), "older_than is 30: give a timedelta"),
        (lambda sessions: sessions.cleanup(timedelta(days=-1)), "give a timedelta"),
        (lambda sessions: sessions.open("s").extend("hello"), "messages is 'hello'"),
        (lambda sessions: sessions.open("s").append({"role": "user"}, "x"), "not both"),
    ],
)
def test_bad_input_to_sessions_is_refused(memory, call, message):
    memory.sessions.open("s")
    before = state(memory), memory.sessions.list()
    with pytest.raises(InvalidInput, match=message):
        call(memory.sessions)
    assert (state(memory), memory.sessions.list()) == before


def test_verify_and_rebuild_keep_messages_and_their_records_together(path):
    with Memory(path, settings=PLAIN) as memory:
        for name in "ab":
            memory.sessions.open(name).extend(MESSAGES)
    other = raw(path)
    other.execute("DELETE FROM session_message WHERE session_id = 1 AND position = 3")
    other.execute("PRAGMA foreign_keys = OFF")
    other.execute("DELETE FROM record WHERE id = (SELECT record_id FROM session_message WHERE id = 7)")
    other.close()
    with Memory(path, settings=PLAIN) as memory:
        problems = {problem.name: problem.count for problem in memory.store.verify().problems}
        assert problems["text of a message that is missing"] == 1
        assert "row that refers to a missing one" in problems
        assert memory.store.rebuild().problems == ()
        assert sorted((hit.session, hit.position) for hit in memory.sessions.search("risks", limit=2)) == [
            ("a", 1), ("b", 3),
        ]  # fmt: skip
        assert memory.sessions.get("b").messages() == MESSAGES
        memory.store.vacuum()
        assert memory.store.verify().problems == ()


def test_what_is_meant_is_found_with_and_beside_memories(path):
    memory = Memory(path)
    fact = memory.remember("Reimbursements are paid within 14 days").id
    plain = scored(memory.recall("When do I get my money back?"))
    session = memory.sessions.open("call-7", agent="ada")
    session.append("user", "Can I get a refund for my parcel?")
    session.append({"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]})
    session.append({"role": "user", "content": [{"type": "text", "text": "The plants need water"}, {"type": "image"}]})
    (hit, *_) = memory.sessions.search("reimbursement", relevant=True)
    assert (hit.session, hit.agent, hit.scope, hit.position, hit.role) == ("call-7", "ada", "/agents/ada", 0, "user")
    assert hit.content == "Can I get a refund for my parcel?"
    assert memory.sessions.search("reimbursement", agent="bob") == []
    both = memory.recall("Who wants their money back?", sessions=True)
    assert {hit.kind for hit in both[:2]} == {"memory", "session_message"}
    (found,) = (hit for hit in memory.recall("refund parcel", kinds="session_message", limit=1))
    assert (found.source.id, found.source.position, found.context, found.authority) == ("call-7", 0, "user", "user")
    assert memory.recall("refund parcel", kinds="memory", sessions=True, limit=1)[0].id == found.id
    # Without the word for it, a memory is recalled as if there were no sessions: score and confidence too.
    assert scored(memory.recall("When do I get my money back?")) == plain
    assert [record.id for record in memory.list()] == [fact]
    assert (memory.count(), memory.count(sessions=True), memory.tags(), len(memory.scopes())) == (1, 3, [], 1)
    memory.close()


def test_messages_are_forgotten_with_what_holds_them_and_hold_what_is_forgotten(path):
    with Memory(path) as memory:
        session = memory.sessions.open("s", agent="ada")
        things = ("door", "roof", "fence", "gate")
        session.extend([{"role": "user", "content": f"the {thing} is blue"} for thing in things])
        session.append({"role": "tool", "content": None})
        door, *_ = memory.recall("door", sessions=True)
        assert memory.forget(door.id, receipt=True).receipt.complete
        assert [message["content"] for message in session.messages()] == [
            "the roof is blue", "the fence is blue", "the gate is blue", None,
        ]  # fmt: skip
        for changes in ({"text": "red"}, {"source": "other"}, {"kind": "memory"}, {"scope": "/"}, {"position": 7}):
            with pytest.raises(InvalidInput, match="message of the session"):
                memory.update(memory.recall("roof", sessions=True)[0].id, **changes)
        with pytest.raises(InvalidInput, match="sessions"):
            memory.remember("made up", kind="session_message")
        with pytest.raises(InvalidInput, match="message of a session"):
            memory.supersede(memory.recall("roof", sessions=True)[0].id, memory.remember("red").id)
        assert session.pop() == {"role": "tool", "content": None}
        assert session.pop()["content"] == "the gate is blue"
        assert "the gate is blue" not in [hit.content for hit in memory.sessions.search("gate")]
        memory.transfer.export(path + ".jsonl")
        assert "roof" not in Path(path + ".jsonl").read_text()
        memory.store.backup(path + ".copy")
        with Memory(path + ".copy") as copy:
            assert copy.sessions.search("roof")[0].content == "the roof is blue"
            assert copy.store.verify().ok
        receipt = memory.forget(scope="/agents/ada", receipt=True).receipt
        assert (receipt.complete, memory.count(sessions=True)) == (True, 1)
        assert memory.store.verify().ok


def test_a_message_is_stored_whatever_the_embedder_does(path):
    class Other:
        name, dimension, fingerprint = "other", 4, "other:1"

        def embed(self, texts):
            raise EmbedderError("down")

    with Memory(path) as memory:
        memory.remember("a vector of the bundled model")
    for embedder in (Other(), "instant", "none"):
        with Memory(path, embedder=embedder) as memory:
            memory.sessions.open("s").append("user", "the boiler hums")
    with Memory(path) as memory:
        assert [hit.content for hit in memory.sessions.search("boiler")] == ["the boiler hums"] * 3
        memory.store.reembed()
        assert memory.store.stats().pending == 0
        assert memory.store.verify().ok


@pytest.mark.parametrize("reopens", [False, True])
def test_a_message_that_waits_for_its_vector_has_it_after_a_search(path, reopens):
    def search(memory):
        memory.sessions.search("boiler")
        assert memory._engine.embedding.wait(LAST_RESORT_SECONDS)
        assert memory.store.stats().pending == 0

    embedder = WordEmbedder()
    with Memory(path, embedder=embedder) as memory:
        embedder.fail = "raises"
        memory.sessions.open("s").append("user", "the boiler hums")
        memory.sessions.search("boiler")
        assert memory._engine.embedding.wait(LAST_RESORT_SECONDS)
        assert memory.store.stats().pending == 1
        embedder.fail = None
        if not reopens:
            search(memory)
    if reopens:
        with Memory(path, embedder=WordEmbedder()) as memory:
            search(memory)


@pytest.mark.parametrize("later", ["background", "reembed", "another embedder"])
def test_a_long_message_that_waited_has_the_vectors_of_one_written_at_once(tmp_path, later):
    def vectors(name, embedder):
        told = " ".join(f"line {i} of a log" for i in range(2_000))
        with Memory(tmp_path / name, embedder=embedder) as memory:
            memory.sessions.open("s").append("tool", told)
            assert memory.store.stats().pending == (embedder.fail is not None)
            if later == "background":
                embedder.fail = None
                memory.remember("the boiler hums")  # after which some that wait are embedded
        with Memory(tmp_path / name, embedder=WordEmbedder()) as memory:
            memory.store.reembed()
            (message,) = memory.list(kinds="session_message")
            return memory.vectors([message.id])[message.id]

    waits = WordEmbedder("others" if later == "another embedder" else "words")
    waits.fail = None if later == "another embedder" else "raises"
    at_once = vectors("at once", WordEmbedder())
    assert len(at_once) > 1
    assert np.array_equal(vectors("later", waits), at_once)


def test_a_long_message_is_kept_whole_and_found_by_its_words(path):
    with Memory(path, settings=Settings(max_text_chars=50_000)) as memory:
        told = "line of a log " * 2_000 + "zanzibar " + "line of a log " * 4_000
        memory.sessions.open("s").append("tool", told)
        memory.sessions.get("s").append("user", "What does it say?")
        assert memory.sessions.get("s").messages()[0]["content"] == told
        hit = memory.sessions.search("zanzibar", limit=1)[0]
        assert (hit.position, len(hit.content)) == (0, 50_000)
        assert len(memory.vectors([memory.list(kinds="session_message", order="oldest")[0].id]).popitem()[1]) < 40


def test_what_is_said_in_a_transaction_or_by_another_process_is_found_at_once(path):
    with Memory(path, settings=PLAIN) as one, Memory(path, settings=PLAIN) as two:
        one.recall("warm", sessions=True)
        two.sessions.open("s").append("user", "the boiler hums")
        assert one.sessions.search("boiler")[0].content == "the boiler hums"
        with one.transaction(embed=[NewRecord("and leaks", context="user")]):
            one.sessions.get("s").append("user", "and leaks")
        assert two.sessions.search("leaks", limit=1)[0].position == 1
        with contextlib.suppress(ZeroDivisionError), one.transaction():
            one.sessions.get("s").append("user", "never said")
            raise ZeroDivisionError
        assert len(two.sessions.get("s").messages()) == two.count(kinds="session_message") == 2
