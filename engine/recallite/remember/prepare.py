"""Makes rows of callers' arguments: checks fields, reads texts and finds the times that they name. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
import numpy as np

from recallite.errors import InvalidInput, InvalidItem, RecalliteError
from recallite.model.authority import at_most, authority_of, ranks_of, speaker
from recallite.model.checks import (
    check_count,
    check_flag,
    check_metadata,
    check_name,
    check_tags,
    check_text,
    check_time,
    check_unit,
    encodable,
    join_scopes,
    now_us,
    offset_us,
    optional_datetime,
    to_datetime,
)
from recallite.model.records import NewRecord, Record
from recallite.model.settings import WritePolicy
from recallite.remember.fields import (
    check_context,
    check_created,
    check_expiry,
    check_ids,
    check_order,
    check_unexpired,
    unknown_field,
    uuid7s,
)
from recallite.store.columns import RowColumns
from recallite.store.values import CHUNK_KIND, Row
from recallite.system.messages import shown
from recallite.text.dates.stated import Interval, stated_interval
from recallite.text.reading import Reading, read_texts
from recallite.text.standing import standing_of
from recallite.text.words import content_hash

_FIELDS = NewRecord.__struct_fields__
_DEFAULTS = dict(zip(_FIELDS, (None, *NewRecord.__struct_defaults__), strict=True))
_fields_of = attrgetter(*_FIELDS)
_NO_TAGS: tuple[str, ...] = ()
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
    """The arguments of many items, as lists by their names; those that no item gives are absent."""

    def __init__(self, items: Sequence[object]) -> None:
        """Raises InvalidInput for an item that `as_new_record` does not take."""
        self.count = len(items)
        if all(type(item) is str for item in items):
            self._columns: dict[str, Sequence[Any]] = {"text": items}
        elif all(type(item) is dict and "text" in item and item.keys() <= _DEFAULTS.keys() for item in items):
            mappings: Sequence[Any] = items
            names: set[str] = set().union(*mappings)
            self._columns = {name: [item.get(name, _DEFAULTS[name]) for item in mappings] for name in names}
        else:
            columns = zip(*map(_fields_of, map(as_new_record, items)), strict=True)
            self._columns = dict(zip(_FIELDS, columns, strict=True))

    def __getitem__(self, name: str) -> Sequence[Any]:
        """Return the values of an argument, with its default for items that do not give it."""
        return self._columns.get(name) or [_DEFAULTS[name]] * self.count

    def checked(self, name: str, check: Callable[[Any], _Value], unset: Any = None) -> list[_Value]:
        """Return an argument of each item as `check` returns it; defaults are not checked."""
        column, default = self._columns.get(name), _DEFAULTS[name]
        fallback = default if unset is None else unset
        if column is None:
            return [fallback] * self.count
        if name in _REPEATED and all(type(value) is str for value in column):
            values = {value: fallback if value is default else check(value) for value in {*column}}
            return [values[value] for value in column]
        return [fallback if value is default else check(value) for value in column]


# Arguments of which a batch has few values.
_REPEATED = frozenset(("kind", "scope", "topic", "source"))


def prepare(item: NewRecord, *, base: str, max_text_chars: int, policy: WritePolicy, exported: bool = False) -> Row:
    """The row of a new record; see `prepare_all`."""
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
    arguments: Arguments, *, base: str, max_text_chars: int, policy: WritePolicy, exported: bool = False
) -> RowColumns:
    """The rows of new records, written through a handle bound to the scope `base`, redacted as `policy` says.

    If they were `exported`, no time is looked for in the texts. Raises the error of one bad item, not always the
    first.
    """
    count = arguments.count
    texts = _clean(_checked_texts(arguments["text"], max_text_chars), policy)
    contexts = _clean(arguments.checked("context", check_context), policy)
    # A microsecond apart, so that they have an order; reading a text takes longer than that.
    now = now_us()
    written_at = [*range(now, now + count)]
    expiries = arguments.checked("expires_at", lambda value: check_expiry(value, now), unset=(None, None))
    rows = RowColumns(
        public_id=uuid7s(count),
        kind=arguments.checked("kind", lambda value: check_name(value, "kind")),
        scope=arguments.checked("scope", lambda value: join_scopes(base, value) or "/", unset=base),
        text=texts,
        context=contexts,
        importance=arguments.checked("importance", lambda value: check_unit(value, "importance")),
        base_importance=[None] * count,
        pinned=arguments.checked("pinned", lambda value: check_flag(value, "pinned")),
        authority=[0] * count,
        topic=arguments.checked("topic", lambda value: check_name(value, "topic")),
        source=arguments.checked("source", lambda value: check_name(value, "source")),
        position=arguments.checked("position", lambda value: check_count(value, "position", minimum=0)),
        created_at=written_at,
        valid_from=arguments.checked("valid_from", lambda value: check_time(value, "valid_from")),
        valid_until=arguments.checked("valid_until", lambda value: check_time(value, "valid_until")),
        valid_resolved=[False] * count,
        updated_at=written_at,
        expires_at=[moment for moment, _ in expiries],
        expires_after=[life for _, life in expiries],
        recorded_from=written_at,
        recorded_until=[None] * count,
        metadata=arguments.checked("metadata", lambda value: metadata_json(policy.clean_json(check_metadata(value)))),
        content_hash=[*map(content_hash, texts, contexts)],
        indexed=arguments.checked("indexed", lambda value: check_flag(value, "indexed")),
        standing=[None] * count,
        tags=arguments.checked("tags", lambda value: _NO_TAGS if value is None else check_tags(value)),
        vectors=[()] * count,
        codes=[()] * count,
        pending=[False] * count,
        refused=[None] * count,
        access_count=[0] * count,
        accessed_at=[None] * count,
        repeated=[()] * count,
        named=[False] * count,
        vectors_given=[False] * count,
        supersedes=arguments.checked("supersedes", lambda value: check_ids(value, "supersedes"), unset=()),
        base=[base] * count,
    )
    rows.reading = read_texts(texts, contexts if any(contexts) else None, rows.tags if any(rows.tags) else None)
    rows.authority = ranks_of(at_most(policy.authority, speaker()), rows.kind, rows.source, rows.context)
    _set_names(rows, arguments)
    _set_times(rows, arguments, now, exported=exported)
    if not all(rows.indexed):
        _check_left_out(rows, arguments["vector"])
    if not exported:
        _read_times(rows, rows.reading, arguments["created_at"], policy)
    for i in np.flatnonzero(rows.reading.may_be_standing).tolist():
        if not rows.authority[i]:
            rows.standing[i] = standing_of(rows.kind[i], texts[i], contexts[i])
    return rows


def _checked_texts(texts: Sequence[Any], max_chars: int) -> list[str]:
    """Check texts: all at once, and one by one if one may be bad."""
    if texts and all(type(text) is str for text in texts) and max(map(len, texts)) <= max_chars:
        with suppress(InvalidInput):
            encodable("".join(texts), "text")
            if all(map(str.strip, texts)):
                return [*texts]
    return [check_text(text, max_chars) for text in texts]


def _clean(texts: list[Any], policy: WritePolicy) -> list[Any]:
    """Return texts without what the policy redacts."""
    return texts if policy.redact is None else [text and policy.clean(text) for text in texts]


def metadata_json(metadata: Mapping[str, Any] | None) -> str | None:
    """Metadata as it is stored."""
    return msgspec.json.encode(metadata).decode() if metadata else None


def _set_names(rows: RowColumns, arguments: Arguments) -> None:
    for i, public_id in enumerate(arguments["id"]):
        if public_id is not None:
            rows.public_id[i], rows.named[i] = check_name(public_id, "id"), True


def _set_times(rows: RowColumns, arguments: Arguments, now: int, *, exported: bool) -> None:
    """Set when rows were written, and check the order of their times."""
    moments = arguments.checked("created_at", lambda value: check_time(value, "created_at"))
    if any(moment is not None for moment in moments):
        both = zip(moments, rows.created_at, strict=True)
        rows.created_at = rows.recorded_from = [otherwise if moment is None else moment for moment, otherwise in both]
        for kind, created in zip(rows.kind, rows.created_at, strict=True):
            if not exported and kind != CHUNK_KIND:
                check_created(created, now)
    if not exported:
        present = now_us()  # "now" was read after `now`
        for expires, life, moment in zip(rows.expires_at, rows.expires_after, moments, strict=True):
            if life is None:
                check_unexpired(expires, present if moment is None else moment)
    for until, begins, created in zip(rows.valid_until, rows.valid_from, rows.created_at, strict=True):
        if until is not None:
            check_order(begins, until, created)


def _check_left_out(rows: RowColumns, vectors: Sequence[Any]) -> None:
    for indexed, vector in zip(rows.indexed, vectors, strict=True):
        if vector is not None and not indexed:
            raise InvalidInput("a vector is given with indexed=False, which recall leaves out: leave one of them out")


def _read_times(rows: RowColumns, reading: Reading, written: Sequence[Any], policy: WritePolicy) -> None:
    """Set the valid times that texts name, seen from where they were `written`, if none is given for the row."""
    for i in np.flatnonzero(reading.may_have_dates).tolist():
        if rows.valid_from[i] is None and rows.valid_until[i] is None:
            kind, text, created = rows.kind[i], rows.text[i], rows.created_at[i]
            named = read_times(kind, text, reading.words(i), created, policy, offset_us(written[i]))
            if named is not None:
                rows.valid_from[i], rows.valid_until[i] = named
                rows.valid_resolved[i] = True


def as_record(row: Row) -> Record:
    """A row that has just been inserted, as its record."""
    return Record(
        id=row.public_id, text=row.text, kind=row.kind, scope=row.scope, context=row.context, tags=row.tags,
        importance=row.importance, pinned=row.pinned, authority=authority_of(row.authority), topic=row.topic,
        source=row.source, position=row.position, created_at=to_datetime(row.created_at),
        valid_from=optional_datetime(row.valid_from), valid_until=optional_datetime(row.valid_until),
        valid_resolved=row.valid_resolved, supersedes=row.supersedes, updated_at=to_datetime(row.updated_at),
        expires_at=optional_datetime(row.expires_at), indexed=row.indexed,
        expires_after=None if row.expires_after is None else timedelta(microseconds=row.expires_after),
        recorded_from=to_datetime(row.recorded_from), embedding_state=row.embedding_state, outcome="created",
        standing=row.standing if row.indexed else None,
        metadata={} if row.metadata is None else msgspec.json.decode(row.metadata),
    )  # fmt: skip


# What a document or procedure says is not about the time at which it was written.
_UNDATED = (CHUNK_KIND, "procedure")


def read_times(
    kind: str, text: str, words: Sequence[str], written_us: int, policy: WritePolicy, offset_us: int = 0
) -> Interval | None:
    """Return the time that a text is about, seen from `written_us` at an offset from UTC.

    None if none is clear or none is looked for.
    """
    if not policy.resolve_dates or kind in _UNDATED:
        return None
    stated = stated_interval(text, words, written_us + offset_us)
    if stated is None or not offset_us:
        return stated
    return Interval(stated.at - offset_us, None if stated.until is None else stated.until - offset_us)
