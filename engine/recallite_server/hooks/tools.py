"""Memories where mistakes happen: of the file that a tool touches, the command that it runs, the error that it met.

The model reads them together with the result of the tool: a host has asked for the tool before it runs the hook.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from recallite.text.patterns import lazily, word_set
from recallite_server.hooks.events import Event
from recallite_server.hooks.kept import ShownMemories
from recallite_server.hooks.naming import (
    NamedFile,
    commands_of,
    failure_of,
    names_command,
    names_error,
    names_file,
    program_of,
    sentences_naming,
)
from recallite_server.hooks.projects import namesakes, root_of
from recallite_server.hooks.showing import NAMING, fitted, line_of

if TYPE_CHECKING:
    from recallite.memory import Memory
    from recallite.model.records import Hit

_MOST, _TOKENS = 2, 400
_MOST_FILES, _CANDIDATES, _QUERY_CHARS, _READ_CHARS = 5, 50, 300, 10_000
_FILE_FIELDS = word_set("filepath path notebookpath absolutepath targetfile")
_COMMAND_FIELDS = ("command", "cmd")
_RESPONSE_FIELDS = ("error", "llmContent", "textResultForLlm", "text_result_for_llm", "output", "stderr")
_PATCHED = lazily(r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+)$")
_PATH = lazily(r"(?<![\w./\\-])(?:[\w.-]+[/\\])*[\w-]+\.\w{1,8}(?![\w/\\-])")


class ToolUse(NamedTuple):
    """What a tool touches: paths of files, the line of a shell, and the error that it has met."""

    files: tuple[str, ...]
    command: str
    error: str

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> ToolUse:
        """What a host's payload tells of a tool."""
        given = payload.get("tool_input")
        if isinstance(given, str):
            with suppress(ValueError):
                given = json.loads(given)
        fields = given if isinstance(given, dict) else {"command": given}
        command = next((str(fields[name]) for name in _COMMAND_FIELDS if isinstance(fields.get(name), str)), "")
        files = [
            value for name, value in fields.items()
            if name.replace("_", "").lower() in _FILE_FIELDS and isinstance(value, str) and value
        ]  # fmt: skip
        if patched := _PATCHED.findall(command):
            files, command = [*files, *patched], ""
        error = payload.get("error")
        if not isinstance(error, str):
            response = payload.get("tool_response", payload.get("tool_result"))
            error = "\n".join(_failures(response if isinstance(response, dict) else {"output": response}))
        return cls(tuple(path for path in files[:_MOST_FILES] if "\0" not in path), command, error)


def _failures(response: Mapping[str, Any]) -> Iterator[str]:
    for name in _RESPONSE_FIELDS:
        if isinstance(value := response.get(name), str):
            yield value if name == "error" else failure_of(value)


class _Subject(NamedTuple):
    """What memories are looked for: by these words, whether a text names it, and the program of a command."""

    query: str
    names: Callable[[str], bool]
    program: str = ""


def about_tool(memory: Memory, event: Event, use: ToolUse) -> str:
    """The memories that name what a tool touches, and that the session has not been shown; empty if there are none."""
    root = root_of(event.folder)
    subjects = [*_subjects(event.folder, root, use)]
    if not subjects:
        return ""
    before = ShownMemories(memory, event)
    found: dict[str, tuple[Hit, str]] = {}
    queries = [subject.query[:_QUERY_CHARS] for subject in subjects]
    answers = memory.recall_many(
        queries, limit=_CANDIDATES, mode="keyword", scope=event.project.scopes, purpose="inspect"
    )
    for subject, hits in zip(subjects, answers, strict=True):
        for hit in hits:
            is_new = hit.id not in before.ids and hit.metadata.get("session") != event.session
            if is_new and hit.kind != "chunk" and not hit.superseded_by:
                role = hit.metadata.get("role")
                turn_of = role if isinstance(role, str) else None
                if parts := sentences_naming(hit.text[:_READ_CHARS], subject.names, turn_of, subject.program):
                    found.setdefault(hit.id, (hit, hit.text if turn_of is None else " … ".join(parts)))
    best = sorted(found.values(), key=_rank)[:_MOST]
    lines = {hit.id: line_of(hit, text, **_changes(hit, root, use.files)) for hit, text in best}
    text, shown = fitted(memory, [(NAMING, lines)], _TOKENS)
    if shown:
        before.add(shown)
    return text


def _rank(found: tuple[Hit, str]) -> tuple[bool, float]:
    """The user's word first, then the latest."""
    hit, _ = found
    return hit.authority != "user", -(hit.valid_from or hit.created_at).timestamp()


def _subjects(folder: str, root: Path, use: ToolUse) -> Iterator[_Subject]:
    counted = namesakes(root)
    for path in dict.fromkeys((*use.files, *_named_in(folder, root, use.command))):
        file = _file(folder, root, path)
        yield _Subject(" ".join(file.whole.split("/")[-2:]), _naming(names_file, file, counted))
    for command in commands_of(use.command):
        if len(command) > 1 or len(command[0]) > 1:
            yield _Subject(" ".join(command[:6]), _naming(names_command, command), program_of(command[0]))
        if "/" in command[0] or "." in command[0]:  # a script
            file = _file(folder, root, command[0])
            yield _Subject(file.name, _naming(names_file, file, counted))
    if use.error:
        last = [line for line in use.error.splitlines() if line.strip()][-3:]
        yield _Subject("\n".join(last), _naming(names_error, use.error))


def _named_in(folder: str, root: Path, command: str) -> list[str]:
    """The paths in a shell's line of files that the project has."""
    words = (word for words in commands_of(command) for word in words[1:])
    paths = dict.fromkeys(path for word in words for path in (word, word.partition("=")[2]) if path)
    return [
        path for path in paths
        if _file(folder, root, path).path and os.path.isfile(os.path.join(folder, path))
    ][:_MOST_FILES]  # fmt: skip


def _naming(names: Callable[..., bool], *of: object) -> Callable[[str], bool]:
    return lambda text: names(text, *of)


def _file(folder: str, root: Path, path: str) -> NamedFile:
    whole = Path(os.path.realpath(os.path.join(folder, path)))
    inside = whole.relative_to(root).as_posix() if whole.is_relative_to(root) else ""
    return NamedFile(inside, whole.as_posix())


def _changes(hit: Hit, root: Path, files: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """The days on which files that a memory names have changed since it was told."""
    told, changed = hit.valid_from or hit.created_at, dict[str, str]()
    names = {os.path.basename(path): path for path in files}
    for named in dict.fromkeys(match[0] for match in _PATH.finditer(hit.text[:_READ_CHARS])):
        path = os.path.realpath(root / names.get(os.path.basename(named), named))
        if len(changed) < _MOST_FILES and Path(path).is_relative_to(root):
            with suppress(OSError, ValueError):
                when = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
                if when > told and os.path.isfile(path):
                    changed[named] = f"{when:%Y-%m-%d}"
    return {"changed_since": changed} if changed else {}
