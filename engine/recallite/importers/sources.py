"""The systems that memories are imported from, by the name that `--from` takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recallite import checks
from recallite.errors import InvalidInput
from recallite.importers.found import Entries

if TYPE_CHECKING:
    from recallite.importers.sessions import Sessions


class Source(NamedTuple):
    """A system: what to give as the path, and whether its memories change there after they were first read.

    Its reader is `read(path)` of the module `recallite.importers.NAME`, or `read(path, mapping)` where it is `mapped`.
    Where a system always keeps its files in the same place, `folder` is that place below the home folder, which is read
    when no path is given. Where its files `grow`, the module has `sessions(path)`, which gives what is new.
    `local_ids`: another folder or file may have the same ids, such as paths of notes, so each scope has its own.
    """

    module: str
    path: str
    changes: bool = False
    folder: str | None = None
    mapped: bool = False
    grows: bool = False
    local_ids: bool = False

    def read(self, path: str | os.PathLike[str] | None, mapping: Mapping[str, str] | None = None) -> Entries:
        """What the reader, imported when it is first needed, finds at a path. InvalidInput as `folder_or_file`."""
        chosen = self.folder_or_file(path)
        reader: Callable[..., Entries] = import_module(f"recallite.importers.{self.module}").read
        if self.mapped:
            return reader(chosen, mapping or {})
        if mapping:
            raise InvalidInput("map is given: only jsonl has fields to map")
        return reader(chosen)

    def sessions(self, path: str | os.PathLike[str] | None) -> Sessions:
        """The files at a path, which grow. InvalidInput as `folder_or_file`."""
        found: Sessions = import_module(f"recallite.importers.{self.module}").sessions(self.folder_or_file(path))
        return found

    def folder_or_file(self, path: str | os.PathLike[str] | None) -> Path:
        """The path given, or the place where the system keeps its files. InvalidInput where nothing is there."""
        if path is not None:
            chosen = checks.check_path(path)
        elif self.folder is not None:
            chosen = Path.home() / self.folder
        else:
            raise InvalidInput(f"give a path: {self.path}")
        if not chosen.exists():
            raise InvalidInput(f"there is no {chosen}: give {self.path}")
        if not chosen.is_file() and not chosen.is_dir():
            raise InvalidInput(f"{chosen} is neither a file nor a folder: give {self.path}")
        return chosen


SOURCES: dict[str, Source] = {
    "basic-memory": Source(
        "basic_memory", "the folder of a basic-memory project", changes=True, folder="basic-memory", local_ids=True
    ),
    "chatgpt": Source("chatgpt", "ChatGPT's export: the ZIP file, its folder or conversations.json"),
    "claude": Source("claude", "Claude's export: its ZIP files, a folder of them or conversations.json"),
    "claude-code": Source("claude_code", "Claude Code's projects, or a session", folder=".claude/projects", grows=True),
    "claude-mem": Source("claude_mem", "the database of claude-mem", folder=".claude-mem/claude-mem.db"),
    "codex": Source("codex", "Codex's sessions, or a session", folder=".codex/sessions", grows=True),
    "jsonl": Source(
        "mapped", "a file of JSON lines, a JSON array or CSV, with --map FIELD=PATH", True, mapped=True, local_ids=True
    ),
    "langgraph": Source(
        "langgraph", "the database of LangGraph's SqliteStore, which LangMem writes too", changes=True, local_ids=True
    ),
    "mem0": Source("mem0", "what mem0's get_all() returns as JSON, or the folder of its stores", True, folder=".mem0"),
    "obsidian": Source("obsidian", "the folder of an Obsidian vault", changes=True, local_ids=True),
    "openclaw": Source(
        "openclaw", "the workspace of an agent", changes=True, folder=".openclaw/workspace", local_ids=True
    ),
    "server-memory": Source(
        "server_memory", "memory.jsonl of @modelcontextprotocol/server-memory", changes=True, local_ids=True
    ),
}


def source_named(name: str) -> Source:
    """The source of that name; InvalidInput for another."""
    if name not in SOURCES:
        raise InvalidInput(f"from is {checks.shown(name)}: use one of {', '.join(sorted(SOURCES))}")
    return SOURCES[name]
