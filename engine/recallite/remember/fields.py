"""Checks of those fields of a record that have rules of their own."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from difflib import get_close_matches

import msgspec

from recallite.errors import InvalidInput
from recallite.model.checks import check_time, encodable, length_of, listed, plain_str, to_datetime
from recallite.model.records import NewRecord
from recallite.system.messages import shown

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
