"""The database of OpenCode."""

from __future__ import annotations

import json

import apsw
import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite_connect.importers import import_from, opencode
from recallite_connect.importers.reading import FoundMemory, LeftOut

SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT NOT NULL,
    directory TEXT NOT NULL, title TEXT NOT NULL, version TEXT NOT NULL, revert TEXT, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
"""
BEGUN_MS = 1_760_000_000_000


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "opencode.db"
    connection = apsw.Connection(str(path))
    connection.execute(SCHEMA)
    for id, parent, revert in (("ses_1", None, json.dumps({"messageID": "msg_8"})), ("ses_2", "ses_1", None)):
        connection.execute(
            "INSERT INTO session VALUES (?, 'p', ?, 's', '/home/ada/billing', 'Locks', '1.18.33', ?, 0, 0)",
            (id, parent, revert),
        )

    def say(id, role, *parts, session="ses_1", **more):
        data = {"role": role, "time": {"created": BEGUN_MS}, **more}
        at = BEGUN_MS + int(id[4:]) * 1000
        connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", (id, session, at, at, json.dumps(data)))
        for place, part in enumerate(parts):
            row = (f"prt_{id}_{place}", id, session, at, at, json.dumps(part))
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)

    def text(said, **more):
        return {"type": "text", "text": said, **more}

    file, tool = {"type": "file", "mime": "text/plain"}, {"type": "tool", "tool": "bash", "state": {"output": "ok"}}
    say("msg_1", "user", text("Why retry?"), text("def pay(): ...", synthetic=True), file,
        text("Recalled.", ignored=True), agent="build", summary={"diffs": []})  # fmt: skip
    say("msg_2", "assistant", {"type": "step-start"}, {"type": "reasoning", "text": "Hm"}, text("For the lock."),
        tool, modelID="claude-opus-4-8")  # fmt: skip
    say("msg_3", "assistant", tool, modelID="claude-opus-4-8")
    say("msg_4", "user", {"type": "compaction", "auto": True})
    say("msg_5", "assistant", text("What was done so far."), summary=True)
    say("msg_6", "user", text("Use rows."))
    say("msg_7", "user", text("Search it."), session="ses_2")
    say("msg_8", "user", text("No, wrong."))
    connection.close()
    return path


def test_what_was_typed_and_said_is_taken(database):
    entries = [*opencode.read(database.parent)]
    found = [entry for entry in entries if isinstance(entry, FoundMemory)]
    assert [(entry.record.id, entry.record.text, entry.record.context, entry.authority) for entry in found] == [
        ("msg_1", "Why retry?", "user", "user"),
        ("msg_2", "For the lock.", "assistant", "agent"),
        ("msg_6", "Use rows.", "user", "user"),
    ]
    first, second = found[0].record, found[1].record
    assert (first.scope, first.source, first.position) == ("/billing", "opencode/billing/ses_1", 0)
    assert first.metadata == {
        "session": "ses_1", "project": "/home/ada/billing", "title": "Locks", "role": "user",
    }  # fmt: skip
    assert (second.metadata["model"], second.position) == ("claude-opus-4-8", 1)
    assert first.created_at.year == 2025
    kinds = [entry.what for entry in entries if isinstance(entry, LeftOut)]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "images and files": 1, "thoughts of a model": 1, "calls and results of tools": 2, "hidden messages": 3,
        "messages of subagents": 1,
    }  # fmt: skip


def test_a_second_import_adds_nothing(database):
    with Memory(":memory:") as memory:
        assert import_from(memory, "opencode", database).created == 3
        assert import_from(memory, "opencode", database).unchanged == 3


def test_another_place_is_refused(tmp_path):
    with Memory(":memory:") as memory:
        with pytest.raises(InvalidInput, match=r"has no opencode\.db"):
            import_from(memory, "opencode", tmp_path)
        connection = apsw.Connection(str(tmp_path / "opencode.db"))
        connection.execute("CREATE TABLE session (id TEXT)")
        connection.close()
        with pytest.raises(InvalidInput, match="is no database of OpenCode: it has no table session with"):
            import_from(memory, "opencode", tmp_path)
