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


@pytest.mark.parametrize("arguments", ["{", "[1]", "null", 7, ["action"]])
def test_what_is_no_object_gets_the_error_of_call(memory, arguments):
    refused = tools.call_by_source_names("memory", arguments, memory=memory)
    assert refused == tools.call("memory", arguments, memory=memory)
    assert "error" in refused
