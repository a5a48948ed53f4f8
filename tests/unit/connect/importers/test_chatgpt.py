"""The export of ChatGPT."""

from __future__ import annotations

import json
import os
import zipfile
from datetime import UTC, datetime

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite_connect.importers import import_from

BEGUN = 1_760_000_000.25


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


def message(id, role, *parts, content_type="text", recipient="all", at=BEGUN, content=None, **metadata):
    return {
        "id": id, "author": {"role": role, "name": None, "metadata": {}}, "create_time": at, "update_time": None,
        "content": content or {"content_type": content_type, "parts": list(parts)}, "status": "finished_successfully",
        "end_turn": None, "weight": 1.0, "metadata": metadata, "recipient": recipient, "channel": None,
    }  # fmt: skip


def conversation(id, title, *nodes, current=None):
    """Nodes are (id, parent, message)."""
    return {
        "title": title, "create_time": BEGUN, "update_time": BEGUN + 60, "moderation_results": [],
        "mapping": {
            node: {"id": node, "message": said, "parent": parent, "children": [n for n, p, _ in nodes if p == node]}
            for node, parent, said in nodes
        },
        "current_node": nodes[-1][0] if current is None else current, "conversation_id": id, "id": id,
        "gizmo_id": None, "is_archived": False, "default_model_slug": "auto",
    }  # fmt: skip


BIKE = conversation(
    "c-bike", "A bike for Ada",
    ("root", None, None),
    ("sys", "root", message("sys", "system", "", at=None, is_visually_hidden_from_conversation=True)),
    ("own", "sys", message("own", "user", at=None, content={
        "content_type": "user_editable_context",
        "user_profile": "The user provided the following information about themselves: ```I live in Oslo.```",
        "user_instructions": "The user provided the additional info: ```Answer briefly.```",
    }, is_visually_hidden_from_conversation=True, is_user_system_message=True, user_context_message_data={
        "about_user_message": "I live in Oslo.", "about_model_message": "Answer briefly."})),
    ("u1", "own", message("u1", "user", "Which bike should Ada buy?")),
    ("a1-first", "u1", message("a1-first", "assistant", "A first answer, which was given up.")),
    ("a1", "u1", message(
        "a1", "assistant", "A gravel bike \ue200cite\ue202turn0search1\ue201 fits her commute【3†source】.",
        at=BEGUN + 5, model_slug="gpt-5-2")),
    ("bio", "a1", message("bio", "assistant", "Ada commutes by bike.", recipient="bio", at=BEGUN + 6)),
    ("bio-done", "bio", message("bio-done", "tool", "Model set context updated.")),
    ("think", "bio-done", message("think", "assistant", content={"content_type": "thoughts", "thoughts": []})),
    ("call", "think", message("call", "assistant", recipient="python",
                              content={"content_type": "code", "language": "python", "text": "2 + 2"})),
    ("image", "call", message("image", "user", {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
                              content_type="multimodal_text")),
    ("u2", "image", message("u2", "user", {"content_type": "image_asset_pointer"}, "And in winter?",
                            {"content_type": "audio_transcription", "text": "With spikes?", "direction": "in"},
                            content_type="multimodal_text", at=BEGUN + 9)),
)  # fmt: skip


def archive(path, *conversations, name="conversations.json"):
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, json.dumps(list(conversations)))
        made.writestr("user.json", "{}")
    return path


def turns(memory, source="https://chatgpt.com/c/c-bike"):
    found = [each for each in memory.list(limit=1_000) if each.source == source and each.position is not None]
    return [(each.position, each.context, each.text) for each in sorted(found, key=lambda each: each.position)]


def test_the_branch_that_is_shown_is_taken_in_its_order(memory, tmp_path):
    done = import_from(memory, "chatgpt", archive(tmp_path / "export.zip", BIKE), scope="/chats")
    assert turns(memory) == [
        (0, "user", "Which bike should Ada buy?"),
        (1, "assistant", "A gravel bike fits her commute."),
        (2, "user", "And in winter?\n\nWith spikes?"),
    ]
    assert (done.created, done.unchanged, done.troubles_total) == (5, 0, 0)
    assert done.left_out == {
        "messages of other branches": 1, "hidden messages": 1, "calls and results of tools": 2,
        "thoughts of a model": 1, "messages without text": 1,
    }  # fmt: skip
    answer = memory.get("chatgpt:a1")
    assert answer.created_at == datetime.fromtimestamp(BEGUN + 5, UTC)
    assert answer.scope == "/chats"
    assert answer.metadata == {
        "conversation": "c-bike", "title": "A bike for Ada", "role": "assistant", "model": "gpt-5-2",
    }  # fmt: skip


def test_saved_memories_and_custom_instructions_are_memories(memory, tmp_path):
    other = conversation("c-2", "Tea", ("root", None, None), ("o", "root", BIKE["mapping"]["own"]["message"]))
    done = import_from(memory, "chatgpt", archive(tmp_path / "export.zip", BIKE, other))
    assert memory.get("chatgpt:bio").text == "Ada commutes by bike."
    (own,) = memory.list(where={"tags": "custom-instructions"})
    assert own.text == "I live in Oslo.\n\nAnswer briefly."
    assert done.unchanged == 1


@pytest.mark.parametrize("batch_size", [1, 3, 1024])
@pytest.mark.parametrize("dry_run", [True, False])
def test_counts_depend_neither_on_batches_nor_on_a_dry_run(memory, tmp_path, batch_size, dry_run):
    path = archive(tmp_path / "export.zip", BIKE, BIKE)
    done = import_from(memory, "chatgpt", path, batch_size=batch_size, dry_run=dry_run)
    assert (done.created, done.unchanged, done.updated) == (5, 5, 0)
    assert memory.count() == (0 if dry_run else 5)


def test_a_later_export_adds_what_is_new(memory, tmp_path):
    import_from(memory, "chatgpt", archive(tmp_path / "first.zip", BIKE))
    nodes = [(id, node["parent"], node["message"]) for id, node in BIKE["mapping"].items()]
    longer = conversation("c-bike", "Renamed", *nodes, ("a2", "u2", message("a2", "assistant", "Yes, with spikes.")))
    done = import_from(memory, "chatgpt", archive(tmp_path / "second.zip", longer))
    assert (done.created, done.updated, done.unchanged) == (1, 0, 5)
    assert turns(memory)[3:] == [(3, "assistant", "Yes, with spikes.")]


def test_a_folder_with_parts_and_a_single_file(memory, tmp_path):
    tea = conversation("c-tea", "Tea", ("n", None, message("t1", "user", "Which tea is mildest?")))
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "conversations-000.json").write_text(json.dumps([BIKE]))
    (folder / "conversations-001.json").write_text(json.dumps([tea]))
    (folder / "message_feedback.json").write_text("not read")
    assert import_from(memory, "chatgpt", folder).created == 6
    (tmp_path / "one.json").write_text(json.dumps(tea))
    assert import_from(memory, "chatgpt", tmp_path / "one.json").unchanged == 1


def test_what_is_malformed_is_reported_and_the_rest_is_taken(memory, tmp_path):
    tea = json.dumps(conversation("c-tea", "Tea", ("n", None, message("t1", "user", "Which tea is mildest?"))))
    path = tmp_path / "conversations.json"
    path.write_bytes(f'[{{"mapping": 3}}, {{"id": }}, "text", {tea}, {json.dumps(BIKE)}'.encode()[:-40])
    done = import_from(memory, "chatgpt", path)
    assert memory.get("chatgpt:t1").text == "Which tea is mildest?"
    assert [(each.path, each.line) for each in done.troubles] == [("conversations.json", 1)] * 4
    assert [each.reason[:36].strip() for each in done.troubles] == [
        "item 1 is no conversation of ChatGPT", "item 2: '{\"id\": }' is not JSON: JSON",
        "item 3 is no conversation of ChatGPT", "item 5: the file ends before the arr",
    ]  # fmt: skip


def test_odd_values_do_no_harm(memory, tmp_path):
    said = message("odd", "user", "lone \ud800 and \0 nul", at="yesterday")
    loop = conversation("c-loop", None, ("a", "b", said), ("b", "a", message("b", "assistant", 3, None, at=1e300)))
    bare = {"id": "c-bare", "mapping": {"x": 1, "y": {"message": {"author": 1, "content": [], "metadata": 2}}}}
    unnamed = conversation("c-end", "End", ("n", None, message("n", "user", "kept")), current="gone")
    path = tmp_path / "conversations.json"
    path.write_bytes(json.dumps([loop, bare, unnamed]).encode() + b"\n")
    done = import_from(memory, "chatgpt", path)
    assert done.troubles == ()
    assert {each.text for each in memory.list()} == {"lone \ufffd and \ufffd nul", "kept"}


def test_bytes_that_are_not_utf_8(memory, tmp_path):
    path = tmp_path / "conversations.json"
    said = json.dumps([conversation("c", "t", ("n", None, message("n", "user", "gr@n")))])
    path.write_bytes(said.encode().replace(b"@", b"\xfc"))
    import_from(memory, "chatgpt", path)
    assert memory.get("chatgpt:n").text == "gr\ufffdn"


def test_an_archive_that_unpacks_to_far_more_is_not_read_to_its_end(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("recallite_connect.importers.reading._ALWAYS_BYTES", 1 << 20)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("conversations.json", "[" + " " * (8 << 20) + "]")
    (trouble,) = import_from(memory, "chatgpt", path).troubles
    assert "unpacks to more than" in trouble.reason


def test_an_archive_is_opened_once_however_many_files_it_has(memory, tmp_path, monkeypatch):
    opened = []
    plain = zipfile.ZipFile.__init__

    def counted(self, *arguments, **options):
        opened.append(arguments)
        plain(self, *arguments, **options)

    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as made:
        for number in range(40):
            one = conversation(f"c{number}", "t", ("n", None, message(f"n{number}", "user", f"memory {number}")))
            made.writestr(f"{number}/conversations.json", json.dumps([one]))
    monkeypatch.setattr(zipfile.ZipFile, "__init__", counted)
    assert import_from(memory, "chatgpt", path).created == 40
    assert len(opened) == 1
    monkeypatch.setattr("recallite_connect.importers.reading._MAX_MEMBERS", 39)
    with pytest.raises(InvalidInput, match="has 40 files to read, more than 39: unpack it"):
        import_from(memory, "chatgpt", path)


def test_all_files_of_an_archive_unpack_to_no_more_than_one_may(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("recallite_connect.importers.reading._ALWAYS_BYTES", 1 << 20)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for number in range(9):  # each within what one may
            made.writestr(f"{number}/conversations.json", " " * (1 << 19))
    reasons = [trouble.reason for trouble in import_from(memory, "chatgpt", path).troubles]
    assert sum("unpacks to more than" in reason for reason in reasons) == 7


def test_a_damaged_archive_is_reported(memory, tmp_path):
    path = archive(tmp_path / "export.zip", BIKE)
    raw = bytearray(path.read_bytes())
    raw[60:120] = bytes(60)
    path.write_bytes(raw)
    (trouble,) = import_from(memory, "chatgpt", path).troubles
    assert trouble.path == "conversations.json"
    path.write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(InvalidInput, match=r"has no conversations\.json"):
        import_from(memory, "chatgpt", path)


def test_a_folder_that_cannot_be_read_is_reported_and_the_rest_is_taken(memory, tmp_path, refusing_folder):
    archive(tmp_path / "a.zip", BIKE)
    inner = tmp_path / "parts"
    inner.mkdir()
    with refusing_folder(inner):
        done = import_from(memory, "chatgpt", tmp_path)
    assert [(each.path, each.reason) for each in done.troubles] == [("parts", "it cannot be read: Permission denied")]
    assert done.created > 0
    with refusing_folder(tmp_path), pytest.raises(InvalidInput, match="cannot be read: Permission denied"):
        import_from(memory, "chatgpt", tmp_path)


def test_links_out_of_the_folder_are_not_followed(memory, tmp_path):
    folder = tmp_path / "export"
    folder.mkdir()
    (tmp_path / "elsewhere.json").write_text(json.dumps([BIKE]))
    os.symlink(tmp_path / "elsewhere.json", folder / "conversations.json")
    with pytest.raises(InvalidInput, match=r"has no conversations\.json"):
        import_from(memory, "chatgpt", folder)


def test_the_newest_message_is_found_among_times_of_all_kinds(memory, tmp_path):
    odd = conversation(
        "c", "T", ("n1", None, message("m1", "user", "Which bike?", at="2025-01-01T00:00:00Z")),
        ("n2", "n1", message("m2", "assistant", "Gravel.")), ("n3", "n1", message("m3", "assistant", "No.", at=[])),
        current="gone",
    )  # fmt: skip
    done = import_from(memory, "chatgpt", archive(tmp_path / "export.zip", odd))
    assert (done.created, done.left_out, done.troubles) == (2, {"messages of other branches": 1}, ())
    assert memory.get("chatgpt:m2").text == "Gravel."


def test_a_conversation_whose_id_is_blank_is_reported(memory, tmp_path):
    blank = conversation("\x01", "T", ("n1", None, message(None, "user", "Which bike?")))
    done = import_from(memory, "chatgpt", archive(tmp_path / "export.zip", blank, BIKE))
    assert [each.reason for each in done.troubles] == ["item 1 is no conversation of ChatGPT"]
    assert done.created > 0


def test_an_archive_in_a_folder_that_is_half_there_is_reported(memory, tmp_path):
    archive(tmp_path / "a.zip", BIKE)
    half = archive(tmp_path / "b.zip", BIKE)
    half.write_bytes(half.read_bytes()[:-40])
    done = import_from(memory, "chatgpt", tmp_path)
    assert done.created > 0
    ((path, reason),) = [(each.path, each.reason) for each in done.troubles]
    assert (path, "is not a ZIP file that can be read" in reason) == ("b.zip", True)


def canvas(id, action, **fields):
    content = {"content_type": "code", "language": "json", "text": json.dumps(fields)}
    return message(id, "assistant", content=content, recipient=f"canmore.{action}_textdoc")


def test_a_canvas_is_a_memory_as_it_was_last_and_files_are_counted(memory, tmp_path):
    plan = conversation(
        "c-plan", "Garden",
        ("u", None, message("u", "user", "Write a plan", attachments=[{"id": "f", "name": "beds.pdf"}])),
        ("c1", "u", canvas("c1", "create", name="plan", type="document", content="Sow peas (early) in May.")),
        ("c2", "c1", canvas("c2", "update", updates=[{"pattern": r"peas \(early\)", "replacement": "beans"}])),
        ("c3", "c2", canvas("c3", "update", updates=[{"pattern": "(a+)+$", "replacement": "x"}])),
        ("c4", "c3", canvas("c4", "create", name="app", type="code/python", content="print(1)")),
        ("c5", "c4", canvas("c5", "update", updates=[{"pattern": ".*", "replacement": "print(2)"}])),
    )  # fmt: skip
    done = import_from(memory, "chatgpt", archive(tmp_path / "export.zip", plan))
    (written,) = memory.list(tags=["canvas"])
    assert (written.text, written.context, written.authority) == ("Sow beans in May.", "plan", "agent")
    assert done.left_out == {"attached files": 1, "canvases of code": 1, "changes of canvases": 1}
    assert import_from(memory, "chatgpt", tmp_path / "export.zip").unchanged == 2


def test_without_a_current_node_and_times_the_last_branch_is_taken(memory, tmp_path):
    talk = conversation(
        "c", "", ("root", None, None), ("u", "root", message("u", "user", "Which lock?", at=None)),
        ("old", "u", message("old", "assistant", "The first one.", at=None)),
        ("new", "u", message("new", "assistant", "The second one.", at=None)),
    )  # fmt: skip
    (tmp_path / "conversations.json").write_text(json.dumps([talk | {"current_node": None}]))
    import_from(memory, "chatgpt", tmp_path)
    assert {each.text for each in memory.list()} == {"Which lock?", "The second one."}
