"""The index snapshot of a memory on a server: a file in the cache folder of the user.

The server does not know of it. Its token names the tables that it was made of, and its commit the server and what was
visible there: a server that was started again, a restored database, or a feed that was trimmed makes it useless. Who
learns that a record was purged removes the file, at the latest when the memory is opened the next time.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from hashlib import blake2b

from recallite.store.sql.meta import IndexSnapshot
from recallite.system.user_folder import is_of_user

_MOST_BYTES = 8 << 30
"""The most bytes of all snapshots of a user; the newest is kept in any case."""
_MOST_SECONDS = 30 * 86_400


class PostgresSnapshot(IndexSnapshot):
    """The file at `path`, if any. Its token begins with the numbers of the database and of the table of records."""

    path: str | None = None
    _values = (
        "SELECT key, value FROM meta WHERE key = 'lexicon_epoch' UNION ALL SELECT ?, concat_ws('-', "
        "(SELECT oid FROM pg_database WHERE datname = current_database()), 'record'::regclass::oid, '')"
    )

    def new_token(self) -> str:
        return self.identity().token + super().new_token()

    def discard(self) -> None:
        remove(self.path)

    def _keep(self, token: str) -> None:
        pass


def remove(path: str | None) -> None:
    """Remove a snapshot, and one that is being written."""
    for name in () if path is None else (path, f"{path}-part"):
        with suppress(OSError):
            os.unlink(name)


def path_of(address: str) -> str | None:
    """The path for the snapshot of a memory; None if the user has no cache folder. Snapshots that are old go."""
    folder = _folder()
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        if not is_of_user(folder):
            return None
        _trim(folder)
    except OSError:
        return None
    return os.path.join(folder, blake2b(address.encode(), digest_size=16).hexdigest())


def _folder() -> str:
    from platformdirs import user_cache_dir

    return os.path.join(user_cache_dir("recallite", appauthor=False), "index")


def _trim(folder: str) -> None:
    """Remove what is older than a month, and the oldest files above the bytes of all."""
    with os.scandir(folder) as entries:
        files = sorted(((entry.stat(), entry.path) for entry in entries), key=lambda file: -file[0].st_mtime)
    total = 0
    for place, (status, path) in enumerate(files):
        total += status.st_size
        if status.st_mtime < time.time() - _MOST_SECONDS or (place and total > _MOST_BYTES):
            remove(path)
