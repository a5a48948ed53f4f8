"""Sessions of other hosts: each tells of the same events in its own way, and takes its answer in its own form.

Codex: https://github.com/openai/codex/tree/main/codex-rs/hooks/schema/generated; its transcript as in the tests of its
importer. Gemini CLI: docs/hooks/reference.md in https://github.com/google-gemini/gemini-cli. Cursor:
https://cursor.com/docs/agent/hooks.
"""

from __future__ import annotations

import json

import pytest

from recallite import Memory, Settings
from recallite.doors.hooks.events import answer
from recallite.doors.hooks.projects import project_of
from recallite.doors.hooks.running import within
from tests.system.doors.hooking import repository, texts

FACT, CONCLUSION = "The staging host is called heron", "The deploy script reads it from hosts.toml."


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "agent.db", settings=Settings(embedder="none")) as opened:
        yield opened


@pytest.fixture
def project(tmp_path):
    return repository(tmp_path / "billing", "https://github.com/ada/billing.git")


def codex(project, session):
    transcript = project.parent / f"rollout-2026-04-01T10-00-00-{session}.jsonl"
    base = {
        "session_id": session, "transcript_path": str(transcript), "cwd": str(project), "model": "gpt-5.2-codex",
        "permission_mode": "default",
    }  # fmt: skip
    message = {"type": "message"}
    lines = [
        {"type": "session_meta", "payload": {"id": session, "cwd": str(project), "originator": "codex_cli_rs"}},
        {"type": "response_item", "payload": message | {
            "role": "user", "content": [{"type": "input_text", "text": FACT}]}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": "ibis"}},
        {"type": "response_item", "payload": message | {
            "role": "assistant", "content": [{"type": "output_text", "text": CONCLUSION}]}},
    ]  # fmt: skip
    text = "".join(json.dumps({"timestamp": "2026-04-01T10:00:00Z", **line}) + "\n" for line in lines)
    transcript.write_text(text)
    return {
        "session-start": [{**base, "hook_event_name": "SessionStart", "source": "startup"}],
        "prompt": [{**base, "hook_event_name": "UserPromptSubmit", "turn_id": "t2", "prompt": "Which staging host?"}],
        "turn": [{**base, "hook_event_name": "Stop", "turn_id": "t1", "stop_hook_active": False,
                  "last_assistant_message": CONCLUSION}],
    }  # fmt: skip


def gemini_cli(project, session):
    base = {
        "session_id": session, "transcript_path": str(project.parent / "session.json"), "cwd": str(project),
        "timestamp": "2026-04-01T10:00:00.000Z",
    }  # fmt: skip
    return {
        "session-start": [{**base, "hook_event_name": "SessionStart", "source": "startup"}],
        "prompt": [{**base, "hook_event_name": "BeforeAgent", "prompt": "Which staging host?"}],
        "turn": [{**base, "hook_event_name": "AfterAgent", "prompt": FACT, "prompt_response": CONCLUSION,
                  "stop_hook_active": False}],
    }  # fmt: skip


def cursor(project, session):
    base = {
        "conversation_id": session, "generation_id": "g1", "model": "auto", "cursor_version": "2.4.21",
        "workspace_roots": [str(project)], "user_email": None, "transcript_path": None, "cwd": "/",
    }  # fmt: skip
    return {
        "session-start": [{**base, "hook_event_name": "sessionStart", "session_id": session, "composer_mode": "agent"}],
        "turn": [
            {**base, "hook_event_name": "beforeSubmitPrompt", "prompt": FACT, "attachments": []},
            {**base, "hook_event_name": "afterAgentResponse", "text": CONCLUSION},
        ],
    }  # fmt: skip


HOSTS = {"codex": codex, "gemini-cli": gemini_cli, "cursor": cursor}
FIRST, NEXT = "0f6c0c1e-2a51-4a3e-9d8b-5d1f4c2f9a10", "0f6c0c1e-2a51-4a3e-9d8b-5d1f4c2f9a11"


@pytest.mark.parametrize("host", HOSTS)
def test_a_session_is_kept_and_the_next_one_is_told(memory, project, host):
    for payload in HOSTS[host](project, FIRST)["turn"] * 2:
        assert answer(memory, "turn", host, payload, None) == ""
    records = memory.list(order="oldest")
    assert [(record.text, record.authority) for record in records] == [(FACT, "user"), (CONCLUSION, "agent")]
    assert {record.scope for record in records} == {project_of(str(project)).scope}
    assert all(record.source.startswith(f"{host}/") for record in records)
    events = HOSTS[host](project, NEXT)
    (start,) = events["session-start"]
    assert set(texts(answer(memory, "session-start", host, start, None))) == {FACT, CONCLUSION}
    for payload in events.get("prompt", ()):
        payload["session_id"] = "another"
        assert FACT in texts(answer(memory, "prompt", host, payload, None))


@pytest.mark.parametrize(
    ("host", "event", "output"),
    [
        ("codex", "prompt", {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "x"}}),
        ("gemini-cli", "prompt", {"hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "x"}}),
        ("cursor", "session-start", {"additional_context": "x"}),
    ],
)
def test_each_host_takes_its_answer_in_its_own_form(host, event, output, capsys):
    assert within(60.0, lambda: "x", event, host) == 0
    assert json.loads(capsys.readouterr().out) == output
