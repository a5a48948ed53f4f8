"""The database of claude-mem: ~/.claude-mem/claude-mem.db, a SQLite file.

Its observations, the summaries of sessions and the prompts are memories. Columns were added and renamed over the
versions: those that a file lacks are empty.
https://github.com/thedotmack/claude-mem/blob/main/src/services/sqlite/SessionStore.ts
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from recallite.errors import InvalidInput, StoreError
from recallite.model.authority import Authority
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite.store.opening import foreign
from recallite_connect.frames import typed
from recallite_connect.importers.reading import (
    Entries,
    Entry,
    FoundMemory,
    LeftOut,
    array,
    json_value,
    label_of,
    labels,
    scope_of,
    tags_of,
    text_of,
    time_of,
)
from recallite_connect.importers.sources import Source

_FILE = "claude-mem.db"
_OBSERVATIONS = "observations"
_SUMMARY = (
    ("request", "Request"), ("investigated", "Investigated"), ("learned", "Learned"), ("completed", "Completed"),
    ("next_steps", "Next steps"), ("notes", "Notes"),
)  # fmt: skip
_SESSION = ("memory_session_id", "sdk_session_id", "content_session_id", "claude_session_id")
_COLUMNS = {
    "sdk_sessions": (*_SESSION, "id", "project", "custom_title"),
    _OBSERVATIONS: (
        *_SESSION, "id", "project", "merged_into_project", "text", "type", "title", "subtitle", "facts", "narrative",
        "concepts", "files_read", "files_modified", "prompt_number", "generated_by_model", "created_at",
        "created_at_epoch",
    ),
    "session_summaries": (
        *_SESSION, "id", "project", "merged_into_project", *(column for column, _ in _SUMMARY), "prompt_number",
        "created_at", "created_at_epoch",
    ),
    "user_prompts": (
        *_SESSION, "id", "session_db_id", "prompt_number", "prompt_text", "created_at", "created_at_epoch",
    ),
}  # fmt: skip

Sessions: TypeAlias = dict[object, dict[str, Any]]
"""Sessions by the ids that other tables have of them."""


def read(path: Path) -> Entries:
    """The memories of a database, or of the folder that has it. InvalidInput for another database."""
    if path.is_dir():
        path /= _FILE
    known = foreign.tables(path)
    if _OBSERVATIONS not in known:
        raise InvalidInput(f"{path} has no table {_OBSERVATIONS}: give the {_FILE} of claude-mem")
    sessions: Sessions = {}
    for table, reader in (("sdk_sessions", None), (_OBSERVATIONS, _observation), ("session_summaries", _summary),
                          ("user_prompts", _prompt)):  # fmt: skip
        columns = [column for column in _COLUMNS[table] if column in known.get(table, ())]
        try:
            for values in foreign.rows(path, table, columns) if columns else ():
                row = dict.fromkeys(_COLUMNS[table]) | dict(zip(columns, values, strict=True))
                if reader is None:
                    for key in (row["id"], *_session_ids(row)):
                        sessions[key] = row
                else:
                    yield from reader(row, sessions, path.name)
        except StoreError as fault:
            yield FileTrouble(path=path.name, reason=f"{table}: {fault}")


def _session_ids(row: dict[str, Any]) -> list[str]:
    return [id for column in _SESSION if (id := text_of(row[column]))]


def _record(
    id: str,
    row: dict[str, Any],
    text: str,
    sessions: Sessions,
    *,
    metadata: Mapping[str, Any] | None = None,
    **more: Any,
) -> NewRecord:
    """A memory of a row, with its session and project."""
    keys = (row.get("session_db_id"), *_session_ids(row))
    session = next((sessions[key] for key in keys if key is not None and key in sessions), None)
    session_id = next(reversed(_session_ids(session or row)), "")
    row_project = text_of(row.get("merged_into_project")) or text_of(row.get("project"))
    project = row_project or (text_of(session["project"]) if session else "")
    about = labels(
        session=session_id, project=project, title=session["custom_title"] if session else None,
        prompt=row["prompt_number"], model=row.get("generated_by_model"),
    )  # fmt: skip
    return NewRecord(
        # A database that was made anew counts from 1 again.
        id=f"{id}:{row['id']}:{row['created_at_epoch']}", text=text, scope=scope_of(project),
        source="/".join(filter(None, ("claude-mem", project, session_id)))[:500],
        created_at=time_of(row["created_at_epoch"]) or time_of(row["created_at"]),
        metadata={**about, **(metadata or {})}, **more,
    )  # fmt: skip


def _observation(row: dict[str, Any], sessions: Sessions, file: str) -> Iterator[Entry]:
    """A memory of its title, what is told, and the facts."""
    facts = [f"- {fact}" for fact in map(text_of, _list(row["facts"])) if fact]
    narrative = text_of(row["narrative"]) or text_of(row["text"]) or text_of(row["subtitle"])
    text = "\n\n".join(filter(None, (text_of(row["title"]), narrative, "\n".join(facts))))
    if not text:
        yield LeftOut("empty observations")
        return
    files = {
        name: paths
        for name in ("files_read", "files_modified")
        if (paths := [path for path in map(label_of, _list(row[name])) if path])
    }
    tags = tags_of([row["type"], *_list(row["concepts"])])
    record = _record("observation", row, text, sessions, context=label_of(row["type"]), tags=tags, metadata=files)
    yield FoundMemory(record=record, path=f"{file}, {_OBSERVATIONS} {row['id']}")


def _summary(row: dict[str, Any], sessions: Sessions, file: str) -> Iterator[Entry]:
    parts = [f"{name}: {summary}" for column, name in _SUMMARY if (summary := text_of(row[column]))]
    if not parts:
        yield LeftOut("empty summaries")
        return
    record = _record("summary", row, "\n".join(parts), sessions, context="summary of a session", tags=("summary",))
    yield FoundMemory(record=record, path=f"{file}, session_summaries {row['id']}")


def _prompt(row: dict[str, Any], sessions: Sessions, file: str) -> Iterator[Entry]:
    number = row["prompt_number"]
    prompt = typed([text_of(row["prompt_text"])])
    if not prompt.text:
        yield LeftOut("empty prompts")
        return
    position = number if isinstance(number, int) and number >= 0 else None
    record = _record("prompt", row, prompt.text, sessions, context="user", tags=("prompt",), position=position)
    whose: Authority = "user" if prompt.by_user else "agent"
    yield FoundMemory(record=record, path=f"{file}, user_prompts {row['id']}", authority=whose)


def _list(value: object) -> list[Any]:
    """The items of a column that has a JSON array as text."""
    try:
        return array(json_value(value.encode("utf-8", "replace"))) if isinstance(value, str) else []
    except InvalidInput:
        return []


SOURCE = Source(read, "the database of claude-mem", authority="agent", folder=".claude-mem/claude-mem.db")
