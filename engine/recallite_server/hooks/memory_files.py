"""The memory files of Claude Code: what the user has written, and its own notes. They are read and never written.

https://code.claude.com/docs/en/memory: CLAUDE.md of the user and of a project, and the folder of the automatic memory,
which lies beside the project's transcripts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from recallite.system.folders import SMALL_BYTES
from recallite_server.hooks.events import Event
from recallite_server.hooks.projects import USER, files_of

if TYPE_CHECKING:
    from recallite.memory import Memory

HOST = "claude-code"
_OF_FOLDER = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md")
_MARK = {"memory_files_of": HOST}


def take_files(memory: Memory, event: Event) -> None:
    """Store new and changed files as documents of the project or of the user, and remove those that are gone."""
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
