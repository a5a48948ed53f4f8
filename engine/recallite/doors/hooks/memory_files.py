"""The memory files of Claude Code: what the user has written, and its own notes. They are read and never written.

https://code.claude.com/docs/en/memory: CLAUDE.md of the user and of a project, and the folder of the automatic memory,
which lies beside the project's transcripts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from recallite.doors.hooks.events import Event
from recallite.doors.hooks.projects import USER

if TYPE_CHECKING:
    from recallite.memory import Memory

HOST = "claude-code"
_OF_FOLDER = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md")
_MARK = {"memory_files_of": HOST}


def take_files(memory: Memory, event: Event) -> None:
    """Store new and changed files as documents of the project or of the user, and remove those that are gone."""
    project = Path(event.transcript).parent
    files = {
        event.project.scope: [*(Path(event.folder) / name for name in _OF_FOLDER), *(project / "memory").glob("*.md")],
        USER: [project.parent.parent / "CLAUDE.md"],
    }
    policy = structs.replace(memory.settings.write_policy, redact="secrets")
    for scope, paths in files.items():
        if present := [path for path in paths if path.is_file()]:
            memory.knowledge.ingest(present, scope=scope, metadata=_MARK, policy=policy)
        for document in memory.knowledge.list(scope=scope):
            is_ours = document.scope == scope and _MARK.items() <= document.metadata.items()
            if is_ours and not Path(document.source).is_file():
                memory.knowledge.delete(document.id)
