"""The tools session and experience on a real store."""

from __future__ import annotations

import pytest

from recallite import tools
from recallite.text.quotes import NOTICE


@pytest.fixture
def use(memory):
    def call(name, action, /, *, scope=None, **fields):
        return tools.call(name, {"action": action, **fields}, memory=memory, scope=scope)

    return call


def test_a_conversation(use):
    opened = use("session", "open", id="my-project", provider="anthropic")
    assert opened == {"outcome": "opened", "id": "my-project", "position": None}
    for place, (role, content) in enumerate([("user", "What are the main risks?"), ("assistant", "The schedule.")]):
        assert use("session", "append", id="my-project", role=role, content=content)["position"] == place
    read = use("session", "messages", id="my-project")
    assert read["results"] == [
        {"role": "user", "content": "What are the main risks?"}, {"role": "assistant", "content": "The schedule."},
    ]  # fmt: skip
    assert read["notice"] == NOTICE
    assert len(use("session", "messages", id="my-project", limit=1)["results"]) == 1
    (listed,) = use("session", "list")["results"]
    assert (listed["id"], listed["provider"], listed["messages"]) == ("my-project", "anthropic", 2)
    assert use("session", "open", id="my-project")["outcome"] == "opened"
    assert len(use("session", "messages", id="my-project")["results"]) == 2
    (found,) = use("session", "search", query="any risks?")["results"]
    assert (found["content"], found["session"], found["position"]) == ("What are the main risks?", "my-project", 0)
    assert use("session", "end", id="my-project")["outcome"] == "ended"
    assert use("session", "list")["results"] == []


def test_a_session_without_an_id_gets_one(use):
    assert len(use("session", "open")["id"]) == 36


def test_an_end_with_a_summary_keeps_a_snapshot(use, memory):
    use("session", "open", id="s")
    use("session", "append", id="s", role="user", content="hello")
    use("session", "end", id="s", summary="We said hello")
    assert memory.episodes.last_snapshot().summary == "We said hello"


@pytest.mark.parametrize(
    ("action", "fields"), [("append", {"role": "user", "content": "x"}), ("messages", {}), ("end", {})]
)
def test_a_session_that_was_never_opened_is_not_begun_by_a_slip(use, memory, action, fields):
    error = use("session", action, id="nobody", **fields)["error"]
    assert (error["type"], error["field"], error["allowed"]) == ("not_found", "id", ["an id as results give it"])
    assert memory.sessions.list() == []


def test_a_damaged_message_is_named(use, memory):
    use("session", "open", id="s")
    use("session", "append", id="s", role="user", content="x")
    with memory._engine.atomic() as writer:
        writer.connection.execute("UPDATE session_message SET message = '{'")
    error = use("session", "messages", id="s")["error"]
    assert (error["type"], error["field"]) == ("damaged", "id")
    assert "message 0" in error["message"]


@pytest.mark.parametrize("agent", ["a/b", "..", ".", " ", "", "a\nb"])
def test_an_agent_id_is_one_name(use, agent):
    error = use("session", "open", id="s", agent=agent)["error"]
    assert (error["type"], error["field"]) == ("invalid_value", "agent")
    assert error["allowed"] == ["one name such as ada, without slashes"]


def test_agents_do_not_see_each_others_sessions(use):
    use("session", "open", id="s", agent="ada")
    use("session", "append", id="s", agent="ada", role="user", content="a secret")
    assert use("session", "messages", id="s", agent="eve")["error"]["type"] == "not_found"
    assert use("session", "search", query="secret", agent="eve")["results"] == []


def test_the_scope_of_the_call_bounds_sessions_and_experience(use):
    use("session", "open", id="s", scope="/users/ada")
    assert use("session", "list", scope="/users/eve")["results"] == []
    assert [each["id"] for each in use("session", "list", scope="/users/ada")["results"]] == ["s"]
    for _ in range(2):
        use("experience", "record", task_type="query", tools=["web"], success=True, scope="/users/ada")
    assert use("experience", "tips", task_type="query", scope="/users/eve")["results"] == []
    assert len(use("experience", "tips", task_type="query", scope="/users/ada")["results"]) == 1


def test_a_role_that_is_none(use):
    use("session", "open", id="s")
    error = use("session", "append", id="s", role="", content="x")["error"]
    assert (error["type"], error["field"]) == ("invalid_value", "role")


def test_tips_read_as_the_seed_has_them(use):
    for steps, tokens in ((3, 1000), (4, 1270), (5, 1300)):
        assert use(
            "experience", "record", task_type="query", tools=["file-write", "file-write"], success=True, steps=steps,
            tokens=tokens,
        ) == {"outcome": "recorded", "id": None, "position": None}  # fmt: skip
    (tip,) = use("experience", "tips", task_type="query")["results"]
    assert tip["text"] == (
        "For query tasks, use [file-write] — 100% success rate over 3 runs (avg 4 steps, 1,190 tokens)"
    )


def test_recoveries_are_suggested_for_the_same_tool(use):
    use("experience", "record_recovery", tool="http", error="timeout after 30 s", recovery="ask for fewer rows")
    found = use("experience", "tips", tool="http", error="timeout after 10 s")["results"]
    assert "ask for fewer rows" in found[0]["text"]
    assert use("experience", "tips", tool="ftp", error="timeout after 10 s")["results"] == []


@pytest.mark.parametrize(
    ("action", "fields", "type", "field", "allowed"),
    [
        ("record", {"tools": ["a"], "success": True}, "missing_field", "task_type", ["string that is not empty"]),
        ("record", {"task_type": "t", "tools": [], "success": True}, "invalid_value", "tools",
         ["array of string of at least 1"]),
        ("record", {"task_type": "t", "tools": "a", "success": True}, "wrong_type", "tools",
         ["array of string of at least 1"]),
        ("record", {"task_type": "t", "tools": ["a"], "success": 1}, "wrong_type", "success", ["boolean"]),
        ("record", {"task_type": "t", "tools": ["a"], "success": True, "steps": -1}, "invalid_value", "steps",
         ["integer of at least 0"]),
        ("record", {"task_type": "t", "tools": ["a", ""], "success": True}, "invalid_value", "tools",
         ["array of at least 1 string, each at most 512 characters on one line, not blank"]),
        ("tips", {"tool": "http"}, "missing_field", "error", ["text that is not blank, without NUL characters"]),
        ("tips", {"error": "timeout"}, "missing_field", "tool",
         ["the name of a tool, at most 512 characters on one line, not blank"]),
        ("tips", {"task_type": " "}, "invalid_value", "task_type",
         ["a type of task such as query, at most 512 characters on one line, not blank"]),
        ("record_recovery", {"tool": "t", "error": "a\0", "recovery": "r"}, "invalid_value", "error",
         ["text that is not blank, without NUL characters"]),
        ("record_recovery", {"tool": "t", "error": "e", "recovery": "\0"}, "invalid_value", "recovery",
         ["text that is not blank, without NUL characters"]),
    ],
)  # fmt: skip
def test_what_experience_refuses(use, action, fields, type, field, allowed):
    error = use("experience", action, **fields)["error"]
    assert (error["type"], error["field"], error["allowed"]) == (type, field, allowed)
    assert field in error["message"]
