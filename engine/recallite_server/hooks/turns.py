"""Memories of a session's new turns, and of the memory files of Claude Code.

What the user says and what the assistant concludes is stored, but not the output of tools. A turn is taken once: its id
is that of an import of the same file, and the state of the session says how far it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from recallite.errors import NotFound, RecalliteError, StoreError
from recallite.model.authority import Authority, speaking_as
from recallite.model.records import NewRecord
from recallite.system.folders import SMALL_BYTES
from recallite.system.telemetry import logger
from recallite.text.junk import is_junk
from recallite.text.quotes import NOTICE, QUOTES, without_quotes
from recallite.text.secrets import redact
from recallite_connect.importers.reading import FoundMemory
from recallite_connect.importers.sources import Sessions, source_named
from recallite_server.hooks.events import Event
from recallite_server.hooks.kept import Kept, KeptTurn, KeptTurns, ReadTo
from recallite_server.hooks.projects import USER, files_of
from recallite_server.hooks.showing import TITLES

if TYPE_CHECKING:
    from recallite.memory import Memory

HOST = "claude-code"
"""The host whose memory files are read."""
_OF_FOLDER = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md")
_MARK = {"memory_files_of": HOST}
# The agents whose sessions in the store say how far transcripts are read, and which turns were taken, for this long.
_AGENT, _AGENT_OF_TAKEN, _DAYS = "hooks", "hooks-taken", 30
_log = logger(__name__)
_AROUND_RECALLED = (*TITLES, NOTICE, QUOTES)
_DURING_A_TURN = ("PreCompact", "PreCompress")
# Turns stored in one transaction: other writers wait for it.
_A_TRANSACTION = 20


def take_turns(memory: Memory, event: Event, patience_seconds: float, *, memories: bool) -> None:
    """Keep the turns of an event, and store all that are kept; what cannot be kept is stored at once, or raises."""
    try:
        keep_turns(memory, event, memories=memories)
    except (OSError, StoreError) as fault:
        _log.warning("a turn is not kept before it is stored: %s", fault)
        _store(memory, _waiting(memory, event, memories=memories))
    store_turns(memory, patience_seconds)


def keep_turns(memory: Memory, event: Event, *, memories: bool) -> None:
    """Keep the turns of an event until they are stored. Raises OSError and StoreError if they cannot be kept."""
    waiting = _waiting(memory, event, memories=memories)
    if waiting.turns or event.transcript:
        KeptTurns(memory).put(waiting)


def store_turns(memory: Memory, patience_seconds: float) -> None:
    """Store the turns that are kept; if the store is locked, try for so long. They stay until they are stored."""
    KeptTurns(memory).store(partial(_store, memory), patience_seconds)


def _waiting(memory: Memory, event: Event, *, memories: bool) -> Kept:
    clean, turns = memory.settings.write_policy.clean, []
    for turn in () if event.transcript else _given(event):
        record = _clean(memory, turn.record, event)
        if record.text:
            turns.append(KeptTurn(structs.replace(record, text=clean(record.text)), turn.authority))
    return Kept(event, turns, memories)


def _store(memory: Memory, waiting: Kept) -> None:
    """Store the turns of a session that were not read before, and its host's memory files if they are asked for."""
    event, transcript = waiting.event, None
    read = ReadTo(memory, event)
    if event.transcript:
        lines = SessionState(memory, event).lines
        growing = source_named(event.host).growing
        assert growing is not None
        transcript = growing(Path(event.transcript))
        if lines:
            read.begin(transcript, lines)
        turns = [turn for turn in _transcribed(event, transcript) if turn.line > lines or not turn.line]
        if not lines:  # a new session, which may begin with a copy of another
            taken = TakenTurns(memory, event).digests()
            turns = [turn for turn in turns if digest_of(turn.record) not in taken]
    else:
        turns = [_Turn(0, *turn) for turn in waiting.turns]
    for begin in range(0, len(turns), _A_TRANSACTION):
        some = turns[begin : begin + _A_TRANSACTION]
        if event.transcript:
            some = [turn._replace(record=_clean(memory, turn.record, event)) for turn in some]
        there = memory.get([turn.record.id or "" for turn in some])
        new = [turn.record for turn in some if turn.record.text and turn.record.id not in there]
        with memory.transaction(embed=new):  # so that of two hooks at once one reads what the other has left
            _take(memory, event, some)
    if transcript is not None and event.cause not in _DURING_A_TURN:  # then a conclusion is still to come
        read.note(transcript, SessionState(memory, event).lines)
    if waiting.memories and event.transcript:
        take_files(memory, event)


class _Turn(NamedTuple):
    """A turn with its line in the transcript, if it has one, and its author."""

    line: int
    record: NewRecord
    authority: Authority


def _take(memory: Memory, event: Event, turns: list[_Turn]) -> None:
    """Store some turns, with their lines, without turns that another hook has stored since."""
    state = SessionState(memory, event)
    fresh = [turn for turn in turns if turn.line > state.lines or not turn.line]
    if not fresh:
        return
    policy = structs.replace(memory.settings.write_policy, recognise_recalled=True)
    there = memory.get([turn.record.id or "" for turn in fresh])
    for turn in fresh:
        if turn.record.id in there or not turn.record.text:
            continue
        try:
            with speaking_as(turn.authority, declared=True):
                memory.remember(turn.record, policy=policy)
        except StoreError:  # all of them are tried again
            raise
        except RecalliteError as fault:
            _log.warning("a turn is not stored: %s", fault)
    if fresh[-1].line:
        if not state.lines:
            memory.sessions.cleanup(timedelta(days=_DAYS), agent=_AGENT)
            ReadTo(memory, event).remove_old()
        state.read(fresh[-1].line)
        TakenTurns(memory, event).add(digest_of(turn.record) for turn in fresh)


def _transcribed(event: Event, transcript: Sessions) -> Iterator[_Turn]:
    """The turns of a transcript with their lines. Of what the assistant says between two prompts, the last counts."""
    conclusion = None
    for entry in transcript.entries(growing=True):
        if not isinstance(entry, FoundMemory):
            continue
        # A clock that was set back since has been ahead: the store refuses what is said later than now.
        said_at, now = entry.record.created_at, datetime.now(UTC)
        if isinstance(said_at, datetime) and said_at > now:
            said_at = now
        record = structs.replace(entry.record, id=f"{event.host}:{entry.record.id}", created_at=said_at)
        turn = _Turn(entry.line or 0, record, entry.authority or "agent")
        if record.context == "assistant":
            conclusion = turn
            continue
        if conclusion is not None:
            yield conclusion
            conclusion = None
        yield turn
    if conclusion is not None and event.cause not in _DURING_A_TURN:
        yield conclusion


def _given(event: Event) -> Iterator[_Turn]:
    """The turns that came with the event."""
    whose: Authority = "user" if event.typed.by_user else "agent"
    both: tuple[tuple[str, str, Authority], ...] = (
        ("user", event.typed.text, whose), ("assistant", event.response, "agent"),
    )  # fmt: skip
    for (role, text, authority), message in zip(both, (*event.ids, "", ""), strict=False):
        if text:
            name = f"{event.session}\0{event.moment}\0{role}\0{text}"
            id = message or blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
            record = NewRecord(
                text, id=f"{event.host}:{id}", context=role, created_at=datetime.now(UTC),
                source=f"{event.host}/{event.session}"[:500], metadata={"session": event.session, "role": role},
            )  # fmt: skip
            yield _Turn(0, record, authority)


def _clean(memory: Memory, record: NewRecord, event: Event) -> NewRecord:
    """A turn in the scope of its project, without secrets and without what was recalled."""
    lines = [line for line in without_quotes(record.text).split("\n") if line not in _AROUND_RECALLED]
    text = redact("\n".join(lines).strip())[: memory.settings.max_text_chars]
    text = "" if is_junk(text) else text
    metadata = {**(record.metadata or {}), "project": event.folder}
    return structs.replace(record, text=text, scope=event.project.scope, metadata=metadata)


def take_files(memory: Memory, event: Event) -> None:
    """Store new and changed files as documents of the project or of the user, and remove documents without a file."""
    sessions = Path(event.transcript).parent
    notes, mine = sessions / "memory", sessions.parent.parent / "CLAUDE.md"
    names = sorted(path.name for path in notes.glob("*.md"))
    files = {
        event.project.scope: [*files_of(event.folder, _OF_FOLDER), *files_of(str(notes), names)],
        USER: [mine],  # the user's own, which may be a link to anywhere
    }
    policy = structs.replace(memory.settings.write_policy, redact="secrets")
    for scope, paths in files.items():
        if present := [path for path in paths if path.is_file() and path.stat().st_size <= SMALL_BYTES]:
            memory.knowledge.ingest(present, scope=scope, metadata=_MARK, policy=policy)
        for document in memory.knowledge.list(scope=scope):
            source = Path(document.source)  # a real path: what is a link now has taken the place of a file
            is_ours = document.scope == scope and _MARK.items() <= document.metadata.items()
            if is_ours and (source.is_symlink() or not source.is_file()):
                memory.knowledge.delete(document.id)


class SessionState:
    """The line up to which the transcript of a session was read, which is in the store with its turns."""

    def __init__(self, memory: Memory, event: Event) -> None:
        self._memory, self._name = memory, f"{event.host}/{event.session}"[:200]
        messages = _messages(memory, self._name, _AGENT)
        self.lines = max((message.get("lines", 0) for message in messages), default=0)

    def read(self, lines: int) -> None:
        """Note up to which line the transcript is read."""
        self._memory.sessions.open(self._name, agent=_AGENT).append({"lines": lines})


class TakenTurns:
    """Digests of the turns that sessions of a project have left: a copy of one brings back none that was forgotten."""

    def __init__(self, memory: Memory, event: Event) -> None:
        self._memory, self._name = memory, event.project.scope[-200:]

    def digests(self) -> set[str]:
        """Return all of them."""
        messages = _messages(self._memory, self._name, _AGENT_OF_TAKEN)
        return {digest for message in messages for digest in message.get("taken", ())}

    def add(self, digests: Iterable[str]) -> None:
        """Note the digests of further turns."""
        self._memory.sessions.open(self._name, agent=_AGENT_OF_TAKEN).append({"taken": [*digests]})


def _messages(memory: Memory, name: str, agent: str) -> list[dict[str, Any]]:
    try:
        return memory.sessions.get(name, agent=agent).messages(limit=None)
    except NotFound:
        return []


def digest_of(turn: NewRecord) -> str:
    """The digest of a turn's id, which does not tell it."""
    return blake2b((turn.id or "").encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
