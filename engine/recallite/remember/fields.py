"""Checks of those fields of a record that have rules of their own."""

from __future__ import annotations

from datetime import timedelta

from recallite.errors import InvalidInput
from recallite.model.checks import check_list, check_time, encodable, plain_str, to_datetime
from recallite.system.messages import shown

MAX_CONTEXT_CHARS = 2_000
MAX_LIFE = timedelta(days=365_250)
# Clocks of two machines may differ by as much.
_MOST_AHEAD_US = 300_000_000


def check_created(created: int, now: int) -> None:
    """Refuse a time of writing in the future."""
    if created > now + _MOST_AHEAD_US:
        raise InvalidInput(
            f"created_at is {to_datetime(created).isoformat()}, which is to come: a text that is said later than any "
            "other would be the last word for ever; give the time of what it tells of as valid_from"
        )


def check_expiry(expires_at: object, expires_after: object, now: int) -> tuple[int | None, int | None]:
    """Return when a record expires and how long it lives after each renewal, in microseconds, from one of the two."""
    if expires_after is None:
        return check_time(expires_at, "expires_at"), None
    if expires_at is not None:
        raise InvalidInput("expires_at and expires_after are given: leave one out")
    if not isinstance(expires_after, timedelta) or not timedelta(0) < expires_after <= MAX_LIFE:
        raise InvalidInput(f"expires_after is {shown(expires_after)}: give a timedelta above 0, of at most 1,000 years")
    length = expires_after // timedelta(microseconds=1)
    return now + length, length


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
    listed = [ids] if isinstance(ids, str) else check_list(ids, name)
    for public_id in listed:
        if not isinstance(public_id, str):
            raise InvalidInput(f"{name} is {shown(ids)}: give the id of a memory, or a list of ids")
    return tuple(dict.fromkeys(map(plain_str, listed)))


def check_context(context: object) -> str | None:
    """Check a context header, a str of at most 2,000 characters; return None if it is blank."""
    if context is None:
        return None
    if not isinstance(context, str):
        raise InvalidInput(f"context is {shown(context)}: give a str, a short header such as 'Alice'")
    if len(context) > MAX_CONTEXT_CHARS:
        raise InvalidInput(f"context has {len(context):,} characters: it is a short header of at most 2,000")
    return encodable(plain_str(context), "context") if context.strip() else None
