"""Sessions of coding agents as their hooks tell of them: payloads and transcripts in the form of the hosts.

Payloads of Claude Code as recorded from the npm package @anthropic-ai/claude-code 2.1.197, in a session with a stand-in
for the model; the transcript is that of the tests of its importer.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from recallite import Memory
from recallite.text.quotes import NOTICE
from recallite_server.hooks.events import answer

EVENTS = {"SessionStart": "session-start", "UserPromptSubmit": "prompt", "Stop": "turn", "PreCompact": "turn",
          "SessionEnd": "turn"}  # fmt: skip
_OF_EVENT: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt_id": "p1", "permission_mode": "default", "prompt": ""},
    "Stop": {
        "prompt_id": "p1",
        "permission_mode": "default",
        "effort": {"level": "high"},
        "stop_hook_active": False,
        "last_assistant_message": "",
        "background_tasks": [],
        "session_crons": [],
    },
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
    "SessionEnd": {"prompt_id": "p1", "reason": "other"},
}


class Session:
    """A session of Claude Code in a project's folder, with the lines of its transcript."""

    def __init__(self, memory: Memory, folder: Path, name: str, *, shared: str | None = None) -> None:
        self.memory, self.folder, self.name, self.shared = memory, folder, name, shared
        self.transcript = folder.parent / f"{name}.jsonl"
        self._count = 0

    def payload(self, event: str, **fields: Any) -> dict[str, Any]:
        return {
            "session_id": self.name, "transcript_path": str(self.transcript), "cwd": str(self.folder),
            "hook_event_name": event, **_OF_EVENT[event], **fields,
        }  # fmt: skip

    def fires(self, event: str, *, memories: bool = False, **fields: Any) -> str:
        payload = self.payload(event, **fields)
        return answer(self.memory, EVENTS[event], "claude-code", payload, self.shared, memories=memories)

    def line(self, role: str, content: Any, **more: Any) -> None:
        self._count += 1
        line = {
            "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": str(self.folder),
            "sessionId": self.name, "version": "2.1.63", "gitBranch": "main", "type": role,
            "message": {"role": role, "content": content}, "uuid": f"{self.name}-{self._count}",
            "timestamp": f"2026-04-01T10:{self._count:02d}:00.000Z", **more,
        }  # fmt: skip
        with self.transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def user(self, text: str) -> None:
        self.line("user", text)

    def assistant(self, text: str) -> None:
        self.line("assistant", [{"type": "text", "text": text}])

    def tool(self, output: str) -> None:
        self.line("assistant", [{"type": "tool_use", "id": "t", "name": "WebFetch", "input": {}}])
        self.line("user", [{"type": "tool_result", "tool_use_id": "t", "content": output}])

    def has(self, *texts: str) -> None:
        """Have the user and the assistant say these in turn, and end the turn."""
        for place, text in enumerate(texts):
            (self.assistant if place % 2 else self.user)(text)
        self.fires("Stop")


def shown(context: str) -> list[dict[str, Any]]:
    """The memories in what a session was shown; every one is quoted."""
    assert not context or context.endswith(NOTICE)
    blocks = context.split("<recalled-memories>\n")[1:]
    return [memory for block in blocks for memory in json.loads(block.partition("\n</recalled-memories>")[0])]


def texts(context: str) -> list[str]:
    return [memory["text"] for memory in shown(context)]


def repository(folder: Path, remote: str | None = None, commit: str | None = "first") -> Path:
    """A repository with one commit, if any; its message tells it from others."""
    folder.mkdir(parents=True)
    ada = ("user.name=Ada", "user.email=ada@example.org", "commit.gpgsign=0")
    git = ["git", "-C", str(folder), *(word for setting in ada for word in ("-c", setting))]
    subprocess.run([*git, "init", "-q"], check=True)
    if remote is not None:
        subprocess.run([*git, "remote", "add", "origin", remote], check=True)
    if commit is not None:
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", commit], check=True)
    return folder
