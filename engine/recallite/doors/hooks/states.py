"""The state of a host's session: what it was shown, and up to which line its transcript was read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING

from recallite.doors.hooks.events import Event
from recallite.model.records import NewRecord

if TYPE_CHECKING:
    from recallite.memory import Memory

_AGENT = "hooks"
_AGENT_OF_TAKEN = "hooks-taken"
_DAYS = 30


class SessionState:
    """The state of a session, kept in the store: every call may come from another process."""

    def __init__(self, memory: Memory, event: Event) -> None:
        self._session = memory.sessions.open(f"{event.host}/{event.session}"[:200], agent=_AGENT)
        self.shown: set[str] = set()
        self.lines = 0
        for message in self._session.messages(limit=None):
            if message.get("anew"):
                self.shown.clear()
            self.shown.update(message.get("shown", ()))
            self.lines = max(self.lines, message.get("lines", 0))

    def begin_anew(self, shown: Iterable[str]) -> None:
        """Note that the session has forgotten what it was shown, except for these."""
        self._session.append({"anew": True, "shown": [*shown]})

    def show(self, shown: Iterable[str]) -> None:
        """Note what the session is shown."""
        self._session.append({"shown": [*shown]})

    def read(self, lines: int) -> None:
        """Note up to which line the transcript is read."""
        self._session.append({"lines": lines})


class TakenTurns:
    """Digests of the turns that sessions of a project have left: a copy of one brings back none that was forgotten."""

    def __init__(self, memory: Memory, event: Event) -> None:
        self._session = memory.sessions.open(event.project.scope[-200:], agent=_AGENT_OF_TAKEN)

    def digests(self) -> set[str]:
        """All of them."""
        return {digest for message in self._session.messages(limit=None) for digest in message.get("taken", ())}

    def add(self, digests: Iterable[str]) -> None:
        """Note more of them."""
        self._session.append({"taken": [*digests]})


def digest_of(turn: NewRecord) -> str:
    """The digest of a turn's id, which does not tell it."""
    return blake2b((turn.id or "").encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def remove_old_states(memory: Memory) -> None:
    """Remove the states of sessions that have not gone on for a month."""
    memory.sessions.cleanup(timedelta(days=_DAYS), agent=_AGENT)
