"""What models are shown of the tools, in the shapes that providers take."""

from __future__ import annotations

import json

import pytest

from recallite import tools
from recallite.errors import InvalidInput
from recallite_tools.calling import TOOLS

ACTIONS = {
    "memory": ["write", "search", "recall", "replace", "remove", "list", "history", "supersede", "restore"],
    "experience": ["tips", "record", "record_recovery"],
    "knowledge": ["ingest", "search", "list", "delete"],
    "session": ["open", "append", "end", "list", "search", "messages"],
}


def test_every_tool_has_its_actions():
    shown = tools.schemas()
    assert {name: schema["properties"]["action"]["enum"] for name, schema in shown.items()} == ACTIONS
    for schema in shown.values():
        assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["action"], False)


def test_the_shape_of_openai():
    for tool, name in zip(tools.schemas("openai"), ACTIONS, strict=True):
        assert tool["type"] == "function"
        assert tool["function"]["name"] == name
        assert set(tool["function"]) == {"name", "description", "parameters"}


def test_the_shape_of_anthropic():
    for tool, name in zip(tools.schemas("anthropic"), ACTIONS, strict=True):
        assert set(tool) == {"name", "description", "input_schema"}
        assert tool["name"] == name


def test_no_alternatives_at_the_top_and_no_references():
    """Neither provider takes oneOf, anyOf or allOf at the top of a tool's schema."""
    for schema in tools.schemas().values():
        assert not {"oneOf", "anyOf", "allOf", "$ref", "$defs"} & set(schema)
        for field in schema["properties"].values():
            assert {"type", "description"} <= set(field) or "enum" in field, field
            assert "anyOf" not in field


def test_a_field_means_the_same_in_every_action_of_a_tool():
    for tool in TOOLS.values():
        known = {}
        for action in tool.actions.values():
            for name, schema in action.properties.items():
                bare = {key: value for key, value in schema.items() if key != "default"}
                assert known.setdefault(name, bare) == bare, (tool.name, action.name, name)


def test_descriptions_say_what_each_action_needs():
    described = tools.schemas()["memory"]["description"]
    assert "- write: store a memory; older ones that no longer hold are superseded, those you name too." in described
    assert " Needs text. Takes tags, importance" in described
    assert "- list: show memories, newest first. Takes limit" in described


def test_schemas_are_json_and_ones_own():
    changed = tools.schemas()
    changed["memory"]["properties"]["tags"]["items"].clear()
    assert tools.schemas()["memory"]["properties"]["tags"]["items"] == {"type": "string"}
    assert json.loads(json.dumps(tools.schemas("openai")))[0]["function"]["parameters"]["properties"]


def test_an_unknown_shape_is_refused():
    with pytest.raises(InvalidInput, match="'plain', 'openai' or 'anthropic'"):
        tools.schemas("gemini")
