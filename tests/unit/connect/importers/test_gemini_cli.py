"""The session files of Gemini CLI, and of Qwen Code."""

from __future__ import annotations

import json

import pytest

from recallite import Memory
from recallite_connect.importers import gemini_cli, import_from
from recallite_connect.importers.reading import FoundMemory

SESSION = "5f3a0000-0000-4000-8000-000000000001"
HEAD = {"sessionId": SESSION, "projectHash": "9f", "startTime": "2026-05-02T09:00:00.000Z", "kind": "main"}


def said(id, kind, content, minute=0, **more):
    return {"id": id, "timestamp": f"2026-05-02T09:{minute:02d}:00.000Z", "type": kind, "content": content, **more}


CALL = {
    "id": "c1", "name": "ask_user", "displayName": "Ask User", "status": "success",
    "args": {"questions": [{"question": "Which lock?"}]},
    "result": [{"functionResponse": {"id": "c1", "response": {"output": '{"answers":{"0":"Rows"}}'}}}],
}  # fmt: skip
LINES = [
    HEAD,
    said("m0", "info", "Update available"),
    said("m1", "user", [{"text": "Why does @a.py retry?"}, {"text": "\n--- Content from referenced files ---"},
                        {"text": "secret()"}, {"text": "\n--- End of content ---"}],
         1, displayContent=[{"text": "Why does @a.py retry?"}]),
    {"$set": {"lastUpdated": "2026-05-02T09:01:00.000Z"}},
    said("m2", "gemini", "It waits for the lock.", 2, model="gemini-3-pro", thoughts=[{"subject": "x"}]),
    said("m2", "gemini", "It waits for the lock.", 2, model="gemini-3-pro", thoughts=[{"subject": "x"}],
         toolCalls=[CALL]),
    said("m3", "user", [{"functionResponse": {"id": "c1", "name": "ask_user", "response": {}}}], 3),
    said("m4", "gemini", "", 3, toolCalls=[{"id": "c2", "name": "run_shell_command", "args": {}}]),
    said("m5", "user", [{"text": "<hook_context>be brief</hook_context>"}, {"text": "Use rows."}], 4),
    said("m6", "user", [{"text": "<session_context>today</session_context>"}], 4),
    {"$rewindTo": "m5"},
    {"$set": {"messages": [said("s1", "user", [{"text": "<state_snapshot>goal</state_snapshot>"}])]}},
]  # fmt: skip


@pytest.fixture
def chats(tmp_path):
    folder = tmp_path / "tmp" / "billing-2" / "chats"
    (folder / SESSION).mkdir(parents=True)
    (folder.parent / ".project_root").write_text("/home/ada/billing\n")
    write(folder / "session-2026-05-02T09-00-5f3a0000.jsonl", LINES)
    write(folder / SESSION / "sub.jsonl", [{**HEAD, "kind": "subagent"}, said("x", "user", "Search it.")])
    return folder


def write(file, lines):
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_what_was_typed_and_said_is_taken_once(chats):
    entries = [*gemini_cli.read(chats.parent.parent)]
    found = [entry for entry in entries if isinstance(entry, FoundMemory)]
    assert [(entry.record.text, entry.record.context, entry.authority) for entry in found] == [
        ("Why does @a.py retry?", "user", "user"),
        ("It waits for the lock.", "assistant", "agent"),
        ("Which lock? Rows", "user", "user"),
        ("Use rows.", "user", "user"),
    ]
    assert [entry.record.position for entry in found] == [0, 1, 2, 3]
    first, second = found[0].record, found[1].record
    assert (first.scope, first.source) == ("/billing", f"gemini-cli/billing/{SESSION}")
    assert first.metadata == {"session": SESSION, "project": "/home/ada/billing", "role": "user"}
    assert second.metadata["model"] == "gemini-3-pro"


def test_what_is_no_memory_is_counted(chats):
    with Memory(":memory:") as memory:
        done = import_from(memory, "gemini-cli", chats)
        again = import_from(memory, "gemini-cli", chats)
    assert done.left_out == {"hidden messages": 2, "thoughts of a model": 1, "calls and results of tools": 3}
    assert (done.created, done.troubles, again.created, again.unchanged) == (4, (), 0, 4)


def test_subagents_are_left_out(tmp_path):
    write(tmp_path / "session-1.jsonl", [{**HEAD, "kind": "subagent"}, said("x", "user", "Search it.")])
    with Memory(":memory:") as memory:
        done = import_from(memory, "gemini-cli", tmp_path / "session-1.jsonl")
    assert (done.created, done.left_out) == (0, {"messages of subagents": 1})


def test_sessions_of_older_versions_are_one_document(tmp_path):
    file = tmp_path / "session-1.json"
    file.write_text(json.dumps({**HEAD, "messages": [said("m1", "user", "Use rows."), "no message"]}, indent=2))
    broken = tmp_path / "session-2.json"
    broken.write_text('{"sessionId": ')
    with Memory(":memory:") as memory:
        done = import_from(memory, "gemini-cli", tmp_path)
        alone = import_from(memory, "gemini-cli", file)
    assert (done.created, alone.unchanged) == (1, 1)
    assert [(trouble.path, trouble.reason) for trouble in done.troubles] == [("session-2.json", "it is no JSON object")]


def test_a_tool_of_a_server_does_not_answer_for_the_user(tmp_path):
    call = {**CALL, "displayName": "ask_user (helper MCP Server)"}
    write(tmp_path / "session-1.jsonl", [HEAD, said("m1", "gemini", "", toolCalls=[call])])
    found = [entry for entry in gemini_cli.read(tmp_path / "session-1.jsonl") if isinstance(entry, FoundMemory)]
    assert [(entry.record.text, entry.authority) for entry in found] == [("Which lock? Rows", "agent")]


@pytest.mark.parametrize("content", ["Use rows.", {"text": "Use rows."}, ["Use rows."], [{"text": "Use rows."}, None]])
def test_content_is_read_in_each_of_its_forms(tmp_path, content):
    message = said("m1", "user", content, toolCalls=7)
    write(tmp_path / "session-1.jsonl", [HEAD, [], {}, {"id": 7, "type": "user"}, said("m0", "user", None), message])
    found = [entry for entry in gemini_cli.read(tmp_path / "session-1.jsonl") if isinstance(entry, FoundMemory)]
    assert [(entry.record.text, entry.authority) for entry in found] == [("Use rows.", "user")]


def turn(id, kind, *parts, **more):
    role = "model" if kind == "assistant" else "user"
    return {"uuid": id, "parentUuid": None, "sessionId": "q1", "timestamp": "2026-05-02T09:00:00.000Z", "type": kind,
            "cwd": "/home/ada/billing", "version": "0.15.10", "gitBranch": "main",
            "message": {"role": role, "parts": list(parts)}, **more}  # fmt: skip


QWEN_LINES = [
    turn("u1", "user", {"text": "Why retry?"}, {"text": "<hook_context>x</hook_context>"}, provenance="real_user",
         systemPayload={"displayText": "Why retry?", "hookContext": "x"}),
    turn("a1", "assistant", {"text": "Hm", "thought": True}, {"text": "For the lock."}, {"functionCall": {}},
         model="qwen3-coder", provenance="assistant_output"),
    turn("t1", "tool_result", {"functionResponse": {"name": "read_file"}}, provenance="tool_result"),
    turn("n1", "user", {"text": "Task done."}, subtype="notification", provenance="system"),
    turn("c1", "user", {"text": "Check the build."}, subtype="cron"),
    turn("g1", "user", {"text": "Go on with the goal."}, provenance="goal_runtime"),
    turn("s1", "user", {"text": "Search it."}, isSidechain=True, agentId="explore-1"),
    turn("u2", "user", {"text": "Use rows."}, subtype="mid_turn_user_message", provenance="real_user"),
    turn("x1", "system", subtype="chat_compression", systemPayload={"compressedHistory": []}),
]  # fmt: skip


def test_sessions_of_qwen_code(tmp_path):
    chats = tmp_path / "-home-ada-billing" / "chats"
    chats.mkdir(parents=True)
    write(chats / "q1.jsonl", QWEN_LINES)
    fork = {"sessionId": "q2", "forkedFrom": {"sessionId": "q1"}}
    write(chats / "q2.jsonl", [{**line, **fork} for line in QWEN_LINES[:2]])
    with Memory(":memory:") as memory:
        done = import_from(memory, "qwen-code", tmp_path)
        again = import_from(memory, "qwen-code", chats)
        records = memory.list()
    assert sorted((record.text, record.context, record.source, record.scope) for record in records) == [
        ("For the lock.", "assistant", "qwen-code/billing/q1", "/billing"),
        ("Use rows.", "user", "qwen-code/billing/q1", "/billing"),
        ("Why retry?", "user", "qwen-code/billing/q1", "/billing"),
    ]
    assert (again.created, again.unchanged) == (0, 5)
    assert done.left_out == {
        "calls and results of tools": 1, "hidden messages": 3, "messages of subagents": 1, "thoughts of a model": 2,
    }  # fmt: skip
