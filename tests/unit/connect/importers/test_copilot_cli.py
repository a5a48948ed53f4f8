"""The session files of Copilot CLI; events as version 1.0.102 of the npm package @github/copilot wrote them."""

from __future__ import annotations

import json

import pytest

from recallite import Memory
from recallite_connect.importers import copilot_cli, import_from
from recallite_connect.importers.reading import FoundMemory

SESSION = "8e8c5203-19a6-4e96-a714-5861ed9c2eb8"


def event(number, kind, data, **more):
    return {
        "type": kind, "data": data, "id": f"e{number}", "timestamp": f"2026-05-02T09:{number:02d}:00.000Z",
        "parentId": f"e{number - 1}" if number else None, **more,
    }  # fmt: skip


CONTEXT = {"cwd": "/home/ada/billing", "gitRoot": "/home/ada/billing", "branch": "main"}
PROMPT = "<current_datetime>2026-05-02T09:03:00.000+00:00</current_datetime>\n\nWhy does the exporter retry?"
EVENTS = [
    event(0, "session.start", {"sessionId": SESSION, "producer": "copilot-agent", "context": CONTEXT}),
    event(1, "hook.start", {"hookType": "userPromptSubmitted", "input": {"prompt": "Why does the exporter retry?"}}),
    event(2, "system.message", {"role": "system", "content": "You are the GitHub Copilot CLI."}),
    event(3, "user.message", {"content": "Why does the exporter retry?", "transformedContent": PROMPT}),
    event(4, "assistant.turn_start", {"turnId": "0"}),
    event(5, "assistant.message", {"model": "gpt-5", "content": "", "reasoningText": "Hm", "toolRequests": [{}]}),
    event(6, "tool.execution_complete", {"toolCallId": "c1", "success": True, "result": {"content": "secret()"}}),
    event(7, "assistant.message", {"content": "Search it.", "parentToolCallId": "c1"}),
    event(8, "user.message", {"content": "Search it."}, agentId="explore-1"),
    event(9, "assistant.message", {"model": "gpt-5", "content": "It waits for the lock.", "toolRequests": []}),
    event(10, "user.message", {"content": "Use the skill.", "source": "skill-pdf"}),
    event(11, "user.message", {"content": "Go on.", "isAutopilotContinuation": True}),
    event(12, "user.message", {"content": "<system-reminder>be brief</system-reminder>\nUse rows."}),
    event(13, "session.compaction_complete", {"summaryContent": "The exporter retries."}),
    event(14, "user.message", {"content": "Use pages, then.", "source": "user"}),
]


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "session-state"
    (folder / SESSION / "files").mkdir(parents=True)
    (folder / SESSION / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in EVENTS))
    (folder / SESSION / "files" / "rows.jsonl").write_text('{"type": "user.message", "data": {"content": "a row"}}\n')
    return folder


def test_what_was_typed_and_said_is_taken(state):
    found = [entry for entry in copilot_cli.sessions(state).entries() if isinstance(entry, FoundMemory)]
    assert [(entry.record.text, entry.record.context, entry.authority, entry.line) for entry in found] == [
        ("Why does the exporter retry?", "user", "user", 4),
        ("It waits for the lock.", "assistant", "agent", 10),
        ("Use rows.", "user", "agent", 13),  # beside what a host put in
        ("Use pages, then.", "user", "user", 15),
    ]
    assert [entry.record.id for entry in found] == ["e3", "e9", "e12", "e14"]
    assert [entry.record.position for entry in found] == [0, 1, 2, 3]
    first, second = found[0].record, found[1].record
    assert (first.scope, first.source) == ("/billing", f"copilot-cli/billing/{SESSION}")
    assert first.metadata == {"session": SESSION, "project": "/home/ada/billing", "branch": "main", "role": "user"}
    assert (second.metadata["model"], f"{second.created_at:%H:%M}") == ("gpt-5", "09:09")


def test_what_is_no_memory_is_counted(state):
    with Memory(":memory:") as memory:
        done, again = import_from(memory, "copilot-cli", state), import_from(memory, "copilot-cli", state)
    assert done.left_out == {
        "thoughts of a model": 1, "calls and results of tools": 1, "messages of subagents": 2, "hidden messages": 2,
    }  # fmt: skip
    assert (done.created, done.troubles, again.created, again.unchanged) == (4, (), 0, 4)


def test_a_session_of_2025_is_a_file_of_its_name(tmp_path):
    start = {"type": "session.start", "data": {"sessionId": SESSION, "copilotVersion": "0.0.369"}, "id": "e1"}
    lines = [start, {"type": "user.message", "data": {"content": "Use rows.", "attachments": []}}]
    (tmp_path / f"{SESSION}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (found,) = copilot_cli.sessions(tmp_path).entries()
    assert isinstance(found, FoundMemory)
    assert (found.record.text, found.record.id, found.record.source) == (
        "Use rows.", f"{SESSION}:2", f"copilot-cli/{SESSION}",
    )  # fmt: skip


@pytest.mark.parametrize("data", [None, [], {"content": 7}, {"content": ["Use rows."]}, {"content": ""}])
def test_an_event_of_another_form_says_nothing(tmp_path, data):
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({"type": "assistant.message", "data": data, "id": 7, "timestamp": {}}) + "\n")
    assert [*copilot_cli.sessions(path).entries()] == []
