"""Calls in the words of Reeve and Hermes (seeds 001 and 003)."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings, tools


@pytest.fixture
def memory():
    with Memory(":memory:", settings=Settings(embedder="none")) as opened:
        yield opened


def test_content_is_the_text_of_a_memory_and_the_question_of_recall(memory):
    write = {"action": "write", "content": "The office is in Bergen", "tags": ["place"]}
    assert tools.call_by_source_names("memory", write, memory=memory)["outcome"] == "created"
    for asked in ({"action": "search", "query": "office"}, '{"action": "recall", "content": "office", "limit": 5}'):
        (result,) = tools.call_by_source_names("memory", asked, memory=memory)["results"]
        assert result["content"] == "The office is in Bergen"
        assert "text" not in result


def test_every_tool_call_takes_content_and_its_schema_says_so(memory):
    described = tools.schemas()["memory"]["properties"]["content"]["description"]
    assert described == "Another name of text (write, replace); query (recall)."

    def use(**fields):
        return tools.call("memory", fields, memory=memory)

    assert use(action="write", content="The printer is on floor two", text=None)["outcome"] == "created"
    assert use(action="replace", content="The printer is on floor three", old_text="floor")["outcome"] == "replaced"
    (result,) = use(action="recall", content="printer")["results"]
    assert result["text"] == "The printer is on floor three"


def test_errors_have_the_names_that_the_call_gave(memory):
    def error(**fields):
        return tools.call("memory", fields, memory=memory)["error"]

    blank = error(action="write", content=" ")
    assert (blank["field"], blank["message"]) == (
        "content", "content is ' ': there is nothing to remember in an empty or blank text",
    )  # fmt: skip
    assert error(action="write", text=" ")["message"].startswith("text is")
    assert error(action="recall", content=7)["field"] == "content"
    assert error(action="recall")["message"] == "recall needs query or content: give string"
    both = error(action="write", text="a", content="b")
    assert (both["type"], both["field"], both["allowed"]) == ("unknown_field", "content", ["text"])
    assert error(action="search", content="printer")["allowed"][0] == "query"


@pytest.mark.parametrize("arguments", ["{", "[1]", "null", 7, ["action"]])
def test_what_is_no_object_gets_the_error_of_call(memory, arguments):
    refused = tools.call_by_source_names("memory", arguments, memory=memory)
    assert refused == tools.call("memory", arguments, memory=memory)
    assert "error" in refused
