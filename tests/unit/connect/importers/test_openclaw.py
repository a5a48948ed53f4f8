"""The workspace of an OpenClaw agent."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite_connect.importers import import_from

FILES = {
    "AGENTS.md": "# AGENTS.md\n\nRead SOUL.md first.",
    "SOUL.md": "You are helpful.",
    "DREAMS.md": "I dreamt of lobsters.",
    "USER.md": "# USER.md - About Your Human\n\n- **Name**: Ada\n- **Timezone**: Europe/Oslo\n",
    "MEMORY.md": (
        "# MEMORY.md\n\n## Decisions\n\n- We chose Valkey over Redis. <!-- trigger: cache, redis --> "
        "<!-- importance: 8 -->\n- Deploys are on Tuesdays. <!-- importance: 3 -->\n\n## Preferences\n\n"
        "Short answers.\n"
    ),
    "memory/2026-03-21.md": "# 2026-03-21\n\n## Standup\n\nBilling moves to Go. #billing\n",
    "memory/2026-01-15-api-design.md": (
        "# Session: 2026-01-15 14:30:00 UTC\n\n- **Session Key**: agent:main:main\n- **Session ID**: abc123\n"
        "- **Source**: telegram\n\n## Conversation Summary\n\nuser: Which API?\nassistant: REST with JSON.\n"
    ),
    "memory/projects/atlas.md": "Atlas is due in May.",
    "memory/.dreams/state.md": "hidden",
    "memory/dreaming/deep/2026-03-21.md": "a report",
    "memory/heartbeat-state.json": "{}",
    "skills/x/SKILL.md": "no memory",
}


@pytest.fixture
def workspace(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_sections_of_memory_files_are_memories(workspace):
    with Memory(":memory:") as memory:
        done = import_from(memory, "openclaw", workspace)
        assert (done.created, done.troubles) == (6, ())
        assert {(record.id, record.context) for record in memory.list()} == {
            ("openclaw:USER.md#USER.md - About Your Human", "USER.md - About Your Human"),
            ("openclaw:MEMORY.md#MEMORY.md#Decisions", "MEMORY.md > Decisions"),
            ("openclaw:MEMORY.md#MEMORY.md#Preferences", "MEMORY.md > Preferences"),
            ("openclaw:memory/2026-03-21.md#2026-03-21#Standup", "2026-03-21 > Standup"),
            (
                "openclaw:memory/2026-01-15-api-design.md#Session: 2026-01-15 14:30:00 UTC#Conversation Summary",
                "2026-01-15-api-design > Session: 2026-01-15 14:30:00 UTC > Conversation Summary",
            ),
            ("openclaw:memory/projects/atlas.md", "atlas"),
        }
        assert import_from(memory, "openclaw", workspace).unchanged == 6


def test_what_openclaw_noted_of_an_entry_is_kept(workspace):
    with Memory(":memory:") as memory:
        import_from(memory, "openclaw", workspace)
        decisions = memory.get("openclaw:MEMORY.md#MEMORY.md#Decisions")
        assert decisions.text == (
            "# MEMORY.md\n\n## Decisions\n\n- We chose Valkey over Redis.\n- Deploys are on Tuesdays."
        )
        assert (decisions.importance, decisions.tags) == (0.8, ("cache", "redis"))


def test_days_and_sessions_have_their_time(workspace):
    with Memory(":memory:") as memory:
        import_from(memory, "openclaw", workspace)
        day = memory.get("openclaw:memory/2026-03-21.md#2026-03-21#Standup")
        assert (day.created_at, day.tags) == (datetime(2026, 3, 21, tzinfo=UTC), ("billing",))
        (session,) = memory.list(where={"metadata.session_id": "abc123"})
        assert session.created_at == datetime(2026, 1, 15, 14, 30, tzinfo=UTC)
        assert session.metadata["session_key"] == "agent:main:main"
        assert "REST with JSON" in session.text


def test_an_edited_entry_is_a_version(workspace):
    with Memory(":memory:") as memory:
        import_from(memory, "openclaw", workspace)
        (workspace / "memory/projects/atlas.md").write_text("Atlas is due in June.")
        done = import_from(memory, "openclaw", workspace)
        assert (done.updated, done.unchanged) == (1, 5)
        assert len(memory.history("openclaw:memory/projects/atlas.md")) == 2


def test_a_folder_that_is_no_workspace_is_refused(tmp_path):
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="neither MEMORY"):
        import_from(memory, "openclaw", tmp_path)


def test_an_entry_that_is_written_again_is_one_memory(workspace):
    entry = "## Browser\n\nThe test browser listens on 9333.\n\n"
    (workspace / "memory/2026-03-22.md").write_text(f"# Flush\n\n{entry}# Flush\n\n{entry}# Flush\n\n{entry}")
    with Memory(":memory:") as memory:
        assert import_from(memory, "openclaw", workspace).created == 7
        assert memory.get("openclaw:memory/2026-03-22.md#Flush#Browser").occurrences == 3


def test_what_a_channel_writes_around_a_message_is_cut(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "2026-02-03-boat.md").write_text(
        "# Session: 2026-02-03 14:30:00 UTC\n\n- **Session Key**: agent:main:main\n- **Source**: telegram\n\n"
        "## Conversation Summary\n\nuser: Conversation info (untrusted metadata):\n```json\n"
        '{\n  "message_id": "71",\n  "sender": "Nina"\n}\n```\n\nSender (untrusted metadata):\n```json\n'
        '{"label": "Nina (33)"}\n```\n\n[Tue 2026-02-03 15:33 GMT+1] Where is the boat moored?\n'
        "assistant: At the north pier, see [2].\n"
        "user: [WhatsApp Nina +4917 +2m 2026-02-03 14:40 UTC] And the keys?\n[message_id: 72]\n"
    )
    (tmp_path / "memory" / "plan.md").write_text("[2026-05-01 10:00] launch of the boat\n")
    with Memory(":memory:") as memory:
        import_from(memory, "openclaw", tmp_path)
        assert {each.text for each in memory.list()} == {
            "## Conversation Summary\n\nuser: Where is the boat moored?\nassistant: At the north pier, see [2].\n"
            "user: And the keys?",
            "[2026-05-01 10:00] launch of the boat",
        }
