"""Episodes (seed 002): a typed log with task, cost and duration, and snapshots of sessions."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from recallite import Memory
from recallite.agents.tiers import EVENT_TYPES
from recallite.errors import InvalidInput, NotFound
from tests.unit.core.memory.support import PLAIN, state


def test_episodes_keep_type_task_cost_duration_and_metadata(either):
    record = either.episodes.log(
        "Migrated the orders table",
        event_type="task-completed",
        agent="ada",
        task_id="t-1",
        cost=0.25,
        duration_ms=1200,
        metadata={"rows": 10},
        valid_from="2026-03-01T10:00:00+00:00",
    )
    assert (record.kind, record.scope, record.importance) == ("episode", "/agents/ada", 0.5)
    assert record.metadata == {
        "event_type": "task-completed",
        "task_id": "t-1",
        "cost": 0.25,
        "duration_ms": 1200.0,
        "rows": 10,
    }
    assert either.episodes.get(record.id) == either.get(record.id)
    assert [hit.id for hit in either.recall("orders migration table", kinds=["episode"])] == [record.id]


def test_every_event_type_of_the_seed_is_known(memory):
    assert EVENT_TYPES == (
        "task-started", "task-completed", "task-failed", "decision-made", "error-encountered", "user-feedback",
        "tool-call", "observation", "chat-turn",
    )  # fmt: skip
    for event_type in EVENT_TYPES:
        memory.episodes.log("x", event_type=event_type)
    assert [r.metadata["event_type"] for r in memory.episodes.list()] == [*EVENT_TYPES]


def test_episodes_are_listed_by_task_type_and_date(memory):
    for day, task, event_type in ((1, "a", "tool-call"), (1, "b", "chat-turn"), (2, "a", "chat-turn")):
        memory.episodes.log(
            f"{day} {task}", task_id=task, event_type=event_type, valid_from=f"2026-03-0{day}T23:59:59.999999+00:00"
        )

    def texts(**how):
        return [record.text for record in memory.episodes.list(**how)]

    assert texts() == ["1 a", "1 b", "2 a"]
    assert texts(task_id="a") == ["1 a", "2 a"]
    assert texts(event_type="chat-turn", order="newest") == ["2 a", "1 b"]
    assert texts(on="2026-03-01") == texts(on=date(2026, 3, 1)) == ["1 a", "1 b"]
    assert texts(task_id="a", on="2026-03-02") == ["2 a"]
    assert texts(since="2026-03-02T00:00:00+00:00") == ["2 a"]
    assert [record.text for record in memory.episodes.recent(1)] == ["2 a"]


def test_a_snapshot_keeps_messages_whole(path):
    messages = [
        {"role": "user", "content": "Größe 🎉", "name": None},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "arguments": '{"a": 1.5}'}]},
        {"role": "tool", "content": [{"type": "text", "text": "ok"}], "n": 2**53 + 1},
    ]
    with Memory(path, settings=PLAIN) as memory:
        taken = memory.episodes.snapshot(
            "s-1", messages=messages, summary="sizes", key_decisions=["ship"], task_ids=["t1", "t2"],
            started_at="2026-03-01T10:00:00+00:00", ended_at="2026-03-01T11:00:00+00:00", total_cost=0.1,
            total_tokens=7,
            agent="ada",
        )  # fmt: skip
    with Memory(path, settings=PLAIN) as memory:
        found = memory.episodes.last_snapshot("ada")
        assert found == taken
        assert [*found.messages] == messages
        assert (found.key_decisions, found.task_ids) == (("ship",), ("t1", "t2"))
        assert (found.started_at, found.ended_at) == (
            datetime(2026, 3, 1, 10, tzinfo=UTC),
            datetime(2026, 3, 1, 11, tzinfo=UTC),
        )
        assert (found.agent, found.session_id, found.total_cost, found.total_tokens) == ("ada", "s-1", 0.1, 7)
        assert memory.episodes.last_snapshot("bob") is None


def test_a_snapshot_of_a_stored_session_leaves_the_session(memory):
    session = memory.sessions.open("s", agent="ada")
    session.append("user", "hello")
    taken = memory.episodes.snapshot("s", agent="ada", summary="greeting")
    assert [*taken.messages] == session.messages()
    assert taken.started_at == session.created_at
    with pytest.raises(NotFound, match="no session 's' here"):
        memory.episodes.snapshot("s", agent="bob")


def test_the_last_snapshot_is_the_one_that_ended_last(memory):
    for day in (2, 3, 1):
        memory.episodes.snapshot(messages=[], summary=str(day), ended_at=f"2026-03-0{day}T00:00:00+00:00")
    assert memory.episodes.last_snapshot().summary == "3"
    assert [each.summary for each in memory.episodes.snapshots()] == ["3", "2", "1"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.log("x", event_type="party"), "event_type is 'party': use 'task-started', 'task-completed'"),
        (lambda e: e.log("x", event_type=None), "event_type is None"),
        (lambda e: e.list(event_type="party"), "event_type is 'party'"),
        (lambda e: e.log("x", importance=float("nan")), "importance is nan"),
        (lambda e: e.log("x", cost=float("inf")), "cost is inf: give a finite number of at least 0"),
        (lambda e: e.log("x", duration_ms=-1), "duration_ms is -1"),
        (lambda e: e.log("x", task_id=""), "task_id is ''"),
        (lambda e: e.log("x", metadata={"cost": 1}), "metadata has the key 'cost'"),
        (lambda e: e.log(""), "there is nothing to remember"),
        (lambda e: e.list(on="some day"), "on 'some day' is not a time"),
        (lambda e: e.list(on="2026-03-01", since="2026-03-01T00:00:00+00:00"), "on, or by since and until"),
        (lambda e: e.list(order="sideways"), "order is 'sideways'"),
        (lambda e: e.snapshot(), "snapshot needs the messages"),
        (lambda e: e.snapshot(messages={"role": "user"}), "give a list of messages"),
        (lambda e: e.snapshot(messages=[{}]), "the message is empty"),
        (lambda e: e.snapshot(messages=[{"role": "user", "content": b"x"}]), "message.content is bytes"),
        (lambda e: e.snapshot(messages=[], key_decisions="go"), "key_decisions is 'go': give a list of str"),
        (lambda e: e.snapshot(messages=[], total_tokens=-1), "total_tokens is -1"),
    ],
)
def test_bad_episodes_are_refused(memory, call, message):
    before = state(memory)
    with pytest.raises(InvalidInput, match=message):
        call(memory.episodes)
    assert state(memory) == before
    assert memory.episodes.snapshots() == []
