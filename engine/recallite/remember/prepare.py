"""Makes rows of callers' arguments: checks fields, reads texts and finds the times that they name. Writes nothing.

Ids of new records are made here too: an id is given by the caller, or new (UUID version 7), or derived from what the
record says (`content_id`).
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from difflib import get_close_matches
from functools import partial
from itertools import compress
from operator import attrgetter, is_not, not_
from typing import Any, TypeVar, cast

import msgspec
import numpy as np

from recallite.derivation import derive
from recallite.errors import InvalidInput, InvalidItem, RecalliteError
from recallite.model import checks
from recallite.model.authority import at_most, authority_of, ranks_of, speaker
from recallite.model.checks import check_metadata, check_name, check_time, join_scopes, now_us, to_datetime
from recallite.model.filters import CHUNK_KIND, MESSAGE_KIND
from recallite.model.records import NewRecord, Record
from recallite.model.settings import WritePolicy
from recallite.store.columns import Row, RowColumns
from recallite.system.messages import fault_text, shown
from recallite.text.dates.stated import Interval, stated_interval
from recallite.text.reading import Reading
from recallite.text.statements import statement_of

_FIELDS = NewRecord.__struct_fields__
_DEFAULTS = dict(zip(_FIELDS, (None, *NewRecord.__struct_defaults__), strict=True))
_REQUIRED = {"text"}
_fields_of = attrgetter(*_FIELDS)
# Arguments that have few different values in a batch.
_REPEATED = frozenset(("kind", "scope", "topic", "source"))
_Value = TypeVar("_Value")


def as_new_record(item: object) -> NewRecord:
    """An item of `remember_many`: a str, a NewRecord, or a dict of its fields."""
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
                raise unknown_field("the item", unknown[0]) from None
            raise InvalidInput("the item has no 'text'") from None
    raise InvalidInput(f"the item is {type(item).__name__} {shown(item)}: give a str, a dict or a NewRecord")


class Arguments:
    """The arguments of many items: `given` has a list of each that an item gives, by name."""

    def __init__(self, items: Sequence[object]) -> None:
        """Raises InvalidInput for an item that `as_new_record` does not take."""
        self.count = len(items)
        types, mappings = {*map(type, items)}, cast("Sequence[dict[str, Any]]", items)
        if types == {str}:
            self.given: dict[str, Sequence[Any]] = {"text": items}
        elif types <= {dict} and not [1 for each in mappings if not _REQUIRED <= each.keys() <= _DEFAULTS.keys()]:
            names: set[str] = set().union(*mappings)
            self.given = {name: [item.get(name, _DEFAULTS[name]) for item in mappings] for name in names}
        else:
            records = items if types == {NewRecord} else map(as_new_record, items)
            columns = zip(_FIELDS, zip(*map(_fields_of, records), strict=True), strict=True)
            alone = self.count == 1
            self.given = {name: column for name, column in columns if not (alone and column[0] is _DEFAULTS[name])}

    def __getitem__(self, name: str) -> Sequence[Any]:
        """Return the values of an argument, with its default for items that do not give it."""
        return self.given.get(name) or [_DEFAULTS[name]] * self.count

    def checked(self, name: str, check: Callable[[Any, str], _Value], unset: Any = None) -> list[_Value]:
        """Return a given argument of each item as `check` does; a default is not checked: it is `unset` if given."""
        column, default = self.given[name], _DEFAULTS[name]
        fallback = default if unset is None else unset
        if name in _REPEATED and all(type(value) is str for value in column):
            values = {value: fallback if value is default else check(value, name) for value in {*column}}
            return [values[value] for value in column]
        return [fallback if value is default else check(value, name) for value in column]


CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "kind": check_name, "importance": checks.check_unit, "pinned": checks.check_flag, "topic": check_name,
    "source": check_name, "position": partial(checks.check_count, minimum=0), "valid_from": check_time,
    "valid_until": check_time, "indexed": checks.check_flag,
    "tags": lambda value, _: () if value is None else checks.check_tags(value),
}  # fmt: skip
"""The checks of fields that writes and changes have in common."""
# What a row has where an argument is not given.
_UNSET = {field.name: _DEFAULTS.get(field.name, field.default) for field in msgspec.structs.fields(Row)}
_UNSET["supersedes"] = ()


def prepare(item: NewRecord, *, base: str, max_text_chars: int, policy: WritePolicy, exported: bool = False) -> Row:
    """Return the row of a new record; see `prepare_all`."""
    return prepare_all(Arguments([item]), base=base, max_text_chars=max_text_chars, policy=policy, exported=exported)[0]


def prepare_batch(
    items: Sequence[object], done: int, *, base: str, max_text_chars: int, policy: WritePolicy
) -> tuple[RowColumns, Sequence[Any]]:
    """The rows of the items of `remember_many` after the first `done`, and the vectors that they give.

    Raises InvalidItem for the first bad item.
    """
    try:
        arguments = Arguments(items)
        rows = prepare_all(arguments, base=base, max_text_chars=max_text_chars, policy=policy)
    except RecalliteError:
        for i, item in enumerate(items):
            try:
                prepare_all(Arguments([item]), base=base, max_text_chars=max_text_chars, policy=policy)
            except RecalliteError as reason:
                raise InvalidItem(done + i, done, reason) from reason
        raise
    return rows, arguments["vector"]


def prepare_all(
    arguments: Arguments,
    *,
    base: str,
    max_text_chars: int,
    policy: WritePolicy,
    exported: bool = False,
    messages: bool = False,
) -> RowColumns:
    """The rows of new records, written through a handle bound to the scope `base`, redacted as `policy` says.

    If they were `exported`, no time is looked for in the texts. Only `messages` of sessions have their kind. Raises the
    error of one bad item, not always the first.
    """
    count, given, checked = arguments.count, arguments.given, arguments.checked
    columns: dict[str, list[Any]] = {name: [default] * count for name, default in _UNSET.items()}
    columns["text"] = _checked_texts(arguments["text"], max_text_chars)
    if "context" in given:
        columns["context"] = checked("context", check_context)
    if policy.redact is not None:
        for name in ("text", "context"):
            columns[name] = [value and policy.clean(value) for value in columns[name]]
    # A microsecond apart, so that they have an order; reading a text takes longer than that.
    now = now_us()
    written_at: list[Any] = [*range(now, now + count)]
    columns |= {"created_at": written_at, "updated_at": written_at, "recorded_from": written_at}
    if "expires_at" in given:
        expiries = checked("expires_at", lambda value, _: check_expiry(value, now), unset=(None, None))
        columns["expires_at"], columns["expires_after"] = map(list, zip(*expiries, strict=True))
    for name, check in CHECKS.items():
        if name in given:
            columns[name] = checked(name, check)
    columns["public_id"], columns["base"], columns["scope"] = uuid7s(count), [base] * count, [base] * count
    if "scope" in given:
        columns["scope"] = checked("scope", lambda value, _: join_scopes(base, value) or "/", unset=base)
    if "metadata" in given:
        clean = policy.clean_json
        columns["metadata"] = checked("metadata", lambda value, _: metadata_json(clean(check_metadata(value))))
    if "supersedes" in given:
        columns["supersedes"] = checked("supersedes", check_ids, unset=())
    if MESSAGE_KIND in columns["kind"] and not messages:
        raise InvalidInput(f"kind is {MESSAGE_KIND!r}, which messages of sessions have: use sessions.open(id).append")
    rows = RowColumns(**columns)
    rows.authority = ranks_of(at_most(policy.authority, speaker()), rows.kind, rows.source, rows.context)
    for i, public_id in enumerate(given.get("id", ())):
        if public_id is not None:
            rows.public_id[i], rows.named[i] = check_name(public_id, "id"), True
    rows.derivation = derivation = derive(rows.texts())
    rows.content_hash, rows.standing = derivation.hashes, derivation.standing
    _set_times(rows, arguments, now, exported=exported)
    if any(map(partial(is_not, None), compress(given.get("vector", ()), map(not_, rows.indexed)))):
        raise InvalidInput("a vector is given with indexed=False, which recall leaves out: leave one of them out")
    if not exported:
        _read_times(rows, derivation.reading, given.get("created_at"), policy)
    return rows


def _checked_texts(texts: Sequence[Any], max_chars: int) -> list[str]:
    """Check texts: all at once, and one by one if one may be bad."""
    if {*map(type, texts)} == {str} and max(map(len, texts)) <= max_chars:
        with suppress(InvalidInput):
            checks.encodable("".join(texts), "text")
            if all(map(str.strip, texts)):
                return [*texts]
    return [checks.check_text(text, max_chars) for text in texts]


def metadata_json(metadata: Mapping[str, Any] | None) -> str | None:
    """Metadata as it is stored."""
    return msgspec.json.encode(metadata).decode() if metadata else None


def _set_times(rows: RowColumns, arguments: Arguments, now: int, *, exported: bool) -> None:
    """Set when rows were written, and check the order of their times."""
    moments: Sequence[int | None] = [None] * arguments.count
    if "created_at" in arguments.given:
        moments = arguments.checked("created_at", check_time)
        both = zip(moments, rows.created_at, strict=True)
        rows.created_at = rows.recorded_from = [otherwise if moment is None else moment for moment, otherwise in both]
        for kind, created in zip(rows.kind, rows.created_at, strict=True):
            if not exported and kind != CHUNK_KIND and is_to_come(created, now):
                raise InvalidInput(
                    f"created_at is {to_datetime(created).isoformat()}, which is to come: a text that is said later "
                    "than any other would be the last word for ever; give the time of what it tells of as valid_from"
                )
    if "expires_at" in arguments.given and not exported:
        present = now_us()  # "now" was read after `now`
        for expires, life, moment in zip(rows.expires_at, rows.expires_after, moments, strict=True):
            created = present if moment is None else moment
            if life is None and expires is not None and expires <= created:
                raise InvalidInput(
                    f"expires_at is {to_datetime(expires).isoformat()}, not after {to_datetime(created).isoformat()}: "
                    "no read would ever show it; give a later time, or the earlier created_at of what was said before"
                )
    for until, begins, created in zip(rows.valid_until, rows.valid_from, rows.created_at, strict=True):
        if until is not None:
            check_order(begins, until, created)


def _read_times(rows: RowColumns, reading: Reading, written: Sequence[Any] | None, policy: WritePolicy) -> None:
    """Set the valid times that texts name, seen from where they were `written`, if none is given for the row."""
    for i in np.flatnonzero(reading.may_have_dates).tolist():
        if rows.valid_from[i] is None and rows.valid_until[i] is None:
            kind, text, created = rows.kind[i], rows.text[i], rows.created_at[i]
            offset = 0 if written is None else checks.offset_us(written[i])
            named = read_times(kind, text, reading.words(i), created, policy, offset)
            if named is not None:
                rows.valid_from[i], rows.valid_until[i] = named
                rows.valid_resolved[i] = True


_MOMENTS = ("created_at", "updated_at", "recorded_from", "valid_from", "valid_until", "expires_at")


def as_record(row: Row) -> Record:
    """A row that has just been inserted, as its record."""
    moments: dict[str, Any] = {name: to_datetime(at) for name in _MOMENTS if (at := getattr(row, name)) is not None}
    return Record(
        id=row.public_id, text=row.text, kind=row.kind, scope=row.scope, context=row.context, tags=row.tags,
        importance=row.importance, pinned=row.pinned, authority=authority_of(row.authority), topic=row.topic,
        source=row.source, position=row.position, valid_resolved=row.valid_resolved, supersedes=row.supersedes,
        expires_after=None if row.expires_after is None else timedelta(microseconds=row.expires_after),
        indexed=row.indexed, embedding_state=row.embedding_state, outcome="created",
        standing=row.standing if row.indexed else None,
        metadata={} if row.metadata is None else msgspec.json.decode(row.metadata), **moments,
    )  # fmt: skip


# What a document or procedure says is not about the time at which it was written.
_UNDATED = (CHUNK_KIND, "procedure")


def read_times(
    kind: str, text: str, words: Sequence[str], written_us: int, policy: WritePolicy, offset_us: int = 0
) -> Interval | None:
    """Return the time that a text is about, seen from `written_us` at an offset from UTC.

    None if none is clear or none is looked for. What is to come bounds its own clause: a text with another one, which
    names no time, holds from when it was written.
    """
    if not policy.resolve_dates or kind in _UNDATED:
        return None
    stated = stated_interval(text, words, written_us + offset_us)
    if stated is None:
        return None
    at, until = stated.at - offset_us, None if stated.until is None else stated.until - offset_us
    if at > written_us:
        statement = statement_of(text)
        if statement.whole and len({"time" in dict(clause.chunks) for clause in statement.clauses}) == 2:
            at = written_us
    return Interval(at, until)


# Fields that have rules of their own.

_MAX_CONTEXT_CHARS = 2_000
_MAX_LIFE = timedelta(days=365_250)
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


def check_life(expires_at: object) -> timedelta | None:
    """Return the length of life that a timedelta, "30d" or "P30D" (ISO 8601) gives; None for a time."""
    if isinstance(expires_at, str):
        with suppress(msgspec.ValidationError, OverflowError):
            iso = expires_at[:1] in ("P", "-")
            expires_at = msgspec.convert(expires_at, timedelta) if iso else checks.length_of(expires_at) or expires_at
    if not isinstance(expires_at, timedelta):
        return None
    if not timedelta(0) < expires_at <= _MAX_LIFE:
        raise InvalidInput(f"expires_at is {shown(expires_at)}: a length of life is above 0, and at most 1,000 years")
    return expires_at


def check_expiry(expires_at: object, now: int) -> tuple[int | None, int | None]:
    """Return when a record expires and, if a length of life is given, that length; both in microseconds."""
    life = check_life(expires_at)
    if life is None:
        return check_time(expires_at, "expires_at"), None
    length = life // timedelta(microseconds=1)
    return now + length, length


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
    public_ids = checks.as_list(ids, name)
    if not all(isinstance(public_id, str) for public_id in public_ids):
        raise InvalidInput(f"{name} is {shown(ids)}: give the id of a memory, or a list of ids")
    return tuple(dict.fromkeys(map(checks.plain_str, public_ids)))


def check_context(context: object, name: str = "context") -> str | None:
    """Check a context header, a str of at most 2,000 characters; return None if it is blank."""
    if context is None:
        return None
    if not isinstance(context, str):
        raise InvalidInput(f"{name} is {shown(context)}: give a str, a short header such as 'Alice'")
    if len(context) > _MAX_CONTEXT_CHARS:
        raise InvalidInput(f"{name} has {len(context):,} characters: it is a short header of at most 2,000")
    return checks.encodable(checks.plain_str(context), name) if context.strip() else None


# New ids: UUIDs version 7 (RFC 9562): milliseconds, a counter that orders ids within one, random bits.

_COUNTERS = 0x1000
# The variant of RFC 9562, in the first of the last 16 digits: two of its bits are random.
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


class _Clock:
    """Pairs of milliseconds and a counter, ascending, and each given once in a process."""

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
    # Counters begin in the lower quarter, so that there is room for more in the same millisecond.
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
_encode = msgspec.json.Encoder(order="sorted", enc_hook=checks.json_value).encode


def content_id(record: NewRecord, base: str = "/") -> str:
    """Return the id of a record that has none, in the scope `base` of a store: BLAKE2b of all its fields but vectors.

    Two records that differ in any field, such as the metadata or the position in a source, have different ids. Raises
    InvalidInput for a field that cannot be stored.
    """
    fields: dict[str, Any] = {name: getattr(record, name) for name in _FIELDS if name not in ("id", "vector")}
    fields["scope"] = join_scopes(base, record.scope) or "/"
    if (importance := checks.number_of(record.importance)) is not None:
        fields["importance"] = float(importance)
    for name in _TIMES:
        fields[name] = check_time(fields[name], name)
    fields["expires_at"] = check_life(record.expires_at) or check_time(record.expires_at, "expires_at")
    stated = {name: value for name, value in fields.items() if value not in (_DEFAULTS[name], [], {})}
    try:
        encoded = _encode(stated)
    except (TypeError, ValueError, OverflowError, RecursionError) as fault:
        raise InvalidInput(f"a record has a field that cannot be stored: {fault_text(fault)}") from fault
    return "content-" + hashlib.blake2b(encoded, digest_size=_ID_BYTES).hexdigest()
