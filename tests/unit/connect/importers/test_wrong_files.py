"""A file or folder that is not what an importer reads is told of in one sentence."""

from __future__ import annotations

import json
import zipfile

import pytest

from recallite import Memory, Settings
from recallite_connect.importers import import_from

LINES = ("jsonl", "server-memory", "claude-code", "codex")


@pytest.fixture
def memory():
    with Memory(":memory:", settings=Settings(embedder="none")) as opened:
        yield opened


def told(memory, source, path):
    done = import_from(memory, source, path)
    assert (done.created, done.troubles_total) == (0, 1)
    return done.troubles[0].reason


@pytest.mark.parametrize("source", LINES)
def test_one_json_value_where_lines_were_expected(memory, tmp_path, source):
    path = tmp_path / "export.json"
    path.write_text(json.dumps({"entries": [{"number": number} for number in range(300)]}, indent=2))
    reason = told(memory, source, path)
    assert "It looks like one JSON value over several lines" in reason
    assert "Give " in reason


@pytest.mark.parametrize("source", LINES)
def test_an_e_mail(memory, tmp_path, source):
    path = tmp_path / "mail.eml"
    head = "Return-Path: <ada@example.org>\nFrom: Ada <ada@example.org>\nSubject: Boats\nMIME-Version: 1.0\n"
    path.write_text(head + "\n" + "A line of the letter\n" * 40)
    assert "It looks like an e-mail" in told(memory, source, path)


@pytest.mark.parametrize("source", LINES)
def test_a_spreadsheet(memory, tmp_path, source):
    path = tmp_path / "table.xlsx"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("xl/workbook.xml", "".join(f"<row n='{number}'/>\n" for number in range(50)))
    assert "It looks like a spreadsheet (XLSX)" in told(memory, source, path)


@pytest.mark.parametrize("source", [*LINES, "obsidian", "basic-memory"])
def test_what_is_empty(memory, tmp_path, source):
    empty = tmp_path / "vault"
    if source in ("jsonl", "server-memory"):
        empty.write_text("")
    else:
        empty.mkdir()
    assert told(memory, source, empty).startswith("there is nothing to import. ")


def test_few_troubles_and_those_beside_what_was_read_are_told_one_by_one(memory, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text("{\n[\n")
    assert import_from(memory, "jsonl", path).troubles_total == 2
    path.write_text("no json\n" * 50 + '{"text": "the lock is at gate 3"}\n')
    done = import_from(memory, "jsonl", path)
    assert (done.created, done.troubles_total, done.troubles[-1].line) == (1, 50, 50)


def test_a_graph_as_its_tool_returns_it_is_read(memory, tmp_path):
    path = tmp_path / "graph.json"
    graph = {
        "entities": [{"name": "Ada", "entityType": "person", "observations": ["rows", "sings"]},
                     {"name": "Bo", "entityType": "person", "observations": ["is new"]}],
        "relations": [{"from": "Ada", "to": "Bo", "relationType": "knows"}],
    }  # fmt: skip
    for indent in (None, 2):
        path.write_text(json.dumps(graph, indent=indent))
        done = import_from(memory, "server-memory", path, scope=f"/{indent}")
        assert (done.created, done.links, done.troubles) == (4, 2, ())


def test_an_encrypted_member_of_an_archive_is_told_of_by_its_name(memory, tmp_path):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("conversations.json", "[]")
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flag of the member, and of its entry in the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    for source in ("chatgpt", "claude"):
        done = import_from(memory, source, path)
        assert [(each.path, each.reason.split(":")[0]) for each in done.troubles] == [
            ("conversations.json", "it is encrypted"),
        ]  # fmt: skip
