"""The database of claude-mem."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import apsw
import pytest

from recallite import Memory
from recallite.errors import InvalidInput, NotADatabase
from recallite_connect.importers import import_from

# As SessionStore.ts of claude-mem 13 makes it.
SCHEMA = """
CREATE TABLE schema_versions (id INTEGER PRIMARY KEY, version INTEGER UNIQUE NOT NULL, applied_at TEXT NOT NULL);
CREATE TABLE sdk_sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, memory_session_id TEXT UNIQUE,
    project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude', user_prompt TEXT, started_at TEXT NOT NULL,
    started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER,
    status TEXT NOT NULL DEFAULT 'active', worker_port INTEGER, prompt_counter INTEGER DEFAULT 0, custom_title TEXT);
CREATE TABLE observations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, text TEXT,
    type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
    files_modified TEXT, prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL, content_hash TEXT, generated_by_model TEXT, merged_into_project TEXT);
CREATE TABLE session_summaries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, request TEXT,
    investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT,
    prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL, merged_into_project TEXT);
CREATE TABLE user_prompts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_db_id INTEGER, content_session_id TEXT NOT NULL,
    prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL);
CREATE VIRTUAL TABLE observations_fts USING fts5(title, narrative, content='observations', content_rowid='id');
"""
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
EPOCH_MS = int(NOON.timestamp() * 1000)
TIME = {"created_at": "2026-06-01T12:00:00.000Z", "created_at_epoch": EPOCH_MS}


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


def insert(connection, table, **row):
    names = ", ".join(row)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "claude-mem.db"
    connection = apsw.Connection(str(made))
    connection.pragma("journal_mode", "wal")
    connection.execute(SCHEMA)
    insert(
        connection, "sdk_sessions", content_session_id="c-1", memory_session_id="m-1", project="billing",
        started_at="x", started_at_epoch=1, custom_title="Retries",
    )  # fmt: skip
    insert(
        connection, "observations", memory_session_id="m-1", project="billing", type="decision",
        title="Retry with backoff",
        subtitle="not shown", narrative="The exporter retried at once.",
        facts=json.dumps(["It waits 2 s", "At most 5 times"]),
        concepts=json.dumps(["how-it-works", "trade-off"]), files_read=json.dumps(["a.py"]), files_modified="[]",
        prompt_number=1, generated_by_model="claude-haiku-4-5", **TIME,
    )  # fmt: skip
    insert(
        connection, "session_summaries", memory_session_id="m-1", project="billing", request="Why retries?",
        investigated="", learned="Locks are slow.", completed="A backoff.", next_steps="Measure.", notes=None, **TIME,
    )  # fmt: skip
    insert(
        connection, "user_prompts", session_db_id=1, content_session_id="c-1", prompt_number=1,
        prompt_text="Why does it retry?", **TIME,
    )  # fmt: skip
    connection.close()
    return made


def test_observations_summaries_and_prompts_are_memories(memory, path):
    done = import_from(memory, "claude-mem", path, scope="/code")
    assert (done.created, done.troubles) == (3, ())
    by_tag = {each.tags[-1]: each for each in memory.list()}
    noted = memory.get(f"claude-mem:observation:1:{EPOCH_MS}")
    assert noted.text == "Retry with backoff\n\nThe exporter retried at once.\n\n- It waits 2 s\n- At most 5 times"
    assert (noted.scope, noted.source, noted.created_at) == ("/code/billing", "claude-mem/billing/c-1", NOON)
    assert set(noted.tags) == {"decision", "how-it-works", "trade-off"}
    assert noted.metadata == {
        "session": "c-1", "project": "billing", "title": "Retries", "prompt": 1, "model": "claude-haiku-4-5",
        "files_read": ["a.py"],
    }  # fmt: skip
    assert by_tag["summary"].text == (
        "Request: Why retries?\nLearned: Locks are slow.\nCompleted: A backoff.\nNext steps: Measure."
    )
    prompt = by_tag["prompt"]
    assert (prompt.text, prompt.context, prompt.position, prompt.source) == (
        "Why does it retry?", "user", 1, "claude-mem/billing/c-1",
    )  # fmt: skip


def test_the_folder_is_enough_and_a_second_run_finds_nothing_new(memory, path):
    import_from(memory, "claude-mem", path.parent)
    done = import_from(memory, "claude-mem", path.parent)
    assert (done.created, done.unchanged) == (0, 3)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_database_of_an_older_version(memory, tmp_path):
    old = tmp_path / "claude-mem.db"
    connection = apsw.Connection(str(old))
    connection.execute("""
        CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, claude_session_id TEXT, sdk_session_id TEXT, project TEXT);
        CREATE TABLE observations (id INTEGER PRIMARY KEY, sdk_session_id TEXT, project TEXT, text TEXT NOT NULL,
            type TEXT, created_at TEXT, created_at_epoch INTEGER);
        INSERT INTO sdk_sessions VALUES (1, 'c-old', 's-old', 'shop');
        INSERT INTO observations VALUES (1, 's-old', 'shop', 'Port 8080 is taken', 'discovery', '2025-09-01', 0);
    """)
    connection.close()
    import_from(memory, "claude-mem", old)
    (noted,) = memory.list()
    assert (noted.text, noted.source) == ("Port 8080 is taken", "claude-mem/shop/c-old")


def test_odd_values_are_put_right(memory, path):
    connection = apsw.Connection(str(path))
    insert(
        connection, "observations", memory_session_id="gone", project="x/../y", type=b"raw", title=b"7",
        narrative="kept",
        facts="not json", concepts='{"a": 1}', created_at="never", created_at_epoch="never",
    )  # fmt: skip
    insert(connection, "observations", memory_session_id="gone", project="x", type="change", title="", **TIME)
    connection.close()
    done = import_from(memory, "claude-mem", path)
    assert (done.created, done.left_out, done.troubles) == (4, {"empty observations": 1}, ())
    assert memory.get("claude-mem:observation:2:never").text == "kept"


def test_another_database_is_refused(memory, tmp_path):
    other = tmp_path / "other.db"
    apsw.Connection(str(other)).execute("CREATE TABLE t (a)")
    with pytest.raises(InvalidInput, match="no table observations"):
        import_from(memory, "claude-mem", other)
    other.write_text("no database at all, but of some length")
    with pytest.raises(NotADatabase):
        import_from(memory, "claude-mem", other)
