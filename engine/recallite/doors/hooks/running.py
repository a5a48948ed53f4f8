"""The command `recallite hook`, which answers within its time and never fails for its host.

The resident process answers, if there is one. Nothing is imported here that takes a while.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

PATH = "/hooks"
"""The path of a hook's request to the resident process."""
PATIENCE_SECONDS = 1.5
WAIT_SECONDS = 120.0
_MOST_CHARS = 100_000
_EVENTS = {
    "claude-code": {"session-start": "SessionStart", "prompt": "UserPromptSubmit"},
    "codex": {"session-start": "SessionStart", "prompt": "UserPromptSubmit"},
    "gemini-cli": {"session-start": "SessionStart", "prompt": "BeforeAgent"},
}


@cache
def payload() -> dict[str, Any]:
    """The JSON object on standard input, with the folder that the session began in; long texts are cut."""
    value = json.loads(sys.stdin.buffer.read())
    if not isinstance(value, dict):
        raise ValueError("the payload is no object")
    folder = os.environ.get("CLAUDE_PROJECT_DIR") or value.get("cwd") or os.getcwd()  # a session may change its own
    texts = {name: item[:_MOST_CHARS] if isinstance(item, str) else item for name, item in value.items()}
    return {**texts, "cwd": folder}


def request(event: str, host: str, scope: str | None, memories: bool) -> bytes:
    """The body of a hook's request."""
    return encoded({"event": event, "host": host, "shared": scope, "memories": memories, "payload": payload()})


def encoded(value: dict[str, Any]) -> bytes:
    """An object as JSON."""
    return json.dumps(value).encode()


def command(words: Sequence[str]) -> list[str]:
    """The command that runs Recallite with these arguments."""
    return [sys.executable, "-m", "recallite", *words]


def within(seconds: float, ask: Callable[[], str], event: str, host: str) -> int:
    """Print what `ask` returns, as the host takes it, unless it fails or takes longer. Returns the exit code 0."""
    answers: list[str] = []

    def run() -> None:
        try:
            answers.append(ask())
        except Exception as fault:
            from recallite.system.logs import logger

            logger(__name__).debug("the hook failed", exc_info=fault)

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(seconds)
    with suppress(Exception):
        if answers and answers[0]:
            print(json.dumps(_output(answers[0], event, host)), flush=True)
    if asking.is_alive():
        os._exit(0)  # whatever it waits for, the host does not
    return 0


def _output(text: str, event: str, host: str) -> dict[str, Any]:
    if host not in _EVENTS:
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": _EVENTS[host].get(event, event), "additionalContext": text}}
