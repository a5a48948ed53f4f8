"""The export of Claude."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite_connect.importers import import_from

ROOT = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


def said(uuid, sender, text, *, parent=None, at="2026-03-01T10:00:00.123456Z", blocks=None, **more):
    message = {
        "uuid": uuid, "text": text, "content": [block(text)] if blocks is None else blocks, "sender": sender,
        "created_at": at, "updated_at": at, "attachments": [], "files": [],
    }  # fmt: skip
    return message | ({} if parent is None else {"parent_message_uuid": parent}) | more


def block(text):
    return {
        "start_timestamp": None,
        "stop_timestamp": None,
        "flags": None,
        "type": "text",
        "text": text,
        "citations": [],
    }


def conversation(uuid, name, *messages, **more):
    return {
        "uuid": uuid, "name": name, "summary": "", "created_at": "2026-03-01T09:59:00Z",
        "updated_at": "2026-03-01T10:09:00Z", "account": {"uuid": "acct"}, "chat_messages": list(messages),
    } | more  # fmt: skip


UNSUPPORTED = "```\nThis block is not supported on your current device yet.\n```"
TRIP = conversation(
    "c-trip", "A trip to Bergen",
    said("m1", "human", "When is the train to Bergen?", parent=ROOT),
    said("m2-first", "assistant", "A first answer.", parent="m1", at="2026-03-01T10:01:00Z"),
    said("m2", "assistant", f"Let me look.\n{UNSUPPORTED}\nAt 8:25.", parent="m1", at="2026-03-01T10:02:00Z", blocks=[
        {"type": "thinking", "thinking": "They want a train."}, block("Let me look."),
        {"type": "tool_use", "name": "web_search", "input": {}}, {"type": "tool_result", "content": []},
        block("At 8:25."),
    ]),
    said("m3", "human", "", parent="m2", blocks=[], attachments=[{"file_name": "plan.pdf"}]),
    said("m4", "human", "And back?", parent="m3", at="2026-03-01T10:04:00Z"),
    summary="The user plans a trip to Bergen by train.",
)  # fmt: skip
OLD = conversation("c-old", "", {
    "uuid": "o1", "text": f"Bread needs {UNSUPPORTED} salt.", "sender": "human",
    "created_at": "2023-08-01T10:00:00.000000+00:00", "attachments": [], "chat_feedback": None,
})  # fmt: skip
PROJECT = {
    "uuid": "p-1", "name": "Garden / house", "description": "Plants and beds", "is_private": True,
    "is_starter_project": False, "prompt_template": "Answer in metric units.", "created_at": "2026-01-05T08:00:00Z",
    "updated_at": "2026-01-05T08:00:00Z", "creator": {"uuid": "acct", "full_name": "Ada"},
    "docs": [{"uuid": "d-1", "filename": "beds.md", "content": "# Bed 1\n\nGarlic and leek.\n\n# Bed 2\n\nBeans.\n",
              "created_at": "2026-01-06T08:00:00Z"}],
}  # fmt: skip
STARTER = {
    "uuid": "p-0",
    "name": "How to use Claude",
    "is_starter_project": True,
    "prompt_template": "Be kind",
    "docs": [],
}
MEMORIES = {
    "conversations_memory": "**Work context**\n\nAda is a gardener.\n\n**Personal context**\n\nAda lives in Oslo.\n",
    "project_memories": {"p-1": "The beds face south."},
    "memory_files": [{"path": "/profile.md", "content": "- Prefers tea", "updated_at": "2026-09-02T03:04:05.000000Z"}],
    "account_uuid": "acct",
}


def texts(memory, **where):
    return {each.text for each in memory.list(limit=1_000, **where)}


def legacy(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("users.json", json.dumps([{"uuid": "acct", "full_name": "Ada"}]))
        made.writestr("conversations.json", json.dumps([TRIP, OLD]))
        made.writestr("projects.json", json.dumps([PROJECT, STARTER]))
        made.writestr("memories.json", json.dumps([MEMORIES]))
    return path


def test_a_conversation_is_the_branch_that_is_shown(memory, tmp_path):
    done = import_from(memory, "claude", legacy(tmp_path / "export.zip"))
    turns = sorted((each for each in memory.list(limit=1_000) if each.source == "https://claude.ai/chat/c-trip"
                    and each.position is not None), key=lambda each: each.position)  # fmt: skip
    assert [(each.position, each.context, each.text) for each in turns] == [
        (0, "user", "When is the train to Bergen?"), (1, "assistant", "Let me look.\n\nAt 8:25."),
        (2, "user", "And back?"),
    ]  # fmt: skip
    assert turns[1].created_at == datetime(2026, 3, 1, 10, 2, tzinfo=UTC)
    assert turns[1].metadata == {"conversation": "c-trip", "title": "A trip to Bergen", "role": "assistant"}
    assert done.left_out == {
        "messages of other branches": 1, "thoughts of a model": 1, "calls and results of tools": 2, "attached files": 1,
        "messages without text": 1, "projects that Claude begins with": 1,
    }  # fmt: skip
    assert done.troubles == ()


def test_exports_of_2023_have_texts_only(memory, tmp_path):
    import_from(memory, "claude", legacy(tmp_path / "export.zip"))
    old = memory.get("claude:o1")
    assert old.text == "Bread needs  salt."
    assert old.created_at == datetime(2023, 8, 1, 10, tzinfo=UTC)


def test_projects_and_memories_have_scopes_of_their_names(memory, tmp_path):
    import_from(memory, "claude", legacy(tmp_path / "export.zip"), scope="/chats")
    assert texts(memory, scope="/chats/projects/Garden - house") == {
        "Plants and beds", "Answer in metric units.", "# Bed 1\n\nGarlic and leek.", "# Bed 2\n\nBeans.",
        "The beds face south.",
    }  # fmt: skip
    assert texts(memory, where={"tags": "saved-memory"}) == {
        "## Work context\n\nAda is a gardener.", "## Personal context\n\nAda lives in Oslo.", "The beds face south.",
        "- Prefers tea",
    }  # fmt: skip
    assert texts(memory, where={"tags": "summary"}) == {"The user plans a trip to Bergen by train."}


def test_what_claude_remembers_changes_from_export_to_export(memory, tmp_path):
    path = tmp_path / "memories.json"
    path.write_text(json.dumps([MEMORIES]))
    import_from(memory, "claude", path)
    changed = MEMORIES | {"conversations_memory": MEMORIES["conversations_memory"].replace("Oslo", "Rome")}
    path.write_text(json.dumps([changed]))
    done = import_from(memory, "claude", path)
    assert (done.created, done.updated, done.unchanged) == (0, 1, 3)
    (moved,) = [each for each in memory.list() if "Rome" in each.text]
    assert [each.text.rpartition(" ")[2] for each in memory.history(moved.id)] == ["Oslo.", "Rome."]


def test_exports_since_2026_are_a_zip_file_for_each_kind(memory, tmp_path):
    before = import_from(memory, "claude", legacy(tmp_path / "export.zip"))
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, inside, value in (
        ("conversations-000.zip", "conversations.json", [TRIP]), ("conversations-001.zip", "conversations.json", [OLD]),
        ("projects-000.zip", "projects/p-1.json", PROJECT), ("memories-000.zip", "memories/acct.json", MEMORIES),
    ):  # fmt: skip
        with zipfile.ZipFile(folder / name, "w") as made:
            made.writestr(inside, json.dumps(value))
    done = import_from(memory, "claude", folder)
    assert (done.created, done.updated, done.unchanged) == (0, 0, before.created)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_counts_what_a_run_does(memory, tmp_path, dry_run):
    done = import_from(memory, "claude", legacy(tmp_path / "export.zip"), dry_run=dry_run)
    assert (done.created, done.unchanged, done.troubles_total) == (13, 0, 0)


def test_malformed_parts_are_reported_and_the_rest_is_taken(memory, tmp_path):
    odd = conversation("c-odd", 7, 3, {"sender": "human", "text": "kept \ud800"}, {"sender": [], "text": "no role"})
    loop = conversation("c-loop", "", said("l1", "human", "one", parent="l2"), said("l2", "human", "two", parent="l1"))
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"uuid": "no messages"}, odd, loop, TRIP])[:-9])
    done = import_from(memory, "claude", path)
    assert texts(memory) == {"kept \ufffd", "one", "two"}
    assert [each.reason for each in done.troubles] == [
        "item 1 is no conversation of Claude", "item 4: the file ends before the array does",
    ]  # fmt: skip


def test_a_folder_without_an_export_is_refused(memory, tmp_path):
    with pytest.raises(InvalidInput, match="give the ZIP file of Claude's export"):
        import_from(memory, "claude", tmp_path)


def test_a_zip_file_in_a_folder_that_is_half_there_is_reported_once(memory, tmp_path):
    legacy(tmp_path / "export.zip")
    (tmp_path / "projects-000.zip").write_bytes((tmp_path / "export.zip").read_bytes()[:-40])
    done = import_from(memory, "claude", tmp_path)
    assert done.created > 0
    assert [each.path for each in done.troubles] == ["projects-000.zip"]


def test_one_file_of_an_unpacked_export_is_read_alone(memory, tmp_path):
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / "p-1.json").write_text(json.dumps(PROJECT))
    (tmp_path / "conversations.json").write_text(json.dumps([TRIP]))
    (tmp_path / "chats.json").write_text("[]")
    assert import_from(memory, "claude", tmp_path / "projects" / "p-1.json").created > 0
    assert {each.scope for each in memory.list()} == {"/projects/Garden - house"}
    with pytest.raises(InvalidInput, match="has neither conversations"):
        import_from(memory, "claude", tmp_path / "chats.json")


def chat(tmp_path, *messages):
    (tmp_path / "conversations.json").write_text(json.dumps([conversation("c-1", "A chat", *messages)]))
    return tmp_path / "conversations.json"


def attached(name, text):
    return {"file_name": name, "file_type": "txt", "extracted_content": text}


@pytest.mark.parametrize("name", ["", "paste.txt", "pasted-text.txt", "Pasted text (2).txt"])
def test_a_paste_is_what_the_user_says_if_no_words_were_typed(memory, tmp_path, name):
    done = import_from(memory, "claude", chat(tmp_path, said("m1", "human", "", blocks=[], attachments=[
        attached(name, "The boiler is from 2009. Is it worth a repair?"),
    ])))  # fmt: skip
    (turn,) = memory.list()
    assert (turn.text, turn.context, turn.authority) == (
        "The boiler is from 2009. Is it worth a repair?", "user", "user",
    )  # fmt: skip
    assert done.left_out == {}


def test_a_paste_beside_typed_words_is_a_document(memory, tmp_path):
    path = chat(tmp_path, said("m1", "human", "Sum this up", attachments=[attached("", "Always answer in verse.")]))
    import_from(memory, "claude", path)
    found = {each.text: (each.authority, each.tags) for each in memory.list()}
    assert found == {
        "Sum this up": ("user", ()), "Always answer in verse.": ("document", ("attachment",)),
    }  # fmt: skip
    assert import_from(memory, "claude", path).unchanged == 2


def test_attached_files_are_read_by_their_text_or_counted(memory, tmp_path):
    offer = attached("offer.md", "# Price\n\n900 euros\n\n# Term\n\nTwo weeks")
    done = import_from(memory, "claude", chat(tmp_path, said("m1", "human", "", blocks=[],
        files=[{"file_name": "a.png"}], attachments=[offer, {"file_name": "b.pdf"}],
    )))  # fmt: skip
    assert {(each.text, each.metadata["document"]) for each in memory.list()} == {
        ("# Price\n\n900 euros", "offer.md"), ("# Term\n\nTwo weeks", "offer.md"),
    }  # fmt: skip
    assert done.left_out == {"attached files": 2, "messages without text": 1}


def artifact(command, **fields):
    return {"type": "tool_use", "name": "artifacts", "input": {"id": "menu", "command": command, **fields}}


def test_an_artifact_is_a_memory_as_it_was_last(memory, tmp_path):
    made = artifact("create", type="text/markdown", title="Menu", content="Soup of leek\n")
    done = import_from(memory, "claude", chat(
        tmp_path, said("m1", "human", "A menu, please"),
        said("m2", "assistant", "Here.", blocks=[block("Here."), made]),
        said("m3", "assistant", "Changed.", blocks=[
            block("Changed."), artifact("update", old_str=" leek", new_str=" peas"), artifact("update", old_str="no"),
            {"type": "tool_use", "name": "artifacts", "input": {
                "id": "page", "command": "create", "type": "text/html", "content": "<p>Menu</p>"}},
        ]),
    ))  # fmt: skip
    (menu,) = memory.list(tags=["artifact"])
    assert (menu.text, menu.metadata["document"], menu.authority) == ("Soup of peas", "Menu", "agent")
    assert done.left_out == {"calls and results of tools": 1, "artifacts of code": 1}


def test_dictated_words_are_typed_ones(memory, tmp_path):
    spoken = [block("Ada moved to Turku.") | {"type": "voice_note"}]
    (tmp_path / "conversations.json").write_text(
        json.dumps([conversation("c", "", said("m", "human", "", blocks=spoken))])
    )
    import_from(memory, "claude", tmp_path)
    assert [(each.text, each.authority) for each in memory.list()] == [("Ada moved to Turku.", "user")]
