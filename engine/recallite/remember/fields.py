"""Fields of a record that have rules of their own, and ids of new records.

An id is given by the caller, or new (UUID version 7), or derived from what the record says (`content_id`).
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import suppress
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import structs

from recallite.errors import InvalidInput
from recallite.model.checks import check_time, encodable, join_scopes, length_of, listed, plain_str, to_datetime
from recallite.model.records import NewRecord
from recallite.system.messages import fault_text, shown

MAX_CONTEXT_CHARS = 2_000
MAX_LIFE = timedelta(days=365_250)
# Clocks of two machines may differ by as much.
_MOST_AHEAD_US = 300_000_000
# As mem0, Chroma and LangChain call them.
_MEANT = {
    **dict.fromkeys(("expires_after", "ttl"), "expires_at=timedelta(...)"),
    **dict.fromkeys(("user_id", "agent_id", "run_id"), "scope, or memory.scoped('/users/ada')"),
    **dict.fromkeys(("categories", "category"), "tags"),
    "embedding": "remember(NewRecord(text, vector=...))", "timestamp": "created_at", "metadatas": "metadata",
    "namespace": "scope",
}  # fmt: skip


def is_to_come(created: int, now: int) -> bool:
    """Whether a time of writing is later than any clock may be by now."""
    return created > now + _MOST_AHEAD_US


def check_created(created: int, now: int) -> None:
    """Refuse a time of writing in the future."""
    if is_to_come(created, now):
        raise InvalidInput(
            f"created_at is {to_datetime(created).isoformat()}, which is to come: a text that is said later than any "
            "other would be the last word for ever; give the time of what it tells of as valid_from"
        )


def check_expiry(expires_at: object, now: int) -> tuple[int | None, int | None]:
    """Return when a record expires and, if a length of life is given, that length; both in microseconds."""
    life = check_life(expires_at)
    if life is None:
        return check_time(expires_at, "expires_at"), None
    length = life // timedelta(microseconds=1)
    return now + length, length


def check_unexpired(expires: int | None, created: int) -> None:
    """Refuse an expiry that is over when a memory is created: nobody would ever see it."""
    if expires is not None and expires <= created:
        raise InvalidInput(
            f"expires_at is {to_datetime(expires).isoformat()}, not after {to_datetime(created).isoformat()}: "
            "no read would ever show it; give a later time, or the earlier created_at of what was said before"
        )


def check_life(expires_at: object) -> timedelta | None:
    """Return the length of life that a timedelta, "30d" or "P30D" (ISO 8601) gives; None for a time."""
    if isinstance(expires_at, str):
        with suppress(msgspec.ValidationError, OverflowError):
            iso = expires_at[:1] in ("P", "-")
            expires_at = msgspec.convert(expires_at, timedelta) if iso else length_of(expires_at) or expires_at
    if not isinstance(expires_at, timedelta):
        return None
    if not timedelta(0) < expires_at <= MAX_LIFE:
        raise InvalidInput(f"expires_at is {shown(expires_at)}: a length of life is above 0, and at most 1,000 years")
    return expires_at


def unknown_field(method: str, name: str) -> InvalidInput:
    """Return the error for a keyword argument that `remember` does not have, or a field that no record has."""
    known = NewRecord.__struct_fields__
    if name in known:
        use = f"it is a field of NewRecord: {method}(NewRecord(text, {name}=...))"
    elif name in _MEANT:
        use = f"use {_MEANT[name]}"
    else:
        near = get_close_matches(str(name), known, n=1)
        use = (f"did you mean {near[0]}? " if near else "") + f"use one of {', '.join(known)}"
    return InvalidInput(f"{method} has no argument {shown(name)}: {use}")


def check_order(begins: int | None, ends: int | None, otherwise: int) -> None:
    """Refuse an end that is not after the beginning, or after `otherwise` if that is None."""
    begun = otherwise if begins is None else begins
    if ends is not None and ends <= begun:
        raise InvalidInput(
            f"valid_until is {to_datetime(ends).isoformat()}, and the beginning {to_datetime(begun).isoformat()}: "
            "give a later end, or an earlier valid_from"
        )


def check_ids(ids: object, name: str) -> tuple[str, ...]:
    """Check one id or a list of ids, and return each once; None stands for no ids."""
    if ids is None:
        return ()
    public_ids = listed(ids, name)
    if not all(isinstance(public_id, str) for public_id in public_ids):
        raise InvalidInput(f"{name} is {shown(ids)}: give the id of a memory, or a list of ids")
    return tuple(dict.fromkeys(map(plain_str, public_ids)))


def check_context(context: object) -> str | None:
    """Check a context header, a str of at most 2,000 characters; return None if it is blank."""
    if context is None:
        return None
    if not isinstance(context, str):
        raise InvalidInput(f"context is {shown(context)}: give a str, a short header such as 'Alice'")
    if len(context) > MAX_CONTEXT_CHARS:
        raise InvalidInput(f"context has {len(context):,} characters: it is a short header of at most 2,000")
    return encodable(plain_str(context), "context") if context.strip() else None


# New ids: UUIDs version 7 (RFC 9562): milliseconds, a counter that orders ids within one, random bits.

_COUNTERS = 0x1000
# The variant of RFC 9562, in the first of the last 16 digits: two of its bits are random.
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


class _Clock:
    """Milliseconds with counters, each pair of which is given once in a process, ascending."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._next = 0

    def reserve(self, count: int, first: int) -> int:
        """Reserve pairs, as milliseconds * 4096 + counter; in a new millisecond the counter begins at `first`."""
        if self._process != os.getpid():  # another thread may have held the lock at the fork
            self.__init__()  # type: ignore[misc]
        with self._lock:
            begin = max(self._next, time.time_ns() // 1_000_000 * _COUNTERS + first)
            self._next = begin + count
        return begin


_clock = _Clock()


def uuid7() -> str:
    """Return a new id."""
    return uuid7s(1)[0]


def uuid7s(count: int) -> list[str]:
    """Return new ids, ascending. The system is asked once for their random bits."""
    noise = os.urandom(8 * count + 2).hex()
    # Counters begin in the lower quarter, so that there is room for those of the same millisecond.
    begin = _clock.reserve(count, int(noise[-4:], 16) >> 6)
    ids: list[str] = []
    for i in range(count):
        milliseconds, counter = divmod(begin + i, _COUNTERS)
        time_digits, digits = f"{milliseconds:012x}", noise[16 * i : 16 * i + 16]
        ids.append(
            f"{time_digits[:8]}-{time_digits[8:]}-7{counter:03x}-{_VARIANT[digits[0]]}{digits[1:4]}-{digits[4:]}"
        )
    return ids


# Ids derived from what a record says, so that the same record written twice is one.

_ID_BYTES = 16
_TIMES = ("created_at", "valid_from", "valid_until")
_DEFAULTS = structs.asdict(NewRecord(text=""))
_encode = msgspec.json.Encoder(order="sorted").encode


def content_id(record: NewRecord, base: str = "/") -> str:
    """Return the id of a record that has none, in the scope `base` of a store: BLAKE2b of all its fields but vectors.

    Two records that differ in any field, such as the metadata or the position in a source, have different ids. Raises
    InvalidInput for a field that cannot be stored.
    """
    fields: dict[str, Any] = {name: getattr(record, name) for name in _DEFAULTS if name not in ("id", "vector")}
    fields["scope"] = join_scopes(base, record.scope) or "/"
    if isinstance(record.importance, int):
        fields["importance"] = float(record.importance)
    for name in _TIMES:
        fields[name] = check_time(fields[name], name)
    fields["expires_at"] = check_life(record.expires_at) or check_time(record.expires_at, "expires_at")
    stated = {name: value for name, value in fields.items() if value not in (_DEFAULTS[name], [], {})}
    try:
        encoded = _encode(stated)
    except (TypeError, ValueError, OverflowError, RecursionError) as fault:
        raise InvalidInput(f"a record has a field that cannot be stored: {fault_text(fault)}") from fault
    return "content-" + hashlib.blake2b(encoded, digest_size=_ID_BYTES).hexdigest()
