"""What a model gets wrong is an error as JSON that names the field and what is allowed there; nothing is written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallite import AsyncMemory, tools
from recallite.errors import InvalidInput
from recallite_tools.calling import TOOLS
from tests.limits import examples

WRITE = {"action": "write", "text": "x"}


def error_of(memory, arguments, name="memory"):
    answer = tools.call(name, arguments, memory=memory)
    assert set(answer) == {"error"}, answer
    assert json.loads(json.dumps(answer)) == answer
    assert memory.count() == 0
    return answer["error"]


@pytest.mark.parametrize(
    ("arguments", "type", "field", "allowed"),
    [
        (
            {},
            "missing_field",
            "action",
            ["write", "search", "recall", "replace", "remove", "list", "history", "supersede", "restore"],
        ),
        (
            {"action": None},
            "missing_field",
            "action",
            ["write", "search", "recall", "replace", "remove", "list", "history", "supersede", "restore"],
        ),
        (
            {"action": "forget"},
            "unknown_action",
            "action",
            ["write", "search", "recall", "replace", "remove", "list", "history", "supersede", "restore"],
        ),
        (
            {"action": 7},
            "unknown_action",
            "action",
            ["write", "search", "recall", "replace", "remove", "list", "history", "supersede", "restore"],
        ),
        (
            {"action": ["write"]},
            "unknown_action",
            "action",
            ["write", "search", "recall", "replace", "remove", "list", "history", "supersede", "restore"],
        ),
        ({"action": "write"}, "missing_field", "text", ["string"]),
        ({"action": "write", "text": None}, "missing_field", "text", ["string"]),
        ({"action": "search"}, "missing_field", "query", ["string"]),
        ({"action": "search", "query": 7}, "wrong_type", "query", ["string"]),
        ({**WRITE, "text": ["x"]}, "wrong_type", "text", ["string"]),
        ({**WRITE, "tags": "ui"}, "wrong_type", "tags", ["array of string"]),
        ({**WRITE, "tags": ["ui", 7]}, "wrong_type", "tags", ["array of string"]),
        ({**WRITE, "tags": {"ui": True}}, "wrong_type", "tags", ["array of string"]),
        ({**WRITE, "importance": "high"}, "wrong_type", "importance", ["number from 0 to 1"]),
        ({**WRITE, "importance": True}, "wrong_type", "importance", ["number from 0 to 1"]),
        ({**WRITE, "importance": 1.5}, "invalid_value", "importance", ["number from 0 to 1"]),
        ({**WRITE, "importance": float("nan")}, "invalid_value", "importance", ["number from 0 to 1"]),
        ({**WRITE, "pinned": "yes"}, "wrong_type", "pinned", ["boolean"]),
        ({**WRITE, "scope": 3}, "wrong_type", "scope", ["string"]),
        ({"action": "list", "limit": 0}, "invalid_value", "limit", ["integer from 1 to 100"]),
        ({"action": "list", "limit": 101}, "invalid_value", "limit", ["integer from 1 to 100"]),
        ({"action": "list", "limit": "5"}, "wrong_type", "limit", ["integer from 1 to 100"]),
        ({"action": "list", "limit": 2**70}, "invalid_value", "limit", ["integer from 1 to 100"]),
        ({"action": "list", "offset": -1}, "invalid_value", "offset", ["integer of at least 0"]),
        ({"action": "list", "query": "x"}, "unknown_field", "query", ["limit", "offset", "tags", "scope"]),
        ({"action": "list", "nonsense": None}, "unknown_field", "nonsense", ["limit", "offset", "tags", "scope"]),
        ({"action": "list", 3: 4}, "unknown_field", "3", ["limit", "offset", "tags", "scope"]),
        ({"action": "remove", "old_text": ""}, "invalid_value", "old_text", ["string that is not empty"]),
        ({"action": "recall"}, "missing_field", "query", ["string"]),
    ],
)
def test_the_field_and_what_is_allowed_are_named(memory, arguments, type, field, allowed):
    error = error_of(memory, arguments)
    assert (error["type"], error["field"], error["allowed"]) == (type, field, allowed)
    assert field in error["message"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"text": "  "}, "text"),
        ({"text": "a\x00b"}, "text"),
        ({"text": "\ud800"}, "text"),
        ({"text": "x", "scope": "no-slash"}, "scope"),
        ({"text": "x", "scope": "/a/../b"}, "scope"),
        ({"text": "x", "tags": [""]}, "tags"),
        ({"text": "x", "tags": ["a\nb"]}, "tags"),
        ({"text": "x", "topic": ""}, "topic"),
        ({"text": "x", "expires_at": "some day"}, "expires_at"),
        ({"text": "x", "expires_at": "2026-03-01T00:00"}, "expires_at"),
    ],
)
def test_what_the_engine_refuses_is_said_under_the_tools_own_field(memory, fields, field):
    error = error_of(memory, {"action": "write", **fields})
    assert (error["type"], error["field"]) == ("invalid_value", field)
    (allowed,) = error["allowed"]
    assert {"scope": "a path such as /team/project", "expires_at": "a time: 2026-03-01T09:30:00+00:00"}.get(
        field, ""
    ) in allowed


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"action": "replace", "text": "x", "old_text": "a\0"}, "old_text"),
        ({"action": "replace", "text": "a\0", "old_text": "x"}, "text"),
        ({"action": "replace", "text": "x", "id": " "}, "id"),
        ({"action": "remove", "old_text": "\ud800"}, "old_text"),
        ({"action": "list", "offset": 2**63}, "offset"),
        ({"action": "list", "scope": "/" + "x" * 600}, "scope"),
        ({"action": "search", "query": "scope and agent", "tags": ["a\0"]}, "tags"),
    ],
)
def test_a_field_that_the_engine_calls_otherwise(memory, arguments, field):
    error = error_of(memory, arguments)
    assert (error["type"], error["field"]) == ("invalid_value", field)
    assert error["allowed"]


@pytest.mark.parametrize("arguments", [{"action": "remove", "old_text": "x"}, {"action": "remove", "id": "x"}])
def test_what_is_not_there(memory, arguments):
    error = error_of(memory, arguments)
    assert (error["type"], error["field"] in arguments, len(error["allowed"])) == ("not_found", True, 1)


FIELDS_OF_ALL = sorted({(name, field) for name, schema in tools.schemas().items() for field in schema["properties"]})


@pytest.mark.parametrize(("name", "field"), [*FIELDS_OF_ALL, *((name, "\ud800") for name in tools.schemas())])
@pytest.mark.parametrize("value", ["\ud800", ["\ud800"], {"\ud800": 1}])
def test_lone_surrogates_are_answered_in_what_can_be_encoded(memory, name, field, value):
    """`json.loads` makes them of escapes."""
    some = {
        "content": "x",
        "text": "x",
        "query": "x",
        "id": "x",
        "role": "user",
        "task_type": "t",
        "tools": ["t"],
        "success": True,
    }
    some |= {"supersedes": ["x"], "tool": "t", "error": "e", "recovery": "r", "source": "x", "documentId": "x"}
    for action in TOOLS[name].actions.values():
        needed = {each: some[each] for each in action.required}
        answer = tools.call(name, {**needed, "action": action.name, field: value}, memory=memory)
        for text in (json.dumps(answer, ensure_ascii=False), tools.as_text(answer)):
            text.encode()


def test_a_surrogate_where_no_text_is_taken(memory):
    error = error_of(memory, json.loads('{"action": "list", "tags": "\\ud800"}'))
    assert (error["type"], error["field"], error["allowed"]) == ("wrong_type", "tags", ["array of string"])
    error = error_of(memory, json.loads('{"action": "list", "\\ud800": 1}'))
    assert (error["type"], error["field"]) == ("unknown_field", "\\ud800")


def test_an_async_memory_is_told_what_to_pass():
    with pytest.raises(InvalidInput, match=r"give a Memory\. Beside an AsyncMemory .* asyncio\.to_thread"):
        tools.call("memory", WRITE, memory=AsyncMemory(":memory:"))


@pytest.mark.parametrize("field", ["since", "until"])
def test_times_of_recall(memory, field):
    error = error_of(memory, {"action": "recall", "query": "x", field: "some day"})
    assert (error["type"], error["field"]) == ("invalid_value", field)
    assert "is not a time" in error["message"]


@pytest.mark.parametrize("name", ["remember", "", None, 3, "MEMORY"])
def test_an_unknown_tool(memory, name):
    error = error_of(memory, WRITE, name)
    assert (error["type"], error["field"]) == ("unknown_tool", "name")
    assert error["allowed"] == ["memory", "experience", "knowledge", "session"]


@pytest.mark.parametrize("text", ["", "{", "{'action': 'list'}", "[" * 100_000, '{"action": "list"} x', b"\xff"])
def test_what_is_no_json(memory, text):
    assert error_of(memory, text)["type"] == "invalid_json"


@pytest.mark.parametrize("arguments", ["[]", "7", "null", [], None, 3.5, {1, 2}])
def test_what_is_no_object(memory, arguments):
    error = error_of(memory, arguments)
    assert (error["type"], error["allowed"]) == ("wrong_type", ["object"])


def test_null_stands_for_not_given(memory):
    """Models fill in every field of a schema, those of other actions too."""
    arguments = {"action": "list", "query": None, "text": None, "limit": None, "scope": None, "tags": None}
    assert tools.call("memory", arguments, memory=memory)["results"] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["action", "content", "query", "limit", "tags", "scope", "id", "old_text", "importance", "since", "agent", "role",
     "tool", "tools", "error", "success", "task_type", "steps", "offset", "expires_at", "topic", "source", "metadata",
     "documentId"]
)  # fmt: skip
NAMES = st.sampled_from(["memory", "experience", "knowledge", "session"])
ACTIONS = st.sampled_from(
    ["write", "search", "recall", "replace", "remove", "list", "open", "append", "messages", "end", "record",
     "record_recovery", "tips", "ingest", "delete"]
)  # fmt: skip


@settings(max_examples=examples(150), deadline=None)
@given(NAMES, ACTIONS, st.dictionaries(FIELDS, JSON, max_size=5))
def test_no_arguments_of_a_model_raise(memory, name, action, fields):
    answer = tools.call(name, {"action": action, **fields}, memory=memory)
    json.dumps(answer)
    if "error" in answer:
        assert set(answer["error"]) >= {"type", "field", "message", "allowed"}
