"""Encrypted files: SQLite3 Multiple Ciphers (`apsw-sqlite3mc`) with ChaCha20-Poly1305, one tag per page.

Keys are derived from passphrases as the cipher does it (PBKDF2-HMAC-SHA256 with the salt at the start of the file), so
that any program with SQLite3 Multiple Ciphers can open the file. A derivation takes 0.1 s and is done once per salt.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from typing import Literal

import apsw

from recallite.errors import InvalidInput, NotADatabase, StoreError, WrongKey
from recallite.model.checks import encodable

_INSTALL = "pip uninstall apsw, then pip install apsw-sqlite3mc, which provides the same module with ciphers"
_CIPHER = "chacha20"
_ITERATIONS = 64_007
_SALT_BYTES = 16
_KEPT = 16  # the store's own, and those of files of other devices
_RAW = re.compile(r"raw:([0-9a-fA-F]{64})")
_MAGIC = b"SQLite format 3\x00"
# Bytes 21 to 23 of every SQLite database; the ciphers do not change bytes 16 to 23.
_FRACTIONS = b"\x40\x20\x20"
_HEADER_BYTES = 24

Form = Literal["empty", "plain", "encrypted", "other"]


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


def form_of(connection: apsw.Connection) -> Form:
    """The form of the file of a connection without a key.

    It is read through SQLite: closing another descriptor of the file would drop the locks of this process.
    """
    header = _header(connection)
    if header.startswith(_MAGIC):
        return "plain"
    if not header:
        return "empty"
    return "encrypted" if header[21:] == _FRACTIONS else "other"


def refuse_unfit(connection: apsw.Connection, key: Key | None, path: str) -> None:
    """Raise WrongKey if the file needs a key or must not be given one, and NotADatabase if it is no database at all."""
    form = form_of(connection)
    if form == "encrypted" and key is None:
        remedy = "" if ciphers_version() else f". That needs SQLite3 Multiple Ciphers: {_INSTALL}"
        raise WrongKey(f"{path} is encrypted: give its key, as Memory(path, key=...) or RECALLITE_KEY{remedy}")
    if form == "plain" and key is not None:
        raise WrongKey(
            f"{path} is not encrypted and a key is given (by key=, RECALLITE_KEY or RECALLITE_KEY_FILE): leave it out; "
            "memory.store.rekey or recallite rekey encrypts the file"
        )
    if form == "other" and key is not None:
        raise NotADatabase(f"{path} is not a SQLite database: give another path; the file was left as it is")


def remove_key(connection: apsw.Connection) -> None:
    """Decrypt the file of a connection."""
    _set(connection, "rekey", None)


def salt_of(connection: apsw.Connection) -> bytes:
    """The salt of the file of a connection; a random one for a new file."""
    return _header(connection)[:_SALT_BYTES] or os.urandom(_SALT_BYTES)


def _header(connection: apsw.Connection) -> bytes:
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
