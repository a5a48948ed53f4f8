"""Proof that the file of a derived index is damaged, as opposed to unreadable at the moment."""

from __future__ import annotations

import os
import re
from contextlib import suppress

import apsw

from recallite.errors import NotADatabase, StoreCorrupt, StoreError
from recallite.store.sql.meta import is_index
from recallite.store.sqlite.connection import open_connection
from recallite.store.sqlite.faults import translated
from recallite.store.sqlite.files import RawDatabase
from recallite.store.sqlite.schema import SCHEMA_VERSION

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
# SQLite's check reports pages that could not be read as well; only these result codes mean damage.
_CODE = re.compile(r"error code=(\d+)")
_DAMAGE = (apsw.SQLITE_CORRUPT, apsw.SQLITE_NOTADB)
_SHOWN = 3
_WAIT_MS = 1_000


def proven_damage(path: str, fault: StoreError) -> str | None:
    """The damage of the index in a file, which failed with `fault`; None if it is not proven to last.

    Proof is a header that is not SQLite's, a finding of `PRAGMA integrity_check`, a value that is not as it was stored,
    or a schema of another version. A file that cannot be read completely proves nothing, and one that can be read and
    does not have the role of an index is not ours. Nothing is written.
    """
    by_sqlite = isinstance(fault.__cause__, apsw.Error)
    if isinstance(fault, StoreCorrupt):
        if not by_sqlite:
            return str(fault)
    elif by_sqlite and not isinstance(fault, NotADatabase):
        return None
    try:
        with RawDatabase(path) as file:
            header, size = file.read(_HEADER_BYTES), file.size
    except apsw.Error:
        return None
    if size and (wrong := _wrong_header(header, size, in_wal=_bytes_of(f"{path}-wal") > 0)):
        return wrong
    connection = None
    try:
        connection = open_connection(path, busy_timeout_ms=_WAIT_MS, durability="normal", readonly=True)
        with translated(path, connection):
            if not is_index(connection) or not _whole(connection):
                return None
            version = connection.pragma("user_version")
            same = version == SCHEMA_VERSION
            return None if same else f"it has schema {version}, and this Recallite makes {SCHEMA_VERSION}"
    except StoreCorrupt as reason:
        # A read that ended too soon raises it too, although the file has the right length.
        return None if isinstance(reason.__cause__, apsw.IOError) else str(reason)
    except StoreError:
        return None
    finally:
        if connection is not None:
            with suppress(apsw.Error):
                connection.close(True)


def _bytes_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _wrong_header(header: bytes, size: int, *, in_wal: bool) -> str | None:
    """The fault in the first bytes of a file, by https://sqlite.org/fileformat.html#the_database_header.

    `in_wal`: pages may still be in a WAL, as a checkpoint writes the header before the pages that it counts.
    """
    if size < _HEADER_BYTES or header[: len(_MAGIC)] != _MAGIC:
        return "it does not begin as a SQLite database does"
    page_size = int.from_bytes(header[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    if page_size < 512 or page_size & (page_size - 1) or header[21:24] != b"\x40\x20\x20" or max(header[18:20]) > 2:
        return "its header is not what SQLite writes"
    counted = header[24:28] == header[92:96]
    pages = int.from_bytes(header[28:32], "big")
    if counted and not in_wal and size < pages * page_size:
        return f"it has {size:,} bytes, and its header says {pages:,} pages of {page_size:,}"
    return None


def _whole(connection: apsw.Connection) -> bool:
    """Check every page; False if some cannot be read at the moment. Raises StoreCorrupt for damage."""
    lines = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
    if lines == ["ok"]:
        return True
    for line in lines:
        code = _CODE.search(line)
        if code is not None and int(code[1]) & 0xFF not in _DAMAGE:
            return False
    raise StoreCorrupt("; ".join(lines[:_SHOWN]))
