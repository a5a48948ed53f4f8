"""From a caller's arguments to a row: every field checked, the text tokenised. Nothing is written here."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from recallite.errors import InvalidInput
from recallite.model.checks import (
    check_count,
    check_flag,
    check_list,
    check_metadata,
    check_name,
    check_tags,
    check_text,
    check_time,
    check_unit,
    encodable,
    join_scopes,
    now_us,
    optional_datetime,
    plain_str,
    to_datetime,
)
from recallite.model.policies import WritePolicy
from recallite.model.records import NewRecord, Record
from recallite.remember.dating import resolve_times
from recallite.store.values import CHUNK_KIND, Row
from recallite.system.messages import shown
from recallite.text.normalise import content_hash
from recallite.text.record_words import written_words
from recallite.text.standing import standing_of

_FIELDS = NewRecord.__struct_fields__
MAX_CONTEXT_CHARS = 2_000
# Clocks of two machines may differ by as much.
_MOST_AHEAD_US = 300_000_000
_NO_TAGS: tuple[str, ...] = ()
MAX_LIFE = timedelta(days=365_250)


def as_new_record(item: object) -> NewRecord:
    """An item of `remember_many`: a str, a dict of `remember`'s arguments, or a NewRecord."""
    if isinstance(item, NewRecord):
        return item
    if isinstance(item, str):
        return NewRecord(text=item)
    if type(item) is dict or isinstance(item, Mapping):
        try:
            return NewRecord(**item)
        except TypeError:
            unknown = [key for key in item if key not in _FIELDS]
            if unknown:
                raise InvalidInput(f"unknown field {shown(unknown[0])}: use {', '.join(_FIELDS)}") from None
            raise InvalidInput("the item has no 'text'") from None
    raise InvalidInput(f"the item is {type(item).__name__} {shown(item)}: give a str, a dict or a NewRecord")


def prepare(item: NewRecord, *, base: str, max_text_chars: int, policy: WritePolicy, exported: bool = False) -> Row:
    """The row of a new record, written through a handle bound to the scope `base`, redacted as `policy` says.

    Of one that was `exported`, no time is looked for in the text.
    """
    text = policy.clean(check_text(item.text, max_text_chars))
    context = check_context(item.context)
    context = None if context is None else policy.clean(context)
    now = now_us()
    created = now if item.created_at is None else check_time(item.created_at, "created_at")
    assert created is not None
    if created > now + _MOST_AHEAD_US and not exported and item.kind != CHUNK_KIND:
        raise InvalidInput(
            f"created_at is {to_datetime(created).isoformat()}, which is to come: a text that is said later than any "
            "other would be the last word for ever; give the time of what it tells of as event_at"
        )
    event_at, event_until = check_interval(item.event_at, item.event_until, created)
    expires_at, expires_after = check_expiry(None if exported else item.expires_at, item.expires_after, now)
    if exported:  # it has both
        expires_at = check_time(item.expires_at, "expires_at")
    if item.vector is not None and not item.indexed:
        raise InvalidInput("a vector is given with indexed=False, which recall leaves out: leave one of them out")
    metadata = None if item.metadata is None else policy.clean_json(check_metadata(item.metadata))
    row = Row(
        public_id=uuid7() if item.id is None else check_name(item.id, "id"),
        named=item.id is not None,
        kind=check_name(item.kind, "kind"),
        scope=join_scopes(base, item.scope) or "/",
        text=text,
        context=context,
        importance=check_unit(item.importance, "importance"),
        pinned=check_flag(item.pinned, "pinned"),
        topic=None if item.topic is None else check_name(item.topic, "topic"),
        source=None if item.source is None else check_name(item.source, "source"),
        position=None if item.position is None else check_count(item.position, "position", minimum=0),
        created_at=created,
        event_at=event_at,
        event_until=event_until,
        updated_at=now,
        expires_at=expires_at,
        expires_after=expires_after,
        valid_from=created,
        indexed=check_flag(item.indexed, "indexed"),
        metadata=msgspec.json.encode(metadata).decode() if metadata else None,
        content_hash=content_hash(text, context),
        words=written_words(text, context),
        tags=() if item.tags is None or item.tags is _NO_TAGS else check_tags(item.tags),
        supersedes=check_ids(item.supersedes, "supersedes"),
        base=base,
    )
    if not exported:
        resolve_times(row, policy)
    return row


def as_record(row: Row) -> Record:
    """A row that has just been inserted, as its record."""
    return Record(
        id=row.public_id, text=row.text, kind=row.kind, scope=row.scope, context=row.context, tags=row.tags,
        importance=row.importance, pinned=row.pinned, topic=row.topic, source=row.source, position=row.position,
        created_at=to_datetime(row.created_at), event_at=optional_datetime(row.event_at),
        event_until=optional_datetime(row.event_until), event_resolved=row.event_resolved, supersedes=row.supersedes,
        updated_at=to_datetime(row.updated_at), expires_at=optional_datetime(row.expires_at), indexed=row.indexed,
        expires_after=None if row.expires_after is None else timedelta(microseconds=row.expires_after),
        valid_from=to_datetime(row.valid_from), embedding_state=row.embedding_state, outcome="created",
        standing=standing_of(row.kind, row.text, row.context) if row.indexed else None,
        metadata={} if row.metadata is None else msgspec.json.decode(row.metadata),
    )  # fmt: skip


def check_expiry(expires_at: object, expires_after: object, now: int) -> tuple[int | None, int | None]:
    """When a record expires, and how long it lives from each touch on, in microseconds; one of the two is given."""
    if expires_after is None:
        return check_time(expires_at, "expires_at"), None
    if expires_at is not None:
        raise InvalidInput("expires_at and expires_after are given: leave one out")
    if not isinstance(expires_after, timedelta) or not timedelta(0) < expires_after <= MAX_LIFE:
        raise InvalidInput(f"expires_after is {shown(expires_after)}: give a timedelta above 0, of at most 1,000 years")
    length = expires_after // timedelta(microseconds=1)
    return now + length, length


def check_interval(event_at: object, event_until: object, otherwise: int) -> tuple[int | None, int | None]:
    """When what a text says begins and ends to hold, the end excluded; without a beginning it begins `otherwise`."""
    begins, ends = check_time(event_at, "event_at"), check_time(event_until, "event_until")
    check_order(begins, ends, otherwise)
    return begins, ends


def check_order(begins: int | None, ends: int | None, otherwise: int) -> None:
    """Refuse an end that is not after the beginning, which is `otherwise` where none is given."""
    begun = otherwise if begins is None else begins
    if ends is not None and ends <= begun:
        raise InvalidInput(
            f"event_until is {to_datetime(ends).isoformat()}, and the beginning {to_datetime(begun).isoformat()}: "
            "give a later end, or an earlier event_at"
        )


def check_ids(ids: object, name: str) -> tuple[str, ...]:
    """One id or a list of ids, each once; None is none."""
    if ids is None:
        return ()
    listed = [ids] if isinstance(ids, str) else check_list(ids, name)
    for each in listed:
        if not isinstance(each, str):
            raise InvalidInput(f"{name} is {shown(ids)}: give the id of a memory, or a list of ids")
    return tuple(dict.fromkeys(map(plain_str, listed)))


def check_context(context: object) -> str | None:
    """A context header: a str of at most 2,000 characters; blank is none."""
    if context is None:
        return None
    if not isinstance(context, str):
        raise InvalidInput(f"context is {shown(context)}: give a str, a short header such as 'Alice'")
    if len(context) > MAX_CONTEXT_CHARS:
        raise InvalidInput(f"context has {len(context):,} characters: it is a short header of at most 2,000")
    return encodable(plain_str(context), "context") if context.strip() else None


_last_ms = 0
_sequence = 0
_NOISE_BYTES = 2048


class _Noise(threading.local):
    """Random bytes, read many at a time: to ask the system for each id took 8 % of a bulk write."""

    def __init__(self) -> None:
        self._left: list[int] = []
        self._process = 0

    def number(self) -> int:
        """64 bits that no other thread or process has."""
        if not self._left or self._process != os.getpid():  # a fork copies what is left
            self._process, self._left = os.getpid(), memoryview(os.urandom(_NOISE_BYTES)).cast("Q").tolist()
        return self._left.pop()


_noise = _Noise()


def uuid7() -> str:
    """A UUID version 7 (RFC 9562): milliseconds, a counter that orders ids within one, random bits."""
    global _last_ms, _sequence
    now_ms = time.time_ns() // 1_000_000
    noise = _noise.number()
    if now_ms > _last_ms:
        _last_ms, _sequence = now_ms, noise >> 54
    else:
        _sequence += 1
        if _sequence > 0xFFF:
            _last_ms, _sequence = _last_ms + 1, 0
    time_digits, noise_digits = f"{_last_ms:012x}", f"{1 << 63 | noise & (1 << 62) - 1:016x}"
    return f"{time_digits[:8]}-{time_digits[8:]}-{0x7000 | _sequence & 0xFFF:04x}-{noise_digits[:4]}-{noise_digits[4:]}"
