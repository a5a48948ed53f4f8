"""Encrypted files: SQLite3 Multiple Ciphers (`apsw-sqlite3mc`) with ChaCha20-Poly1305, a tag a page.

A passphrase is derived as the cipher itself derives it, PBKDF2-HMAC-SHA256 with the salt that begins the file, so that
any program with SQLite3 Multiple Ciphers opens the file. It is done once for all connections: it takes 0.1 s.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from typing import Literal

import apsw

from recollect.checks import encodable
from recollect.errors import EncryptionMissing, InvalidInput, NotADatabase, WrongKey

__all__ = ["Key", "ciphers_version", "form_of", "refuse_unfit", "remove_key"]

_INSTALL = "pip uninstall apsw, then pip install apsw-sqlite3mc, which provides the same module with ciphers"
_CIPHER = "chacha20"
_ITERATIONS = 64_007
_SALT_BYTES = 16
_RAW = re.compile(r"raw:([0-9a-fA-F]{64})")
_MAGIC = b"SQLite format 3\x00"
# Bytes 21 to 23 of every database of SQLite; the ciphers leave 16 to 23 as they are.
_FRACTIONS = b"\x40\x20\x20"
_HEADER_BYTES = 24

Form = Literal["empty", "plain", "encrypted", "other"]


class Key:
    """The key of a file: a passphrase, or "raw:" and 64 hexadecimal digits, 32 random bytes that need no derivation.

    It shows in no repr and no message. Raises InvalidInput for what is neither, and EncryptionMissing without ciphers.
    """

    def __init__(self, text: object) -> None:
        if not isinstance(text, str) or not text or "\x00" in text:
            raise InvalidInput("key is no passphrase: give a str that is not empty and has no NUL")
        encodable(text, "key")
        raw = _RAW.fullmatch(text)
        if raw is None and text.startswith("raw:"):
            raise InvalidInput("key begins with 'raw:': give 64 hexadecimal digits after it, 32 random bytes")
        if ciphers_version() is None:
            raise EncryptionMissing(f"a key needs SQLite3 Multiple Ciphers: {_INSTALL}")
        self.text = text
        self._raw = None if raw is None else bytes.fromhex(raw[1])
        self._derived: dict[bytes, bytes] = {}
        self._lock = threading.Lock()

    def unlock(self, connection: apsw.Connection) -> None:
        """Let a connection that has read nothing yet read and write with this key."""
        _set(connection, "key", self._material(_salt(connection)))

    def replace_that_of(self, connection: apsw.Connection) -> None:
        """Encrypt the file of a connection anew with this key; it stands outside WAL and no other has the file."""
        _set(connection, "rekey", self._material(os.urandom(_SALT_BYTES)))

    def _material(self, salt: bytes) -> str:
        if self._raw is not None:
            return (self._raw + salt).hex()
        with self._lock:
            if salt not in self._derived:
                self._derived = {salt: hashlib.pbkdf2_hmac("sha256", self.text.encode(), salt, _ITERATIONS, 32)}
            return (self._derived[salt] + salt).hex()

    def __repr__(self) -> str:
        return "Key('…')"


def ciphers_version() -> str | None:
    """Which SQLite3 Multiple Ciphers the module `apsw` has; None for the plain one."""
    return getattr(apsw, "mc_version", None)


def form_of(connection: apsw.Connection) -> Form:
    """What kind of file a connection without a key has opened. It is read by SQLite: another descriptor of the file,
    once closed, would drop the locks of this process.
    """
    header = _header(connection)
    if header.startswith(_MAGIC):
        return "plain"
    if not header:
        return "empty"
    return "encrypted" if header[21:] == _FRACTIONS else "other"


def refuse_unfit(connection: apsw.Connection, key: Key | None, path: str) -> None:
    """Raise WrongKey where the file needs a key and there is none, or has none and one is given, and NotADatabase
    where it is no database that could have a key.
    """
    form = form_of(connection)
    if form == "encrypted" and key is None:
        said = "" if ciphers_version() else f". That needs SQLite3 Multiple Ciphers: {_INSTALL}"
        raise WrongKey(f"{path} is encrypted: give its key, as Memory(path, key=...) or RECOLLECT_KEY{said}")
    if form == "plain" and key is not None:
        raise WrongKey(
            f"{path} is not encrypted and a key is given (by key=, RECOLLECT_KEY or RECOLLECT_KEY_FILE): leave it out; "
            "Memory.rekey or recollect rekey encrypts the file"
        )
    if form == "other" and key is not None:
        raise NotADatabase(f"{path} is not a SQLite database: give another path; the file was left as it is")


def remove_key(connection: apsw.Connection) -> None:
    """Write the file of a connection without encryption."""
    _set(connection, "rekey", None)


def _salt(connection: apsw.Connection) -> bytes:
    return _header(connection)[:_SALT_BYTES] or os.urandom(_SALT_BYTES)


def _header(connection: apsw.Connection) -> bytes:
    if not connection.filename:
        return b""
    header: bytes = connection.read("main", 0, 0, _HEADER_BYTES)[1]
    # Of a file that is shorter the rest is zeros.
    return header if any(header) else b""


def _set(connection: apsw.Connection, pragma: str, material: str | None) -> None:
    """A pragma with a key in it; errors of it would show the statement in their traceback, so they are told anew."""
    fault = None
    try:
        connection.execute(f"PRAGMA cipher = '{_CIPHER}'").fetchall()
        value = "" if material is None else f"raw:{material}"
        connection.execute(f"PRAGMA {pragma} = '{value}'", can_cache=False).fetchall()
    except apsw.Error as reason:
        fault = type(reason)(str(reason))
    if fault is not None:
        raise fault
