"""The knowledge graph of @modelcontextprotocol/server-memory."""

from __future__ import annotations

import json

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite_connect.importers import import_from

LINES = """\
{"type": "entity", "name": "Ada", "entityType": "person", "observations": ["works on billing", "lives in Oslo"]}
{"type": "entity", "name": "billing", "entityType": "service", "observations": []}

{"type": "relation", "from": "Ada", "to": "billing", "relationType": "is_on_call_for"}
"""


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "memory.jsonl"
    path.write_text(LINES)
    return path


def test_observations_and_relations_are_memories(memory, graph):
    done = import_from(memory, "server-memory", graph)
    assert (done.created, done.updated, done.unchanged, done.links, done.troubles) == (4, 0, 0, 2, ())
    (hit, *_) = memory.recall("Who is on call for billing?", limit=1)
    assert hit.text == "Ada is on call for billing"
    assert {record.text for record in memory.list(where={"topic": "Ada"})} == {"works on billing", "lives in Oslo"}


def test_a_second_run_takes_what_is_new(memory, graph):
    import_from(memory, "server-memory", graph)
    with graph.open("a") as more:
        more.write('{"type": "entity", "name": "Bo", "entityType": "person", "observations": ["is new"]}\n')
    done = import_from(memory, "server-memory", graph)
    assert (done.created, done.updated, done.unchanged) == (1, 0, 4)
    assert memory.count() == 5


def test_a_dry_run_counts_and_stores_nothing(memory, graph):
    assert import_from(memory, "server-memory", graph, dry_run=True).created == 4
    assert memory.count() == 0


def test_what_is_malformed_is_reported_with_its_line(memory, graph):
    graph.write_text(LINES + '{"type": "entity", "na\n{"type": "secret"}\n')
    done = import_from(memory, "server-memory", graph, scope="/graph")
    assert done.created == 4
    assert [(each.path, each.line) for each in done.troubles] == [("memory.jsonl", 5), ("memory.jsonl", 6)]
    assert {record.scope for record in memory.list()} == {"/graph"}


def test_names_and_bytes_that_no_field_takes(memory, graph):
    line = {"type": "entity", "name": "a" * 600 + "\n", "entityType": "x", "observations": ["is long"]}
    graph.write_bytes(json.dumps(line).encode() + b'\n{"type": "entity", "name": "\xff", "observations": []}\n')
    done = import_from(memory, "server-memory", graph)
    assert (done.created, [each.line for each in done.troubles]) == (1, [2])
    assert memory.list()[0].topic == "a" * 200


def test_an_unknown_system_and_a_missing_file_are_named(memory, tmp_path):
    with pytest.raises(InvalidInput, match="use one of"):
        import_from(memory, "nothing", tmp_path)
    with pytest.raises(InvalidInput, match="there is no"):
        import_from(memory, "server-memory", tmp_path / "none")


def test_a_relation_may_stand_before_its_entities(memory, graph):
    graph.write_text("".join(reversed(LINES.splitlines(keepends=True))))
    assert import_from(memory, "server-memory", graph).links == 2


def test_an_observation_that_is_no_text_loses_itself_only(memory, graph):
    lines = [
        {"type": "entity", "name": "Bo", "entityType": "person", "observations": [None, "sails", 4, " "]},
        {"type": "entity", "name": "Cy", "entityType": None, "observations": None},
    ]
    graph.write_text("\n".join(map(json.dumps, lines)))
    done = import_from(memory, "server-memory", graph)
    assert {record.text for record in memory.list()} == {"sails", "Cy"}
    assert [(each.line, each.reason.partition(",")[0]) for each in done.troubles] == [
        (1, "observation 1 of 'Bo' is None"),
        (1, "observation 3 of 'Bo' is 4"),
        (1, "observation 4 of 'Bo' is ' '"),
    ]
