"""Access tokens."""

from __future__ import annotations

from recallite.store.sql.repository import Repository
from recallite.store.values import AccessTokenRow

_FIELDS = "public_id, name, scope, read_only, authority, created_at, expires_at"


class AccessTokens(Repository):
    """The table `access_token`."""

    def with_hash(self, hash: bytes) -> AccessTokenRow | None:
        """The token with this hash."""
        rows = self._rows(f"SELECT {_FIELDS} FROM access_token WHERE hash = ?", (hash,))
        return AccessTokenRow(*rows[0]) if rows else None

    def listed(self) -> list[AccessTokenRow]:
        """All tokens, oldest first."""
        return [AccessTokenRow(*row) for row in self._rows(f"SELECT {_FIELDS} FROM access_token ORDER BY id")]

    def add(self, row: AccessTokenRow, hash: bytes) -> None:
        """Add a token."""
        self._execute(f"INSERT INTO access_token ({_FIELDS}, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, hash))

    def remove(self, public_id: str) -> bool:
        """Remove a token; False if there is none with this id."""
        return bool(self._rows("DELETE FROM access_token WHERE public_id = ? RETURNING id", (public_id,)))
