"""Reading from a standby: how far it is behind, and how far it may be."""

from __future__ import annotations

import time

from recallite.errors import StoreUnavailable
from recallite_postgres.statements import PostgresConnection

# It has replayed all that it received, and is receiving; else what it replayed last is so old.
_BEHIND = (
    "SELECT CASE WHEN NOT pg_is_in_recovery() THEN 0.0 WHEN coalesce(pg_last_wal_receive_lsn() <= "
    "pg_last_wal_replay_lsn(), true) AND EXISTS (SELECT 1 FROM pg_stat_wal_receiver) THEN 0.0 ELSE "
    "coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000, 'infinity') END::float8"
)
_ASKED_EVERY_SECONDS = 0.5


class Standby:
    """A server that follows a primary, and answers as that was a moment ago."""

    def __init__(self, path: str, most_ms: int) -> None:
        self._path, self._most_ms = path, most_ms
        self._next = 0.0

    def behind_ms(self, connection: PostgresConnection) -> float:
        """The lag behind the primary, in milliseconds; infinite if it is unknown."""
        behind: float = connection.execute(_BEHIND).get
        return behind

    def check(self, connection: PostgresConnection) -> None:
        """Raise StoreUnavailable if it is further behind than it may be; asked at most twice a second."""
        now = time.monotonic()
        if not self._most_ms or now < self._next:
            return
        behind = self.behind_ms(connection)
        if behind > self._most_ms:
            raise StoreUnavailable(
                f"{self._path} is a standby that is {behind:,.0f} ms behind its primary: at most {self._most_ms:,} are "
                "allowed. Try again, raise standby_lag_ms in the address, or read the primary",
                "timeout",
            )
        self._next = now + _ASKED_EVERY_SECONDS
