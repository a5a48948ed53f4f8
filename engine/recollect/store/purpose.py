"""What a file is for: a workspace's index says so in `meta`, so that no other file is taken for one and emptied."""

from __future__ import annotations

import apsw

__all__ = ["claim_as_index", "is_index"]

_KEY, _INDEX = "purpose", "workspace index"
# A file that has a row in any of these is somebody's.
_CONTENT = ("record", "document", "source", "session", "procedure_use", "tool_pattern", "working_state")


def is_index(connection: apsw.Connection) -> bool:
    """Whether the file is a workspace's index, and nobody has put memories into it."""
    marked: bool = connection.execute("SELECT value FROM meta WHERE key = ?", (_KEY,)).get == _INDEX
    return marked and not connection.execute("SELECT EXISTS (SELECT 1 FROM kind WHERE name != 'chunk')").get


def claim_as_index(connection: apsw.Connection) -> bool:
    """Make a file that holds nothing a workspace's index; False for one that holds something and is none."""
    if is_index(connection):
        return True
    if any(connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get for table in _CONTENT):
        return False
    connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = ?2", (_KEY, _INDEX))
    return True
