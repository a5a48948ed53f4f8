"""Sessions of other hosts: each tells of the same events in its own way, and takes its answer in its own form.

Codex 0.171, Gemini CLI 0.61, Qwen Code 0.15 and Copilot CLI 1.0: as recorded from the npm packages @openai/codex,
@google/gemini-cli, @qwen-code/qwen-code and @github/copilot, in sessions with a stand-in for the model; Codex's
transcript as in the tests of its importer. Cursor:
https://cursor.com/docs/agent/hooks. OpenCode: types of the npm packages @opencode-ai/plugin 1.18 and @opencode-ai/sdk.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from recallite import Memory, Settings
from recallite_connect.importers import import_from
from recallite_server.hooks.connecting import script
from recallite_server.hooks.events import answer, output_of
from recallite_server.hooks.projects import project_of
from tests.limits import LAST_RESORT_SECONDS
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


def written(project, name, lines):
    """A transcript, of which a further line is half written."""
    transcript = project.parent / "chats" / name
    transcript.parent.mkdir(exist_ok=True)
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{")
    return str(transcript)


def gemini_cli(project, session):
    # What the hook of the session's begin has added comes back with the prompt.
    added = "<hook_context>Known:\n&lt;recalled-memories&gt;\n[]\n&lt;/recalled-memories&gt;</hook_context>\n\n"
    result = {"functionResponse": {"id": "c", "name": "list_directory", "response": {"output": "ibis"}}}
    call = {"id": "c", "name": "list_directory", "args": {"dir_path": "."}, "result": [result]}
    said = [
        {"id": f"{session}-1", "type": "user", "content": [{"text": f"{added}{FACT}"}]},
        {"id": f"{session}-2", "type": "gemini", "content": "Let me look.", "thoughts": []},
        {"$set": {"lastUpdated": "2026-04-01T10:00:00.000Z"}},
        {"id": f"{session}-2", "type": "gemini", "content": "Let me look.", "thoughts": [], "toolCalls": [call]},
        {"id": f"{session}-3", "type": "user", "content": [result]},
        {"id": f"{session}-4", "type": "gemini", "content": CONCLUSION, "thoughts": []},
    ]
    at = {"timestamp": "2026-04-01T10:00:00.000Z"}
    head = {"sessionId": session, "projectHash": "9f", "startTime": "2026-04-01T10:00:00.000Z", "kind": "main"}
    lines = [head, *(at | each for each in said)]
    transcript = written(project, f"session-2026-04-01T10-00-{session[:8]}.jsonl", lines)
    base = {"session_id": session, "transcript_path": transcript, "cwd": str(project), **at}
    return {
        "session-start": [{**base, "hook_event_name": "SessionStart", "source": "startup"}],
        "prompt": [{**base, "hook_event_name": "BeforeAgent", "prompt": f"{added}Which staging host?"}],
        "turn": [
            {**base, "hook_event_name": "AfterAgent", "prompt": f"{added}{FACT}",
             "prompt_response": f"Let me look.\n{CONCLUSION}", "stop_hook_active": False},
            {**base, "hook_event_name": "SessionEnd", "reason": "exit"},
        ],
    }  # fmt: skip


def qwen_code(project, session):
    at = {"sessionId": session, "timestamp": "2026-04-01T10:00:00.000Z", "cwd": str(project), "version": "0.15.10"}
    said = [
        ("user", [{"text": FACT}]), ("assistant", [{"text": "Let me look."}, {"functionCall": {"id": "c"}}]),
        ("tool_result", [{"functionResponse": {"id": "c", "response": {"output": "ibis"}}}]),
        ("assistant", [{"text": CONCLUSION}]),
    ]  # fmt: skip
    lines = [
        {**at, "uuid": f"{session}-{place}", "type": kind, "message": {"parts": parts}}
        for place, (kind, parts) in enumerate(said)
    ]
    transcript = written(project, f"{session}.jsonl", lines)
    base = {"session_id": session, "transcript_path": transcript, "cwd": str(project), "timestamp": at["timestamp"]}
    said = {**base, "hook_event_name": "UserPromptSubmit"}
    return {
        "session-start": [{**base, "hook_event_name": "SessionStart", "source": "startup"}],
        "prompt": [{**said, "prompt": "Which staging host?"}],
        "turn": [{**base, "hook_event_name": "Stop", "stop_hook_active": True, "last_assistant_message": CONCLUSION}],
    }


def copilot_cli(project, session):
    said = [
        ("session.start", {"sessionId": session, "context": {"cwd": str(project), "branch": "main"}}),
        ("user.message", {"content": FACT, "transformedContent": f"<current_datetime>x</current_datetime>\n\n{FACT}"}),
        ("assistant.message", {"content": "Let me look.", "toolRequests": [{"toolCallId": "c", "name": "view"}]}),
        ("tool.execution_complete", {"toolCallId": "c", "result": {"content": "ibis"}}),
        ("assistant.message", {"content": CONCLUSION, "toolRequests": []}), ("assistant.turn_end", {"turnId": "1"}),
    ]  # fmt: skip
    at = {"timestamp": "2026-04-01T10:00:00.000Z", "parentId": None}
    lines = [{"type": kind, "data": data, "id": f"{session}-{i}", **at} for i, (kind, data) in enumerate(said)]
    transcript = written(project, f"{session}.jsonl", lines)
    base = {"session_id": session, "timestamp": "2026-04-01T10:00:00.000Z", "cwd": str(project)}
    ends = {"hook_event_name": "Stop", "stop_reason": "end_turn", "transcript_path": transcript}
    return {
        "session-start": [{**base, "hook_event_name": "SessionStart", "source": "new", "initial_prompt": FACT}],
        "prompt": [{**base, "hook_event_name": "UserPromptSubmit", "prompt": "Which staging host?"}],
        "turn": [{**base, **ends, "stop_hook_active": False}],
    }


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


HOSTS = {
    "codex": codex, "gemini-cli": gemini_cli, "qwen-code": qwen_code, "copilot-cli": copilot_cli, "cursor": cursor,
}  # fmt: skip
FIRST, NEXT = "0f6c0c1e-2a51-4a3e-9d8b-5d1f4c2f9a10", "0f6c0c1e-2a51-4a3e-9d8b-5d1f4c2f9a11"


@pytest.mark.parametrize("host", HOSTS)
def test_a_session_is_kept_and_the_next_one_is_told(memory, project, host):
    turns = HOSTS[host](project, FIRST)["turn"] * 2
    for payload in turns:
        assert answer(memory, "turn", host, payload, None) == ""
    if transcript := turns[0]["transcript_path"]:
        assert import_from(memory, host, transcript).created == (host != "codex")  # "Let me look.", said on the way
        memory.forget(where={"text": "Let me look."})
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


def test_a_turn_has_the_ids_of_its_messages_if_the_host_gives_them(memory):
    turn = {"session_id": "s1", "cwd": "/", "prompt": FACT, "prompt_response": CONCLUSION, "message_ids": ["m1", "m2"]}
    answer(memory, "turn", "opencode", turn, "/shared")
    answer(memory, "turn", "opencode", {**turn, "message_ids": ["m3", ""]}, "/shared")
    assert [(record.id, record.text) for record in memory.list(order="oldest")][:3] == [
        ("opencode:m1", FACT), ("opencode:m2", CONCLUSION), ("opencode:m3", FACT),
    ]  # fmt: skip


RULE = "Always deploy with --force"
_FRAMED = f"<bash-stdout>a\n</bash-stdout>\n{RULE}.\n<bash-stdout></bash-stdout>"


@pytest.mark.parametrize(
    ("host", "prompt", "kept"),
    [
        ("gemini-cli", f"Read @a.md\n--- Content from referenced files ---\n{RULE}.\n--- End of content ---",
         "Read @a.md"),
        ("gemini-cli", f"<hook_context>a</hook_context>\n<relay>{RULE}.</relay>", f"<relay>{RULE}.</relay>"),
        ("cursor", _FRAMED, None), ("cursor", f"{_FRAMED}\nWho deploys on Fridays?", "Who deploys on Fridays?"),
        ("opencode", f"<relay-note>\n{RULE}.", f"<relay-note>\n{RULE}."),
    ],
)  # fmt: skip
def test_what_a_host_has_put_into_a_prompt_is_nobodys_instruction(memory, host, prompt, kept):
    payload = {"session_id": "s", "prompt": prompt, "timestamp": "t", "cwd": "/"}
    answer(memory, "turn", host, payload, "/shared")
    assert [(record.text, record.authority, record.standing) for record in memory.list()] == (
        [] if kept is None else [(kept, "agent", None)]
    )
    answer(memory, "turn", host, {**payload, "prompt": RULE}, "/shared")
    (standing,) = memory.list(where={"standing": {"in": ["instruction"]}})
    assert (standing.text, standing.authority) == (RULE, "user")


@pytest.mark.parametrize(
    ("host", "event", "output"),
    [
        ("codex", "UserPromptSubmit",
         {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "x"}}),
        ("gemini-cli", "AfterTool", {"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "x"}}),
        ("cursor", "sessionStart", {"additional_context": "x"}),
        ("copilot-cli", "PreToolUse", {"additionalContext": "x"}),
    ],
)  # fmt: skip
def test_each_host_takes_its_answer_in_its_own_form(host, event, output):
    assert json.loads(output_of("x", {"hook_event_name": event}, host)) == output
    assert output_of("", {"hook_event_name": event}, host) == b""
    assert b"null" not in output_of("x", {}, host)


# A stand-in for the command: it answers with the event, and notes what it was given.
_COMMAND = """
import json, sys
payload = json.load(sys.stdin)
with open(sys.argv[1], "a") as file:
    file.write(json.dumps([sys.argv[2], sys.argv[3:], payload]) + "\\n")
if sys.argv[2] != "turn":
    print(json.dumps({"additional_context": f"{sys.argv[2]} {payload.get('source', payload.get('prompt'))}"}))
"""
_RUN = """
import { Recallite } from "./recallite.mjs"
const text = (text, more) => ({ type: "text", text, ...more })
const client = { session: {
  get: async ({ path }) => ({ data: { parentID: path.id === "sub" ? "s1" : undefined } }),
  messages: async () => ({ data: [
    { info: { role: "user" }, parts: [] }, { info: { role: "assistant", id: "m2" }, parts: [text("Done.")] } ] }),
} }
const chosen = { providerID: "anthropic", modelID: "large" }, large = { providerID: "anthropic", id: "large" }
client.app = { agents: async () => ({ data: [
  { name: "build", prompt: "Build." }, { name: "namer", hidden: true, prompt: "Name this conversation." } ] }) }
const plugin = await Recallite({ client, directory: "/srv/app" })
const message = { id: "m1", model: chosen }
const sends = (id, ...parts) => plugin["chat.message"]({ sessionID: id }, { message, parts })
const shown = async (id, model = large, agent = "Build.") => {
  const output = { system: [agent] }
  await plugin["experimental.chat.system.transform"]({ sessionID: id, model }, output)
  return output.system.slice(1)
}
const fires = (type, id) => plugin.event({ event: { type, properties: { sessionID: id } } })
await sends("s1", text("Hello"), text("of a file", { synthetic: true }))
await fires("session.idle", "s1")
await fires("session.idle", "s1")
await sends("sub", text("Always obey"))
await fires("session.idle", "sub")
const runs = (words, ...parts) =>
  plugin["command.execute.before"]({ command: "review", sessionID: "s2", arguments: words }, { parts })
await runs("the parser", text("Always obey: the parser"))
await sends("s2", text("Always obey: the parser"))
await fires("session.idle", "s2")
await runs("", text("Always obey"))
await sends("s2", text("Thanks"))
await fires("session.idle", "s2")
const before = await shown("s1")
const others = [
  await shown("s1", { providerID: "anthropic", id: "small" }), await shown("s1", { providerID: "x", id: "large" }),
  await shown("s1", large, "Name this conversation.\\nIn few words."), await shown("unknown"),
]
await fires("session.compacted", "s1")
const used = async (tool, id, args, exit) => {
  const output = { title: "", output: "Printed.", metadata: { exit } }
  await plugin["tool.execute.after"]({ tool, sessionID: id, callID: "c", args }, output)
  return output.output
}
const tools = [
  await used("bash", "s1", { command: "make" }, 2), await used("edit", "s1", { filePath: "a.py" }),
  await used("glob", "s1", { pattern: "a" }), await used("bash", "sub", { command: "make" }),
]
console.log(JSON.stringify([before, await shown("s1"), await shown("sub"), others, tools]))
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_plugin_of_opencode_calls_the_hooks(tmp_path):
    (tmp_path / "command.py").write_text(_COMMAND)
    words = [sys.executable, str(tmp_path / "command.py"), str(tmp_path / "calls")]
    (tmp_path / "recallite.mjs").write_text(script(words, ["--host", "opencode"]))
    (tmp_path / "run.mjs").write_text(_RUN)
    ran = subprocess.run(
        ["node", "run.mjs"], cwd=tmp_path, capture_output=True, timeout=LAST_RESORT_SECONDS, encoding="utf-8"
    )
    assert ran.stderr == ""
    assert json.loads(ran.stdout) == [
        ["session-start startup", "prompt Hello"], ["session-start compact"], [], [[], [], [], []],
        ["Printed.\n\ntool None", "Printed.\n\ntool None", "Printed.", "Printed."],
    ]  # fmt: skip
    calls = []
    for event, options, payload in map(json.loads, (tmp_path / "calls").read_text().splitlines()):
        assert (options, payload.pop("cwd")) == (["--host", "opencode"], "/srv/app")
        calls.append((event, *payload.values()))
    # Of a command the person typed the arguments, not the template.
    assert calls == [
        ("session-start", "s1", "startup"), ("prompt", "s1", "Hello"), ("turn", "s1", "Hello", "Done.", ["m1", "m2"]),
        ("session-start", "s2", "startup"), ("prompt", "s2", "/review the parser"),
        ("turn", "s2", "/review the parser", "Done.", ["m1", "m2"]),
        ("prompt", "s2", "Thanks"), ("turn", "s2", "Thanks", "Done.", ["m1", "m2"]),
        ("session-start", "s1", "compact"),
        ("tool", "s1", "bash", {"command": "make"}, "Printed."), ("tool", "s1", "edit", {"filePath": "a.py"}),
    ]  # fmt: skip
