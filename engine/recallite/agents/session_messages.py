"""Messages of sessions: any JSON object, kept as it was given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from recallite.errors import InvalidInput, NotFound, StoreCorrupt
from recallite.model import checks
from recallite.model.settings import WritePolicy
from recallite.store.transaction import Reader
from recallite.store.values import SessionRow
from recallite.system.messages import shown

# Messages contain pictures and files as base64.
MAX_MESSAGE_BYTES = 32_000_000


class Checked(NamedTuple):
    """A message ready to be stored: its role, if it has one, its plain text, and the message as JSON."""

    role: str | None
    content: str
    text: str


def check_messages(messages: object, policy: WritePolicy) -> list[Checked]:
    """Check and redact several messages."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise InvalidInput(f"messages is {shown(messages)}: give a list of messages")
    return [_check_message(message, policy) for message in messages]


def _check_message(message: object, policy: WritePolicy) -> Checked:
    """Check and redact a message: a JSON object. Its role and content are what it has under these names."""
    if not isinstance(message, Mapping):
        raise InvalidInput(
            f"the message is {type(message).__name__} {shown(message)}: give a dict such as "
            "{'role': 'user', 'content': 'Hello'}"
        )
    if not message:
        raise InvalidInput("the message is empty: give a dict such as {'role': 'user', 'content': 'Hello'}")
    # Items of an agent's run, such as tool calls and their output, have a type and no role.
    role = None if message.get("role") is None else checks.check_name(message["role"], "the message's role")
    text = checks.check_json(dict(message), "message", MAX_MESSAGE_BYTES)
    if policy.redact is not None:
        cleaned = policy.clean_json(json.loads(text))
        return Checked(role, plain_text(cleaned.get("content")), json.dumps(cleaned, ensure_ascii=False))
    return Checked(role, plain_text(message.get("content")), text)


def plain_text(content: object) -> str:
    """Return the plain text of a content: the str, or the texts of its parts, without tool calls and pictures."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return plain_text(content.get("text", content.get("content")))
    if isinstance(content, Sequence):
        return "\n".join(filter(None, map(plain_text, content)))
    return ""


def decoded(session: str, position: int, text: bytes) -> dict[str, Any]:
    """Return a stored message as it was given. Raises StoreCorrupt if it cannot be read."""
    try:
        message = json.loads(text.decode())
    except (ValueError, RecursionError) as fault:
        raise _damaged(session, position, f"it is not JSON ({fault})") from None
    if not isinstance(message, dict) or not isinstance(message.get("role"), str | None):
        raise _damaged(session, position, f"it is not a message: {shown(text)}")
    return message


def _damaged(session: str, position: int, fault: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"session {session!r}, message {position}: {fault}. It was changed by another program: mend the row in "
        "session_message, or read the rest with messages(skip_damaged=True)",
        "message",
    )


def read_messages(reader: Reader, scope: str, session_id: str) -> tuple[SessionRow, list[str]]:
    """Return a session of exactly this scope, and its messages as JSON. Raises StoreCorrupt for a damaged one."""
    session = reader.sessions.find(scope, session_id)
    if session is None:
        raise no_session(session_id)
    texts = []
    for position, text in reader.sessions.messages(session.row_id):
        decoded(session_id, position, text)
        texts.append(text.decode())
    return session, texts


def no_session(session_id: str) -> NotFound:
    """Return the error for a session that is not there, or not for this agent."""
    return NotFound(f"no session {shown(session_id)} here: never opened, ended, or another agent's")
