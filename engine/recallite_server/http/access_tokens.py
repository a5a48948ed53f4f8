"""Access tokens: who may reach a store over HTTP, how much of it, for how long, and what they are shown of it."""

from __future__ import annotations

import builtins
import hashlib
import os
import re
import secrets
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from recallite.doors.calls import BootstrapText
from recallite.errors import AccessDenied, InvalidInput, NotFound, StoreError
from recallite.model import checks
from recallite.model.authority import Authority, authority_of, check_authority, rank_of
from recallite.model.records import Plain
from recallite.plugin import engine_of
from recallite.store.sql.meta import AccessTokenRow
from recallite.store.sql.repository import stored_json
from recallite.system.messages import shown

if TYPE_CHECKING:
    from recallite.memory import Memory

PREFIX = "rct_"
"""Beginning of every token, so that scanners for secrets can recognise one."""
_RANDOM_BYTES = 32
GRANTED = "recallite.granted"
"""Key, in the scope of ASGI, of the memory of a request in the Model Context Protocol, and of what it may do there."""


class Grant(Plain, frozen=True, kw_only=True):
    """Rights of a request: to read, and unless `read_only` to write, within `scope`, as the word of `authority`.

    It also recalls what is in the scopes `reads`: see `Memory.scoped`.
    """

    scope: str = "/"
    reads: tuple[str, ...] = ()
    read_only: bool = False
    authority: Authority = "user"


class Token(Grant, frozen=True, kw_only=True):
    """An access token as it is listed. `secret` is there only when it is created: the store has its SHA-256."""

    id: str
    name: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    secret: str | None = None

    def __repr__(self) -> str:
        """Represent it without the secret."""
        return f"Token(id={self.id!r}, scope={self.scope!r}, reads={self.reads!r}, read_only={self.read_only})"

    @property
    def expired(self) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)


class Tokens:
    """The access tokens of a store."""

    def __init__(self, memory: Memory, *, temporary: Mapping[str, Grant] | None = None) -> None:
        """`temporary` are tokens of this process alone, by their secret."""
        self._store = engine_of(memory).store
        self._temporary = {_hash(secret): grant for secret, grant in (temporary or {}).items()}

    def create(
        self,
        *,
        scope: str = "/",
        reads: Sequence[str] = (),
        read_only: bool = False,
        authority: Authority = "user",
        expires_after: timedelta | None = None,
        name: str | None = None,
    ) -> Token:
        """Make a token for a scope; its `secret` is shown this once. Without `expires_after` it lasts until revoked.

        It also recalls what is in the scopes `reads`, and changes nothing there: a handbook that several tenants share.
        What is written with it is the word of `authority` at most.

        Raises InvalidInput for a malformed scope and a time that is not positive.
        """
        now = checks.now_us()
        if expires_after is not None and expires_after <= timedelta(0):
            raise InvalidInput(f"expires_after is {shown(expires_after)}: give a time above 0")
        try:
            expires_at = None if expires_after is None else now + expires_after // timedelta(microseconds=1)
            row = AccessTokenRow(
                uuid.uuid4().hex[:12], None if name is None else checks.check_name(name, "name"),
                checks.check_scope(scope), _checked_reads(scope, reads), checks.check_flag(read_only, "read_only"),
                rank_of(check_authority(authority, "authority")), now, expires_at,
            )  # fmt: skip
            token = _shown(row)
        except OverflowError:
            raise InvalidInput(f"expires_after is {shown(expires_after)}: that is too long") from None
        secret = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
        self._check_owner()
        with self._store.atomic() as writer:
            writer.access_tokens.add(row, _hash(secret))
        return structs.replace(token, secret=secret)

    def list(self) -> builtins.list[Token]:
        """All tokens of the store, oldest first, expired ones too."""
        self._check_owner()
        with self._store.read() as reader:
            return [_shown(row) for row in reader.access_tokens.all()]

    def revoke(self, id: str) -> None:
        """Remove a token: from now on it admits nobody. Raises NotFound if there is none with this id."""
        checks.encodable(id, "id")
        self._check_owner()
        with self._store.atomic() as writer:
            if not writer.access_tokens.remove(id):
                raise NotFound(f"no token has the id {shown(id)}: `recallite token list` shows them")

    def grant(self, secret: str) -> Grant:
        """The grant of a token. Raises AccessDenied if it is unknown, revoked or expired."""
        # The secret has 256 random bits: looking its hash up tells nothing by the time it takes.
        hashed = _hash(secret)
        if (temporary := self._temporary.get(hashed)) is not None:
            return temporary
        if self._store.confined_to is not None:
            raise AccessDenied("the token is not known here: a tenant of the memory has no tokens")
        with self._store.read() as reader:
            row = reader.access_tokens.with_hash(hashed)
        if row is None:
            raise AccessDenied("the token is not known here: it was revoked, or is of another store")
        if row.expires_at is not None and row.expires_at <= checks.now_us():
            raise AccessDenied("the token has expired: have a new one made with `recallite token create`")
        return Grant(
            scope=row.scope, reads=_reads(row), read_only=bool(row.read_only), authority=authority_of(row.authority)
        )

    def _check_owner(self) -> None:
        """Raise StoreError for a tenant of a server, who sees no tokens."""
        if (scope := self._store.confined_to) is not None:
            raise StoreError(
                f"access tokens are of the whole memory, of which the user of {self._store.path} has the scope "
                f"{scope}: ask its owner",
                "denied",
            )


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _checked_reads(scope: str, reads: Sequence[str]) -> str:
    paths = dict.fromkeys(map(checks.check_scope, checks.as_list(reads, "reads")))
    if paths and scope == "/":
        raise InvalidInput("reads is given with the scope /, which has every other: give the scope that is written to")
    if "/" in paths:
        raise InvalidInput("reads has the scope /, which is everything: name the scopes that the token may read")
    return msgspec.json.encode([*paths]).decode()


def _reads(row: AccessTokenRow) -> tuple[str, ...]:
    return stored_json(row.reads, f"token {row.public_id}", tuple[str, ...])


def _shown(row: AccessTokenRow) -> Token:
    return Token(
        id=row.public_id, name=row.name, scope=row.scope, reads=_reads(row), read_only=bool(row.read_only),
        authority=authority_of(row.authority), created_at=checks.to_datetime(row.created_at),
        expires_at=checks.optional_datetime(row.expires_at),
    )  # fmt: skip


# Those who have one scope of a store are shown documents by name, without the folders of this machine.

# The line of Markdown that names a passage, which ends with its path and lines or page: a heading, or one of a list.
_CITED = re.compile(r'(?m)^((?:#{1,6}|-) [^\n]*\("?)([^()"\n]+)("?\))$')
_PLACE = re.compile(r":\d[\d-]*\Z|, (?:page|p\.) \d+\Z")


def seen_by(grant: Grant, result: Any) -> Any:
    """Return a result as a client sees it: one of a single scope is not told where documents are on this machine."""
    return result if grant.scope == "/" else _without_server_paths(result)


def _without_server_paths(value: Any) -> Any:
    """Name documents without their folders in a result, as plain values, or in Markdown that cites passages."""
    if isinstance(value, str):
        return _CITED.sub(lambda cited: f"{cited[1]}{_named(cited[2])}{cited[3]}", value)
    if isinstance(value, BootstrapText):
        value = structs.replace(value, text=_without_server_paths(value.text))
    return _renamed(msgspec.to_builtins(value, enc_hook=lambda array: array.tolist()))


def name_of(source: str) -> str:
    """The name of a file whose whole path is given; any other source as it is."""
    return PurePath(source).name if os.path.isabs(source) else source


def _named(cited: str) -> str:
    place = _PLACE.search(cited)
    path = cited[: place.start()] if place else cited
    return name_of(path) + cited[len(path) :]


def _renamed(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [*map(_renamed, value)]
    if not isinstance(value, dict):
        return value
    shown = {name: _renamed(item) for name, item in value.items()}
    source = value.get("source")
    path = source.get("id") if isinstance(source, dict) else source
    if isinstance(path, str) and os.path.isabs(path) and _is_of_document(value):
        return _replaced(shown, path, name_of(path))
    return shown


def _is_of_document(value: Mapping[str, Any]) -> bool:
    """Whether fields are those of a document or of a passage."""
    said_by = str(value.get("authority") or value.get("said_by") or value.get("saidBy"))
    return said_by.startswith("document") or "media_type" in value or "mediaType" in value


def _replaced(value: Any, path: str, name: str) -> Any:
    if isinstance(value, list):
        return [_replaced(item, path, name) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, path, name) for key, item in value.items()}
    if isinstance(value, str) and (value == path or value.endswith(f":{path}") or value.startswith(f"{path}:")):
        return value.replace(path, name)
    return value
