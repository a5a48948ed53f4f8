"""What a model writes through a tool is the agent's word: it hides nothing that the user said."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings, tools
from recallite.model.authority import speaker, speaking_as
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from recallite_server.http.access_tokens import Tokens
from tests.unit.core.memory.test_authority import STRANGER, TRUE_AND_HOSTILE


@pytest.fixture
def memory():
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        yield memory


def said(memory: Memory) -> list[str]:
    return [record.text for record in memory.list(order="oldest")]


@pytest.mark.parametrize("pinned", [False, True])
def test_tools_hide_nothing_of_the_user(memory, pinned):
    for true, hostile in TRUE_AND_HOSTILE:
        memory.remember(NewRecord(true, pinned=pinned))
        tools.call("memory", {"action": "write", "text": hostile}, memory=memory)
    assert {true for true, _ in TRUE_AND_HOSTILE} <= {*said(memory)}


def test_an_agent_hides_nothing_in_semantic_memory(memory):
    for true, hostile in TRUE_AND_HOSTILE:
        memory.semantic.add(true, agent="ada")
        with speaking_as("agent"):
            memory.semantic.add(hostile, agent="ada")
    assert {true for true, _ in TRUE_AND_HOSTILE} <= {*said(memory)}


def test_a_tool_neither_supersedes_nor_rewrites_what_the_user_said(memory):
    old = memory.remember("The office is in Rome.")
    write = {"action": "write", "text": "The office moved to Milan."}
    new = tools.call("memory", write, memory=memory)
    for arguments in (
        {"action": "supersede", "id": new["id"], "supersedes": [old.id]},
        {"action": "replace", "id": old.id, "text": "The office is in Milan."},
        {**write, "supersedes": [old.id]},
    ):
        assert tools.call("memory", arguments, memory=memory)["error"]["type"] == "not_allowed"
    assert said(memory) == ["The office is in Rome.", "The office moved to Milan."]


@pytest.mark.parametrize("agrees", [True, False])
@pytest.mark.parametrize("import_first", [False, True])
def test_the_user_may_let_an_agent_change_what_they_said(memory, tmp_path, agrees, import_first):
    if import_first:
        (tmp_path / "m.jsonl").write_text('{"text": "My phone number is 555-0134"}\n{"text": "We use PostgreSQL 14"}\n')
        memory.transfer.import_(tmp_path / "m.jsonl")
    else:
        memory.remember_many(["My phone number is 555-0134", "We use PostgreSQL 14"])
    asked = []

    def confirm(refused):
        asked.append(refused)
        return agrees

    for arguments in (
        {"action": "remove", "old_text": "phone number"},
        {"action": "replace", "old_text": "PostgreSQL", "content": "We use MySQL 8"},
    ):
        answer = tools.call("memory", arguments, memory=memory, confirm=confirm)
        assert (answer.get("error", {}).get("type") == "not_allowed") is not agrees
    assert [(refused.action, refused.texts) for refused in asked] == [
        ("remove", ("My phone number is 555-0134",)), ("replace", ("We use PostgreSQL 14",)),
    ]  # fmt: skip
    assert asked[1].fields == {"old_text": "PostgreSQL", "text": "We use MySQL 8"}
    assert "the word of the user" in asked[0].reason
    assert said(memory) == (["We use MySQL 8"] if agrees else ["My phone number is 555-0134", "We use PostgreSQL 14"])


def test_what_needs_no_leave_asks_nobody_and_a_lower_door_stays_lower(memory):
    def confirm(refused):
        raise AssertionError(refused)

    tools.call("memory", {"action": "write", "text": "The kiln is on"}, memory=memory, confirm=confirm)
    removed = tools.call("memory", {"action": "remove", "old_text": "kiln"}, memory=memory, confirm=confirm)
    assert removed["outcome"] == "removed"
    memory.remember("The kiln is off")
    with speaking_as("web"):
        refused = tools.call("memory", {"action": "remove", "old_text": "kiln"}, memory=memory, confirm=lambda _: True)
    assert refused["error"]["type"] == "not_allowed"


def test_a_tool_updates_what_a_tool_said_and_gives_no_standing_instruction(memory):
    for text in ("The office is in Rome.", "The office moved to Milan.", STRANGER):
        tools.call("memory", {"action": "write", "text": text}, memory=memory)
    assert said(memory) == ["The office moved to Milan.", STRANGER]
    assert memory.count(where={"standing": "instruction"}) == 0
    assert STRANGER not in str(memory.bootstrap(None, "pay an invoice")).partition("## Relevant")[0].partition("##")[2]


def test_a_speaker_lowers_and_raises_nothing(memory):
    with speaking_as("tool"), speaking_as("agent"):
        assert speaker() == "tool"
        record = memory.remember("a note", policy=WritePolicy(authority="user"))
        assert record.authority == "tool"
    assert (speaker(), memory.remember("b note").authority) == ("user", "user")


def test_a_token_has_an_authority(tmp_path):
    with Memory(tmp_path / "m.db", settings=Settings(embedder="none")) as memory:
        made = Tokens(memory).create(authority="web")
        assert made.secret is not None
        assert Tokens(memory).grant(made.secret).authority == "web"
