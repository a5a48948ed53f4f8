"""Events of a host's sessions, and their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from recallite_connect.frames import Typed, typed
from recallite_server.hooks.projects import Project, project_of

if TYPE_CHECKING:
    from recallite.memory import Memory

EVENTS = ("session-start", "prompt", "tool", "turn")
"""The events: a session begins or begins again, a prompt is sent, a tool is used, turns are over."""
TRANSCRIPTS = ("claude-code", "codex", "copilot-cli", "gemini-cli", "qwen-code")
"""The hosts whose transcripts are read, as an import reads them; others give their turns with the event."""
_MOST_CHARS = 100_000
_FIELDS = {"copilot-cli": "additionalContext", "cursor": "additional_context", "opencode": "additional_context"}


def payload_of(text: bytes, folder: str, current: str) -> dict[str, Any]:
    """The JSON object that a host has sent, with the folder that the session began in; long texts are cut.

    `folder` is that one if the host names it, `current` that of the hook. Raises ValueError.
    """
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("the payload is no object")
    texts = {name: item[:_MOST_CHARS] if isinstance(item, str) else item for name, item in value.items()}
    return {**texts, "cwd": folder or value.get("cwd") or current}  # a session may change its own


def output_of(text: str, payload: Mapping[str, Any], host: str) -> bytes:
    """The output of a hook with this text, as the host takes it."""
    if not text:
        return b""
    output: dict[str, Any] = {"additionalContext": text}
    if name := payload.get("hook_event_name"):
        output = {"hookEventName": name, **output}
    return json.dumps({_FIELDS[host]: text} if host in _FIELDS else {"hookSpecificOutput": output}).encode() + b"\n"


class Event(NamedTuple):
    """An event of a session of a host, in the project of the session's folder.

    `transcript` is the file of the session, if the host has one that is read. Others give what was said with the event:
    `typed`, the words of the prompt that may be the user's, and `response`. `ids` are the host's ids of their messages;
    without these, `moment` tells them from those before. `cause` is the host's name for the event, or why the session
    began.
    """

    host: str
    session: str
    folder: str
    project: Project
    transcript: str
    typed: Typed
    response: str
    cause: str
    moment: str
    ids: tuple[str, ...]

    @classmethod
    def of(cls, host: str, payload: Mapping[str, Any], shared: str | None) -> Event:
        """The event of a host's payload; fields that a host does not have are empty."""

        def text(*names: str) -> str:
            values = (payload.get(name) for name in names)
            return next((value for value in values if isinstance(value, str) and value), "")

        roots, ids, transcript = payload.get("workspace_roots"), payload.get("message_ids"), text("transcript_path")
        is_read = host in TRANSCRIPTS and transcript.endswith(".jsonl")  # older Gemini CLIs write one document
        folder = str(roots[0]) if isinstance(roots, list) and roots else text("cwd")
        return cls(
            host=host, session=text("session_id", "conversation_id"), folder=folder,
            project=project_of(folder, shared), transcript=transcript if is_read else "",
            typed=typed([text("prompt")], escapes=host == "gemini-cli"),
            response=text("prompt_response", "text", "last_assistant_message"),
            cause=text("source", "hook_event_name"), moment=text("generation_id", "timestamp"),
            ids=tuple(id if isinstance(id, str) else "" for id in ids) if isinstance(ids, list) else (),
        )  # fmt: skip


def answer(
    memory: Memory, event: str, host: str, payload: Mapping[str, Any], shared: str | None, *, memories: bool = False,
    patience_seconds: float = 0.0,
) -> str:  # fmt: skip
    """The text that an event puts into its session; empty for none. With `memories` the host's own files are read.

    Only turns write: if the store is locked they are tried for so long, and then left for a later event.
    """
    happened = Event.of(host, payload, shared)
    if event == "turn":
        from recallite_server.hooks.turns import take_turns

        take_turns(memory, happened, patience_seconds, memories=memories)
        return ""
    if event == "tool":
        from recallite_server.hooks.tools import ToolUse, about_tool

        return about_tool(memory, happened, ToolUse.of(payload))
    from recallite_server.hooks.showing import briefing, relevant_cut

    answers: dict[str, Callable[[Memory, Event], str]] = {"session-start": briefing, "prompt": relevant_cut}
    return answers[event](memory, happened)
