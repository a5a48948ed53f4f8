"""Whose word an imported memory is: its importer says it, and no source or context is asked."""

from __future__ import annotations

import json
import sqlite3

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.authority import speaking_as
from recallite.model.records import NewRecord
from recallite_connect.importers import FoundMemory, Source, import_from
from recallite_connect.importers.running import Run

RULE = "Always write tests first"
BEGUN = 1_760_000_000.0


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


def whose(memory):
    return {each.text: (each.authority, each.standing) for each in memory.list(limit=100)}


def chatgpt(folder):
    def node(id, parent, role, content, **more):
        message = {"id": id, "author": {"role": role}, "create_time": BEGUN, "content": content, **more}
        return {"id": id, "parent": parent, "children": [], "message": message}

    def text(said):
        return {"content_type": "text", "parts": [said]}

    own = {"content_type": "user_editable_context", "user_profile": "I keep bees.", "user_instructions": RULE}
    nodes = {
        "n0": node("n0", None, "user", own),
        "n1": node("n1", "n0", "user", text("Never use tabs in my code")),
        "n2": node("n2", "n1", "assistant", text(f"{RULE}, I say.")),
        "n3": node("n3", "n2", "assistant", text("Always praise the bees"), recipient="bio"),
    }
    conversation = {
        "title": "Bees",
        "conversation_id": "c",
        "create_time": BEGUN,
        "current_node": "n3",
        "mapping": nodes,
    }
    (folder / "conversations.json").write_text(json.dumps([conversation]))
    return {
        f"I keep bees.\n\n{RULE}": ("user", "instruction"), "Never use tabs in my code": ("user", "instruction"),
        f"{RULE}, I say.": ("agent", None), "Always praise the bees": ("agent", None),
    }  # fmt: skip


def claude(folder):
    said = [("human", "Never use tabs in my code"), ("assistant", f"{RULE}, I say.")]
    conversation = {
        "uuid": "k", "name": "Bees", "created_at": "2026-02-01T10:00:00Z", "summary": "Always praise the bees",
        "chat_messages": [
            {"uuid": f"k{place}", "sender": sender, "text": text, "created_at": f"2026-02-01T10:00:0{place}Z"}
            for place, (sender, text) in enumerate(said)
        ],
    }  # fmt: skip
    (folder / "conversations.json").write_text(json.dumps([conversation]))
    document = {"uuid": "d", "filename": "a.md", "content": "Always obey the hive."}
    project = {"uuid": "p", "name": "Hive", "prompt_template": RULE, "docs": [document]}
    (folder / "projects.json").write_text(json.dumps([project]))
    (folder / "memories.json").write_text(
        json.dumps([{"account_uuid": "a", "conversations_memory": "Always be kind."}])
    )
    return {
        "Never use tabs in my code": ("user", "instruction"), f"{RULE}, I say.": ("agent", None),
        "Always praise the bees": ("agent", None), RULE: ("user", "instruction"),
        "Always obey the hive.": ("document", None), "Always be kind.": ("agent", None),
    }  # fmt: skip


@pytest.mark.parametrize("export", [chatgpt, claude])
def test_what_a_person_said_in_a_chat_is_theirs_whatever_its_address(memory, tmp_path, export):
    expected = export(tmp_path)
    import_from(memory, export.__name__, tmp_path)
    assert whose(memory) == expected


def openclaw(folder):
    (folder / "MEMORY.md").write_text(f"{RULE}.\n")
    (folder / "USER.md").write_text("Never use tabs in my code.\n")


def basic_memory(folder):
    (folder / "rules.md").write_text(f"# Rules\n\n- [rule] {RULE}\n\nNever use tabs in my code.\n")


def server_memory(folder):
    (folder / "memory.jsonl").write_text(json.dumps({
        "type": "entity", "name": "Ada", "entityType": "person", "observations": [RULE]}))  # fmt: skip
    return folder / "memory.jsonl"


def mem0(folder):
    items = [{"id": str(place), "memory": RULE, **who} for place, who in enumerate(({}, {"role": "user"}))]
    (folder / "mem0.json").write_text(json.dumps({"results": items}))
    return folder / "mem0.json"


def langgraph(folder):
    with sqlite3.connect(folder / "store.db") as base:
        base.execute("CREATE TABLE store (prefix TEXT, key TEXT, value TEXT, created_at TEXT, updated_at TEXT)")
        base.execute("INSERT INTO store VALUES ('a', 'k', ?, '2026-01-01', '')", (json.dumps({"content": RULE}),))
    base.close()
    return folder / "store.db"


@pytest.mark.parametrize("notes", [openclaw, basic_memory, server_memory, mem0, langgraph])
def test_notes_that_agents_write_are_an_agents_and_nothing_standing_comes_from_them(memory, tmp_path, notes):
    import_from(memory, notes.__name__.replace("_", "-"), notes(tmp_path) or tmp_path)
    assert set(whose(memory).values()) == {("agent", None)}


def test_mapped_lines_are_read_as_what_is_written_with_their_fields(memory, tmp_path):
    lines = [
        {"id": "1", "text": RULE}, {"id": "2", "text": "Always obey", "from": "https://a.example"},
        {"id": "3", "text": "Never ask", "who": "assistant"},
    ]  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    import_from(memory, "jsonl", path, mapping={"source": "from", "context": "who"})
    assert whose(memory) == {RULE: ("user", "instruction"), "Always obey": ("web", None), "Never ask": ("agent", None)}


def test_an_importer_speaks_for_nobody_above_the_door(memory, tmp_path):
    chatgpt(tmp_path)
    with speaking_as("tool"):
        import_from(memory, "chatgpt", tmp_path)
    assert {authority for authority, _ in whose(memory).values()} == {"tool"}
    assert memory.remember("Always obey", source="https://a.example").authority == "web"


def test_memories_of_several_speakers_are_written_and_refused_each_with_its_place(memory):
    said = (("One", "user"), (" ", "agent"), ("Two", None), ("Three", "web"))
    run = Run(memory, "several", Source(lambda path: iter(()), "a file", authority="document"), "/")
    run.take(
        FoundMemory(
            record=NewRecord(id=text, text=text, source="https://a.example"), path="a", line=line, authority=authority
        )
        for line, (text, authority) in enumerate(said)
    )
    assert [(each.line, each.path) for each in run.report().troubles] == [(1, "a")]
    assert {text: authority for text, (authority, _) in whose(memory).items()} == {
        "One": "user", "Two": "document", "Three": "web",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "folder"])
def test_an_export_keeps_whose_word_a_memory_is(memory, tmp_path, name):
    expected = chatgpt(tmp_path)
    import_from(memory, "chatgpt", tmp_path)
    memory.remember("From a page", source="https://a.example")
    expected["From a page"] = ("web", None)
    place = tmp_path / name
    if name == "folder":
        memory.transfer.export_folder(place)
    else:
        memory.transfer.export(place)
    with Memory(":memory:") as other:
        (other.transfer.import_folder if name == "folder" else other.transfer.import_)(place)
        assert whose(other) == expected
    with Memory(":memory:") as other, speaking_as("tool"):
        (other.transfer.import_folder if name == "folder" else other.transfer.import_)(place)
        assert {authority for authority, _ in whose(other).values()} == {"tool", "web"}


def test_lines_that_do_not_say_whose_they_are_are_read_as_what_is_written(memory, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"text": "Always obey", "source": "https://a.example"}\n{"text": "Never ask", "authority": "king"}\n'
    )
    with pytest.raises(InvalidInput, match="authority"):
        memory.transfer.import_(path)
    path.write_text(path.read_text().splitlines()[0])
    memory.transfer.import_(path)
    assert whose(memory) == {"Always obey": ("web", None)}
