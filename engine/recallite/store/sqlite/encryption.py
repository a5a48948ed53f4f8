"""Encrypted files: their keys, changing a key, and sealed files for other devices.

SQLite3 Multiple Ciphers (`apsw-sqlite3mc`) encrypts with ChaCha20-Poly1305, one tag per page. Keys are derived from
passphrases as the cipher does it (PBKDF2-HMAC-SHA256 with the salt at the start of the file), so that any program with
SQLite3 Multiple Ciphers can open the file. A derivation takes 0.1 s and is done once per salt.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from recallite.errors import InvalidInput, NotADatabase, StoreCorrupt, StoreError, WrongKey
from recallite.model.checks import encodable
from recallite.system.files import create_private, open_to_overwrite, sync_file, sync_folder

_INSTALL = "pip uninstall apsw, then pip install apsw-sqlite3mc, which provides the same module with ciphers"
_CIPHER = "chacha20"
_ITERATIONS = 64_007
_SALT_BYTES = 16
_KEPT = 16  # the store's own, and the keys of other devices' files
_RAW = re.compile(r"raw:([0-9a-fA-F]{64})")
_MAGIC = b"SQLite format 3\x00"
# Bytes 21 to 23 of every SQLite database; the ciphers do not change bytes 16 to 23.
_FRACTIONS = b"\x40\x20\x20"
_HEADER_BYTES = 24


class Key:
    """The key of a file: a passphrase, or "raw:" and 64 hexadecimal digits (32 random bytes, used without derivation).

    It appears in no repr and no message. Raises InvalidInput for anything else, and StoreError without ciphers.
    """

    def __init__(self, text: object) -> None:
        if not isinstance(text, str) or not text or "\x00" in text:
            raise InvalidInput("key is no passphrase: give a str that is not empty and has no NUL")
        encodable(text, "key")
        raw = _RAW.fullmatch(text)
        if raw is None and text.startswith("raw:"):
            raise InvalidInput("key begins with 'raw:': give 64 hexadecimal digits after it, 32 random bytes")
        if ciphers_version() is None:
            raise StoreError(f"a key needs SQLite3 Multiple Ciphers: {_INSTALL}", "no_ciphers")
        self.text = text
        self._raw = None if raw is None else bytes.fromhex(raw[1])
        self._derived: dict[bytes, bytes] = {}
        self._lock = threading.Lock()

    def unlock(self, connection: apsw.Connection, salt: bytes | None = None) -> None:
        """Use this key for a connection, before it reads anything; a new file gets this salt, or one of its own."""
        _set(connection, "key", self._material(salt or salt_of(connection)))

    def replace_that_of(self, connection: apsw.Connection) -> None:
        """Encrypt the file of a connection with this key; not in WAL mode, and no other connection may be open."""
        _set(connection, "rekey", self._material(os.urandom(_SALT_BYTES)))

    def _material(self, salt: bytes) -> str:
        if self._raw is not None:
            return (self._raw + salt).hex()
        with self._lock:
            if salt not in self._derived:
                if len(self._derived) >= _KEPT:
                    self._derived.clear()
                self._derived[salt] = hashlib.pbkdf2_hmac("sha256", self.text.encode(), salt, _ITERATIONS, 32)
            return (self._derived[salt] + salt).hex()

    def __repr__(self) -> str:
        return "Key('…')"


def ciphers_version() -> str | None:
    """The version of SQLite3 Multiple Ciphers in the module `apsw`; None without it."""
    return getattr(apsw, "mc_version", None)


def refuse_unfit(connection: apsw.Connection, key: Key | None, path: str) -> None:
    """Raise WrongKey if the file needs a key or must not be given one, and NotADatabase if it is no database at all."""
    header = _header(connection)
    if not header:
        return
    plain, encrypted = header.startswith(_MAGIC), header[21:] == _FRACTIONS
    if key is None and encrypted and not plain:
        remedy = "" if ciphers_version() else f". That needs SQLite3 Multiple Ciphers: {_INSTALL}"
        raise WrongKey(f"{path} is encrypted: give its key, as Memory(path, key=...) or RECALLITE_KEY{remedy}")
    if key is not None and plain:
        raise WrongKey(
            f"{path} is not encrypted and a key is given (by key=, RECALLITE_KEY or RECALLITE_KEY_FILE): leave it out; "
            "memory.store.rekey or recallite rekey encrypts the file"
        )
    if key is not None and not encrypted:
        raise NotADatabase(f"{path} is not a SQLite database: give another path; the file was left as it is")


def is_encrypted(file: Path) -> bool:
    """Whether a file begins as an encrypted database. Raises OSError."""
    with file.open("rb") as stream:
        header = stream.read(_HEADER_BYTES)
    return header[21:] == _FRACTIONS and not header.startswith(_MAGIC)


def salt_of(connection: apsw.Connection) -> bytes:
    """The salt of the file of a connection; a random one for a new file."""
    return _header(connection)[:_SALT_BYTES] or os.urandom(_SALT_BYTES)


def _header(connection: apsw.Connection) -> bytes:
    """The header of the file, through SQLite: closing another descriptor would drop the locks of this process."""
    if not connection.filename:
        return b""
    header: bytes = connection.read("main", 0, 0, _HEADER_BYTES)[1]
    # A shorter file is read as zeros.
    return header if any(header) else b""


def _set(connection: apsw.Connection, pragma: str, material: str | None) -> None:
    """Run a pragma that contains a key; its errors are raised without the statement, which tracebacks would show."""
    fault = None
    try:
        connection.execute(f"PRAGMA cipher = '{_CIPHER}'").fetchall()
        value = "" if material is None else f"raw:{material}"
        connection.execute(f"PRAGMA {pragma} = '{value}'", can_cache=False).fetchall()
    except apsw.Error as reason:
        fault = type(reason)(str(reason))
    if fault is not None:
        raise fault


# Changing the key of a file by replacing it with a copy. `PRAGMA rekey` changes pages in place: if the process is
# killed, the file has pages of two keys and neither opens it.

_WIPED_BYTES = 1 << 20


@contextmanager
def replace_file(writer: apsw.Connection, old: Key | None, new: Key | None) -> Iterator[None]:
    """Replace the file by a copy with the key `new`; the body runs when that is done. Closes `writer`.

    `writer` is the only connection, not in WAL mode. The old file is overwritten afterwards: no trace is left in free
    space, and a process that has just opened it finds no database instead of one that no other process sees.
    """
    path = writer.filename
    part = _part_of(path)
    remove_unfinished(path)
    # Closing a descriptor of the file drops SQLite's locks, so it is kept open until the connection is closed.
    descriptor = open_to_overwrite(path)
    try:
        os.close(create_private(part))
        _copy(writer, part, old, new)
        os.chmod(part, os.fstat(descriptor).st_mode & 0o777)
        os.replace(part, path)
        yield
        sync_folder(os.path.dirname(path))
        os.lseek(descriptor, 0, os.SEEK_SET)
        left = os.fstat(descriptor).st_size
        while left > 0:
            left -= os.write(descriptor, bytes(min(left, _WIPED_BYTES)))
        os.fsync(descriptor)
    except OSError as fault:
        raise StoreError(
            f"the key of {path} was not changed, or what it was not overwritten: {fault.strerror}. Open it to see",
            "full" if fault.errno in (errno.ENOSPC, errno.EDQUOT) else "failed",
        ) from fault
    finally:
        remove_unfinished(path)
        writer.close(True)
        os.close(descriptor)


def remove_unfinished(path: str) -> None:
    """Remove what a killed rekeying left beside `path`; call it with the file open or locked."""
    with suppress(OSError):
        os.unlink(_part_of(path))


def _part_of(path: str) -> str:
    return f"{path}-rekey"


def _copy(writer: apsw.Connection, part: str, old: Key | None, new: Key | None) -> None:
    """A complete copy with the new key, synced. It needs no journal: an incomplete copy is thrown away."""
    copy = apsw.Connection(part, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        if old is not None:
            old.unlock(copy)
        copy.pragma("page_size", writer.pragma("page_size"))
        copy.pragma("journal_mode", "memory")
        copy.pragma("temp_store", "memory")
        with copy.backup("main", writer, "main") as steps:
            while not steps.done:
                steps.step(-1)
        if new is None:
            _set(copy, "rekey", None)
        else:
            new.replace_that_of(copy)
    finally:
        copy.close(True)
    copy = apsw.Connection(part, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        if new is not None:
            new.unlock(copy)
        finding = copy.execute("PRAGMA quick_check(1)").get
    finally:
        copy.close(True)
    if finding != "ok":
        raise StoreCorrupt(f"{writer.filename} keeps its key: a copy with another is damaged ({finding}). Run verify")
    sync_file(part)


# Sealed files: data for other devices, encrypted and authenticated as a store is, with its key. A sealed file is an
# encrypted SQLite database of one row behind a few bytes that say so. Its salt is the store's, so that a key is
# derived once for all files of a device; each page has a random nonce and a tag of its own.

_SEALED = b"recallite sealed 1\n"
_PAGE_BYTES = 4096


def seal(data: bytes, key: Key, salt: bytes) -> bytes:
    """Encrypt data; `salt` is the store's."""
    import tempfile  # takes 5 ms, which nobody else needs

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sealed")
        connection = apsw.Connection(str(path))
        try:
            key.unlock(connection, salt)
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            connection.execute("CREATE TABLE sealed (data BLOB NOT NULL)")
            connection.execute("INSERT INTO sealed VALUES (?)", (data,))
        finally:
            connection.close()
        return _SEALED + path.read_bytes()


def unseal(data: bytes, key: Key | None, name: str) -> bytes | None:
    """Decrypt what `seal` returned; None if it is cut. Raises WrongKey, also for data that was not sealed."""
    if not data.startswith(_SEALED):
        if key is None or _SEALED.startswith(data):
            return data
        raise WrongKey(f"{name} is not encrypted, and this store is: give all devices' stores the same key")
    if key is None:
        raise WrongKey(f"{name} is encrypted, and this store is not: give all devices' stores the same key")
    pages = data[len(_SEALED) :]
    if not pages or len(pages) % _PAGE_BYTES:
        return None
    import tempfile  # takes 5 ms, which nobody else needs

    with tempfile.TemporaryDirectory() as folder:
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
