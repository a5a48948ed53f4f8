"""The state of a host's session, up to which line its transcript was read, and the turns that sessions have left."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING

from recallite.errors import NotFound
from recallite.model.records import NewRecord
from recallite_server.hooks.events import Event

if TYPE_CHECKING:
    from recallite.memory import Memory

_AGENT = "hooks"
_AGENT_OF_TAKEN = "hooks-taken"
_DAYS = 30


class SessionState:
    """The line up to which the transcript of a session was read, which is in the store with its turns."""

    def __init__(self, memory: Memory, event: Event) -> None:
        self._memory, self._name = memory, f"{event.host}/{event.session}"[:200]
        try:
            messages = memory.sessions.get(self._name, agent=_AGENT).messages(limit=None)
        except NotFound:
            messages = []
        self.lines = max((message.get("lines", 0) for message in messages), default=0)

    def read(self, lines: int) -> None:
        """Note up to which line the transcript is read."""
        self._memory.sessions.open(self._name, agent=_AGENT).append({"lines": lines})


class TakenTurns:
    """Digests of the turns that sessions of a project have left: a copy of one brings back none that was forgotten."""

    def __init__(self, memory: Memory, event: Event) -> None:
        self._memory, self._name = memory, event.project.scope[-200:]

    def digests(self) -> set[str]:
        """All of them."""
        try:
            messages = self._memory.sessions.get(self._name, agent=_AGENT_OF_TAKEN).messages(limit=None)
        except NotFound:
            return set()
        return {digest for message in messages for digest in message.get("taken", ())}

    def add(self, digests: Iterable[str]) -> None:
        """Note more of them."""
        self._memory.sessions.open(self._name, agent=_AGENT_OF_TAKEN).append({"taken": [*digests]})


def digest_of(turn: NewRecord) -> str:
    """The digest of a turn's id, which does not tell it."""
    return blake2b((turn.id or "").encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def remove_old_states(memory: Memory) -> None:
    """Remove the states of sessions that have not gone on for a month."""
    memory.sessions.cleanup(timedelta(days=_DAYS), agent=_AGENT)
