"""Sealed files: data for other devices, encrypted and authenticated as a store is, with its key.

A sealed file is an encrypted SQLite database of one row behind a few bytes that say so. Its salt is that of the store,
so that a key is derived once for all files of a device; each page has a random nonce and a tag of its own.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import apsw

from recallite.errors import WrongKey
from recallite.store.sqlite.keys import Key

_MAGIC = b"recallite sealed 1\n"
_PAGE_BYTES = 4096


def seal(data: bytes, key: Key, salt: bytes) -> bytes:
    """Encrypt data; `salt` is that of the store."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "sealed")
        connection = apsw.Connection(str(path))
        try:
            key.unlock(connection, salt)
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            connection.execute("CREATE TABLE sealed (data BLOB NOT NULL)")
            connection.execute("INSERT INTO sealed VALUES (?)", (data,))
        finally:
            connection.close()
        return _MAGIC + path.read_bytes()


def unseal(data: bytes, key: Key | None, name: str) -> bytes | None:
    """Decrypt what `seal` returned; None if it is cut. Raises WrongKey, also for data that was not sealed."""
    if not data.startswith(_MAGIC):
        if key is None or _MAGIC.startswith(data):
            return data
        raise WrongKey(f"{name} is not encrypted, and this store is: give all devices' stores the same key")
    if key is None:
        raise WrongKey(f"{name} is encrypted, and this store is not: give all devices' stores the same key")
    pages = data[len(_MAGIC) :]
    if not pages or len(pages) % _PAGE_BYTES:
        return None
    with TemporaryDirectory() as folder:
        path = Path(folder, "sealed")
        path.write_bytes(pages)
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            key.unlock(connection)
            sealed: bytes = connection.execute("SELECT data FROM sealed").get
        except apsw.NotADBError:
            raise WrongKey(f"{name} was encrypted with another key, or changed: give all stores the same key") from None
        except apsw.Error:  # pages are missing, or are not what was written
            return None
        finally:
            connection.close()
        return sealed
