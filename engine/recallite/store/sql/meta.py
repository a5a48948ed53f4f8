"""The identity of a store, and its role: the index of a workspace is marked, so that no other file is used as one."""

from __future__ import annotations

from recallite.store.sql.repository import Repository, SqlConnection

_ROLE, _INDEX = "purpose", "workspace index"
# A file with rows in any of these holds data of its own.
_CONTENT = ("record", "document", "source", "session", "procedure_use", "tool_pattern", "working_state")


class Meta(Repository):
    """Rows of the table `meta`."""

    def identity(self) -> str | None:
        """The id of this store; None before `put_identity`."""
        value: str | None = self._execute("SELECT value FROM meta WHERE key = 'identity'").get
        return value

    def put_identity(self, value: str) -> None:
        """Set the id of this store, once."""
        self._execute("INSERT INTO meta VALUES ('identity', ?) ON CONFLICT (key) DO NOTHING", (value,))

    def is_index(self) -> bool:
        """Whether the role of the store is the index of a workspace, and it holds nothing but chunks."""
        return is_index(self._connection)

    def claim_as_index(self) -> bool:
        """Make an empty store the index of a workspace; False if it has other content."""
        if self.is_index():
            return True
        if any(self._execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get for table in _CONTENT):
            return False
        self._execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = ?2", (_ROLE, _INDEX))
        return True


def is_index(connection: SqlConnection) -> bool:
    """Whether a file has the role of an index and holds nothing but chunks."""
    marked: bool = connection.execute("SELECT value FROM meta WHERE key = ?", (_ROLE,)).get == _INDEX
    return marked and not connection.execute("SELECT EXISTS (SELECT 1 FROM kind WHERE name != 'chunk')").get
