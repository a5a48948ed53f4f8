"""What a user has to know of a memory: how many methods there are, and what a wrong name gives."""

from __future__ import annotations

import inspect

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.recall.request import RecallOptions


def test_a_memory_has_few_methods():
    methods = [name for name in dir(Memory) if not name.startswith("_") and inspect.isfunction(getattr(Memory, name))]
    assert len(methods) <= 24, methods


def test_recall_names_its_seventeen_arguments():
    arguments = [*inspect.signature(Memory.recall).parameters.values()][1:]
    assert len(arguments) == 17
    assert all(argument.kind is not inspect.Parameter.VAR_KEYWORD for argument in arguments)
    assert {argument.name for argument in arguments} == {"query", "limit", "vector", *RecallOptions.__annotations__}


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("k", "use limit"),
        ("metadata", "where="),
        ("user_id", "use scope"),
        ("neighbor_boost", "give profile={'neighbor_boost': ...}"),
        ("since", r"give filter=Filter\(since=...\)"),
        ("limt", "did you mean limit"),
    ],
)
def test_an_unknown_argument_names_what_to_use(memory, name, use):
    for recall in (memory.recall, lambda query, **options: memory.recall_many([query], **options)):
        with pytest.raises(InvalidInput, match=f"has no option '{name}': .*{use}"):
            recall("x", mode="keyword", **{name: 1})


def test_a_mapping_changes_the_profile_of_the_store(memory):
    memory.remember_many(["Ada likes tea", "Ada likes coffee"])
    assert len(memory.recall("Ada", profile={"limit": 1})) == 1
    named, mapped = (memory.recall("Ada", profile=profile) for profile in ("hermes", {"name": "hermes"}))
    assert [hit.id for hit in named] == [hit.id for hit in mapped]
    with pytest.raises(InvalidInput, match="did you mean neighbor_boost"):
        memory.recall("Ada", profile={"neighbour_boost": 0})
