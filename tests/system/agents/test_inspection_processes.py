"""The file as any SQLite tool sees it (seed 002): its SQL runs as it stands. SQLite is that of another process."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from recallite import Memory
from tests.unit.core.agents.test_inspection import query
from tests.unit.core.memory.support import PLAIN, raw


def test_the_seeds_sql_runs_as_it_stands(path):
    with Memory(path, settings=PLAIN) as memory:
        session = memory.sessions.open("my-project-session", agent="ada", provider="anthropic")
        session.append("user", "What are the main risks?")
        session.append({"role": "assistant", "content": None, "tool_calls": [{"id": 1}]})
        memory.sessions.open("empty")
        for tokens in (1000, 1380):
            memory.experience.record(task_type="query", tools=["file-write"], success=True, steps=4, tokens=tokens)
        created = session.created_at
    rows = query(path, "SELECT id, agent_id, created_at, json_array_length(messages) as msg_count FROM agent_sessions")
    assert [(row["id"], row["agent_id"], row["msg_count"]) for row in rows] == [
        ("my-project-session", "ada", 2),
        ("empty", None, 0),
    ]
    assert abs(datetime.fromisoformat(rows[0]["created_at"]) - created) <= timedelta(milliseconds=1)
    (pattern,) = query(path, "SELECT * FROM experience_tool_patterns")
    assert (pattern["task_type"], pattern["pattern"]) == ("query", '["file-write"]')
    assert (pattern["total_count"], pattern["success_count"], pattern["success_rate"]) == (2, 2, 1.0)
    assert (pattern["avg_steps"], pattern["avg_tokens"]) == (4.0, 1190.0)


def test_every_view_shows_what_its_service_keeps(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.semantic.add("a fact", agent="ada")
        memory.episodes.log(
            "it began",
            event_type="task-started",
            agent="ada",
            task_id="t",
            cost=0.5,
            valid_from="2026-03-01T23:00:00-02:00",
        )
        memory.procedures.save("deploy", "How to", pattern="make", success_rate=0.75)
        memory.experience.record_recovery(tool="t", error="No file /tmp/x", recovery="make it")
        memory.episodes.snapshot("s", messages=[{"role": "user", "content": "x"}], summary="short", agent="ada")
        memory.consolidator.run("ada")
        memory.working.agent("ada").add("in mind", importance=0.7)
        memory.working.agent("ada").save()

    def one(sql):
        (row,) = query(path, sql)
        return tuple(row.values())

    assert one("SELECT agent_id, date, content, task_id, event_type, cost, importance FROM episodes") == (
        "ada", "2026-03-02", "it began", "t", "task-started", 0.5, 0.475,
    )  # fmt: skip
    assert one("SELECT name, description, pattern, success_rate, use_count FROM procedures") == (
        "deploy", "How to", "make", 0.75, 0,
    )  # fmt: skip
    assert one("SELECT tool, error_pattern, recovery, total_count FROM experience_error_recoveries") == (
        "t", "no file <path>", "make it", 1,
    )  # fmt: skip
    assert one("SELECT agent_id, session_id, summary, json_array_length(messages) FROM session_snapshots") == (
        "ada", "s", "short", 1,
    )  # fmt: skip
    assert one("SELECT agent_id, compressed, pruned, replayed, promoted, error FROM consolidations") == (
        "ada", 1, 0, 1, 0, None,
    )  # fmt: skip
    assert one("SELECT agent_id, place, content, importance FROM working_memory") == ("ada", 0, "in mind", 0.7)
    assert len(query(path, "SELECT * FROM memories")) == 3


def test_a_malformed_message_hides_no_other_session(path):
    with Memory(path, settings=PLAIN) as memory:
        for name in ("a", "b"):
            memory.sessions.open(name).append("user", name)
    other = raw(path)
    other.execute("UPDATE session_message SET message = '{\"role\": ' WHERE id = 1")
    other.close()
    rows = query(path, "SELECT id, messages, json_array_length(messages) AS n FROM agent_sessions ORDER BY id")
    assert [json.loads(row["messages"]) for row in rows] == [['{"role": '], [{"role": "user", "content": "b"}]]
    assert [row["n"] for row in rows] == [1, 1]


def test_an_agent_is_the_last_segment_under_agents(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.sessions.open("a", agent="ada")
        memory.scoped("/team").sessions.open("b", agent="bob")
        memory.scoped("/agents/ada/notes").sessions.open("c")
        memory.scoped("/agents").sessions.open("d")
        memory.scoped("/xagents/eve").sessions.open("e")
    rows = query(path, "SELECT id, agent_id, scope FROM agent_sessions ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [
        ("a", "ada", "/agents/ada"),
        ("b", "bob", "/team/agents/bob"),
        ("c", None, "/agents/ada/notes"),
        ("d", None, "/agents"),
        ("e", None, "/xagents/eve"),
    ]
