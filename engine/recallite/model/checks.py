"""Argument checks that reading and writing share. Each error names the value and the remedy.

Times may be as people write them: "7d" (seven days ago), "yesterday", "2026-01".
"""

from __future__ import annotations

import math
import os
import re
import time
import unicodedata
from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from recallite.errors import InvalidInput
from recallite.system import plugins
from recallite.system.messages import readable, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Choice = TypeVar("Choice", bound=str)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LENGTH = re.compile(r"([0-9]{1,9}(?:[.][0-9]{1,9})?) ?(m|h|d|w|(?:minute|hour|day|week)s?)(?: ago)?")
_MONTH = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
EXAMPLES = "'2026-03-01T09:30:00+00:00', '2026-03-01', '2026-03', 'yesterday' or '7d'"


class Period(Struct, frozen=True):
    """A day, month or year; its end may be that of the calendar."""

    begin: datetime
    length: timedelta


def length_of(text: str) -> timedelta | None:
    """Return the length of "30d", "2 hours" or "1.5w"; None for another text. Raises OverflowError."""
    parts = _LENGTH.fullmatch(text.strip().lower())
    return None if parts is None else timedelta(**{_UNITS[parts[2][0]]: float(parts[1])})


def named_time(text: str) -> datetime | Period | None:
    """Return the moment, or the day, month or year (UTC), that a text means today; None for another text.

    A length is that long ago. Raises ValueError or OverflowError.
    """
    text = text.strip().lower()
    now = datetime.now(UTC)
    if text == "now":
        return now
    if text in _DAYS:
        return day_of(now.date() + timedelta(_DAYS[text]))
    if month := _MONTH.fullmatch(text):
        year, number = int(month[1]), int(month[2] or 1)
        days = sum(monthrange(year, counted)[1] for counted in ((number,) if month[2] else range(1, 13)))
        return Period(datetime(year, number, 1, tzinfo=UTC), timedelta(days))
    length = length_of(text)
    return None if length is None else now - length


def day_of(day: date) -> Period:
    """Return a day of UTC."""
    return Period(datetime(day.year, day.month, day.day, tzinfo=UTC), timedelta(1))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
EARLIEST_US = (datetime.min.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
LATEST_US = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
_DATE_CHARS = 10
ENDS = ("valid_until", "expires_at", "held_until", "recorded_until")
"""Fields with the first moment after: a day alone means the first moment of the next."""
LAST = ("until", "as_of", "valid_at")
"""Arguments with the last moment that counts: a day alone means its last."""
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # of two letters at least: C:// is a drive
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_NAME_CHARS = 512
MAX_METADATA_BYTES = 1_000_000
MAX_QUERY_CHARS = 100_000
MAX_ITEMS = 1_000_000
MAX_PATH_CHARS = 4_096
_MAX_JSON_DEPTH = 64


def plain_str(text: str) -> str:
    """Return `text` as a plain str: SQLite and JSON take no subclass, as of a StrEnum."""
    return text if type(text) is str else str.__str__(text)


def encodable(text: str, name: str) -> str:
    """`text`, if it can be stored as UTF-8: no NUL, no lone surrogates."""
    if "\x00" in text:
        raise InvalidInput(f"{name} holds a NUL character at {text.index(chr(0))}: remove it", "text")
    if not text.isascii() and (surrogate := _SURROGATE.search(text)):
        raise InvalidInput(
            f"{name} holds a lone surrogate at {surrogate.start()}, which is no character: "
            "decode the bytes with errors='replace'",
            "text",
        )
    return text


def check_text(text: object, max_chars: int, name: str = "text") -> str:
    """A text to remember: a non-blank `str` of at most `max_chars` characters."""
    if not isinstance(text, str):
        raise InvalidInput(f"{name} is {type(text).__name__} {shown(text)}: give a str", "text")
    text = plain_str(text)
    if len(text) > max_chars:
        raise InvalidInput(
            f"{name} has {len(text):,} characters and the limit is {max_chars:,}: "
            "split it, or raise Settings(max_text_chars=...)",
            "text",
        )
    if not text.strip():
        raise InvalidInput(f"{name} is {shown(text)}: there is nothing to remember in an empty or blank text", "text")
    return encodable(text, name)


def check_str(value: object, name: str) -> str:
    """The value, if it is a str."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {shown(value)}: give a str")
    return value


def check_query(query: object, name: str = "query") -> str:
    """A query: any `str` of at most `MAX_QUERY_CHARS` characters; characters that cannot be encoded are replaced."""
    if not isinstance(query, str):
        raise InvalidInput(f"{name} is {type(query).__name__} {shown(query)}: give a str", "text")
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidInput(
            f"{name} has {len(query):,} characters and the limit is {MAX_QUERY_CHARS:,}: ask by a part of it", "text"
        )
    return readable(plain_str(query))


def check_name(value: object, name: str) -> str:
    """A short label (kind, tag, topic, source): non-empty, no control characters."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name} is {shown(value)}: give a non-empty str")
    value = plain_str(value)
    if value.isascii() and value.isprintable() and len(value) <= MAX_NAME_CHARS:
        return value
    if len(value) > MAX_NAME_CHARS:
        raise InvalidInput(f"{name} has {len(value):,} characters: the limit is {MAX_NAME_CHARS}")
    encodable(value, name)
    if _CONTROL.search(value):
        raise InvalidInput(f"{name} {shown(value)} holds a control character: remove it")
    return value


def check_tags(tags: object) -> tuple[str, ...]:
    """Tags in the order given, each once, in normal form C: a keyboard and a file system may write one differently."""
    if isinstance(tags, str):
        raise InvalidInput(f"tags is the str {shown(tags)}: give a list, e.g. tags=[{shown(tags)}]")
    names = (check_name(tag, "a tag") for tag in check_list(tags, "tags"))
    return tuple(dict.fromkeys(unicodedata.normalize("NFC", name) for name in names))


def check_list(values: object, name: str) -> list[Any]:
    """The items of an iterable other than a str, bytes or a mapping."""
    if (type(values) is list or type(values) is tuple) and len(values) <= MAX_ITEMS:
        return [*values]
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | bytearray | Mapping):
        try:
            walk = iter(values)
        except TypeError:  # a NumPy array without a dimension
            pass
        else:
            items = list(islice(walk, MAX_ITEMS + 1))
            if len(items) > MAX_ITEMS:
                raise InvalidInput(f"{name} has more than {MAX_ITEMS:,} items: give them in parts")
            return items
    raise InvalidInput(f"{name} is {shown(values)}: give a list of str")


def as_list(values: object, name: str, *, single: bool = True) -> list[str]:
    """A list of str; a lone str becomes one where `single` allows it."""
    if isinstance(values, str) and single:
        return [values]
    return check_list(values, name)


def check_stream(items: object) -> None:
    """Raise InvalidInput unless these may be many memories; an array without a dimension has none."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable) or getattr(items, "ndim", 1) == 0:
        raise InvalidInput(f"items is {shown(items)}: give a list or a stream of memories")


def check_scope(scope: object) -> str:
    """A scope: `/` or `/a/b`, absolute, without empty, `.` or `..` segments."""
    if not isinstance(scope, str):
        raise InvalidInput(f"scope is {shown(scope)}: give a path such as '/team/project'", "filter")
    return "/" if scope == "/" else _check_absolute(plain_str(scope))


@lru_cache(maxsize=4096)
def _check_absolute(scope: str) -> str:
    if not scope.startswith("/"):
        raise InvalidInput(f"scope {shown(scope)} is not absolute: write {shown('/' + scope)}", "filter")
    if len(scope) > MAX_NAME_CHARS:
        raise InvalidInput(f"scope has {len(scope):,} characters: the limit is {MAX_NAME_CHARS}", "filter")
    if _CONTROL.search(scope) or _SURROGATE.search(scope):
        raise InvalidInput(f"scope {shown(scope)} holds a control character or a lone surrogate: remove it", "filter")
    for segment in scope[1:].split("/"):
        if segment != segment.strip() or segment in ("", ".", ".."):
            raise InvalidInput(
                f"scope {shown(scope)} has the segment {shown(segment)}: segments are non-empty, without "
                "surrounding spaces, and neither '.' nor '..'; no slash at the end",
                "filter",
            )
    return scope


def join_scopes(base: str, scope: str | None) -> str | None:
    """The absolute path of a scope given to a handle bound to `base`: `/x` inside `/a` is `/a/x`."""
    if base == "/":
        return None if scope is None else check_scope(scope)
    if scope is None or (isinstance(scope, str) and scope == "/"):
        return base
    return base + check_scope(scope)


def is_shared(seen: str) -> bool:
    """Whether a scope, as a handle shows it, is one that the handle only reads; no scope that is given looks so."""
    return seen.startswith("//")


def check_agent(agent: object) -> str:
    """An agent id: one segment of a scope."""
    name = check_name(agent, "agent")
    if "/" in name or name in (".", "..") or name != name.strip():
        raise InvalidInput(
            f"agent is {shown(agent)}: an agent id is one name without '/' or surrounding spaces, and not '.' or '..'"
        )
    return name


def number_of(value: object) -> int | float | None:
    """A number, of NumPy too, as a plain int or float; None for what is none, as a bool."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    with suppress(OverflowError):  # a fraction of more than 308 digits
        return int(value) if isinstance(value, Integral) else float(value)
    return None


def check_unit(value: object, name: str) -> float:
    """A number in [0, 1]."""
    number = number_of(value)
    if number is None or not 0.0 <= number <= 1.0:
        raise InvalidInput(f"{name} is {shown(value)}: give a number from 0 to 1")
    return float(number)


def check_finite(value: object, name: str, *, minimum: float = -math.inf) -> float:
    """A finite number of at least `minimum`."""
    number = number_of(value)
    with suppress(OverflowError):  # a whole number of more than 308 digits
        if number is not None and math.isfinite(number) and number >= minimum:
            return float(number)
    floor = "" if minimum == -math.inf else f" of at least {minimum:g}"
    raise InvalidInput(f"{name} is {shown(value)}: give a finite number{floor}")


def check_flag(value: object, name: str) -> bool:
    """Return the value if it is a bool; 0 and 1 are none."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} is {shown(value)}: give True or False")
    return value


def check_choice(value: object, name: str, choices: Sequence[Choice]) -> Choice:
    """Return the value as a plain str if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        *first, last = map(repr, choices)
        raise InvalidInput(f"{name} is {shown(value)}: use {', '.join(first)}{' or ' if first else ''}{last}")
    return choices[choices.index(value)]


def check_count(value: object, name: str, *, minimum: int = 1, maximum: int = 2**62) -> int:
    """A whole number from `minimum` to `maximum`."""
    number = number_of(value)
    if not isinstance(number, int) or number < minimum:
        raise InvalidInput(f"{name} is {shown(value)}: give a whole number of at least {minimum}")
    if number > maximum:
        raise InvalidInput(f"{name} is {shown(value)}: it is too large, at most {maximum:,}")
    return number


def check_time(value: object, name: str) -> int | None:
    """The moment that the field `name` gets, as microseconds since 1970 UTC.

    `value` is an aware datetime, a date, None, or a text: ISO 8601, or relative to now: "7d" is seven days ago. A day,
    month ("2026-01") or year alone is its end for the fields of `ENDS` and `LAST`, and its first moment for others.
    """
    if value is None:
        return None
    first, last = moments_of(value, name, name)
    return last if name in ENDS or name in LAST else first


def moments_of(value: object, name: str, field: str) -> tuple[int, int]:
    """The first and last moment that are of a time, as `check_time` takes it: of a day alone, all of that day.

    What ends with a day ends after its first moment, and no later than at the first of the next.
    """
    moment = _moment(value, name) if isinstance(value, str) else value
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = day_of(moment)
    length = 0
    if isinstance(moment, Period):
        length, moment = moment.length // _MICROSECOND, moment.begin
    if not isinstance(moment, datetime):
        raise InvalidInput(f"{name} is {shown(value)}: give a datetime or a text, e.g. {EXAMPLES}")
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInput(
            f"{name} {shown(str(moment))} has no time zone, so its moment is unknown: "
            "use datetime.now(timezone.utc) or add an offset such as '+00:00'"
        )
    begin = (moment - EPOCH) // _MICROSECOND
    if not EARLIEST_US <= begin <= LATEST_US:
        raise InvalidInput(f"{name} {shown(str(moment))} is outside the years 1 to 9999 in UTC")
    if not length:
        return begin, begin
    ends = field in ENDS
    return begin + ends, min(begin + length - 1 + ends, LATEST_US)


def offset_us(value: object) -> int:
    """The microseconds by which the zone of a time is ahead of UTC: 0 for one that names none."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    offset = value.utcoffset() if isinstance(value, datetime) else None
    return 0 if offset is None else offset // _MICROSECOND


def time_or(value: object, name: str, otherwise: int) -> int:
    """A moment as `check_time` takes it; `otherwise` for None."""
    moment = check_time(value, name)
    return otherwise if moment is None else moment


def _moment(text: str, name: str) -> object:
    try:
        return (date if len(text) <= _DATE_CHARS else datetime).fromisoformat(text)
    except ValueError:
        with suppress(ValueError, OverflowError):
            if (moment := named_time(text)) is not None:
                return moment
        raise InvalidInput(f"{name} {shown(text)} is not a time: write e.g. {EXAMPLES}") from None


def to_datetime(microseconds: int) -> datetime:
    """The UTC datetime of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=microseconds)


def optional_datetime(microseconds: int | None) -> datetime | None:
    """`to_datetime`, or None for None."""
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def now_us() -> int:
    """The current time in microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def check_metadata(metadata: object) -> dict[str, Any]:
    """A copy of metadata: a JSON object of at most 1 MB as text; NaN, bytes and the like are refused."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata is {shown(metadata)}: give a dict with str keys")
    copied: dict[str, Any] = check_json_copy(metadata, "metadata", MAX_METADATA_BYTES)
    return copied


def check_json_copy(value: object, name: str, max_bytes: int) -> Any:
    """A copy of `value` as JSON keeps it: tuples become lists, subclasses their base; otherwise as `check_json`."""
    import msgspec

    return msgspec.json.decode(check_json(value, name, max_bytes))


def check_json(value: object, name: str, max_bytes: int) -> str:
    """`value` as JSON text of at most `max_bytes`; NaN, bytes, sets and the like are refused."""
    import json

    _check_json(value, name, 0)
    text = json.dumps(value, ensure_ascii=False, default=json_value)
    size = len(text.encode())
    if size > max_bytes:
        raise InvalidInput(f"{name} has {size:,} bytes as JSON: the limit is {max_bytes:,}")
    return text


def json_value(value: Any) -> object:
    """Return the dict or plain number that stands in JSON for a mapping or a number of NumPy."""
    number = number_of(value)
    return dict(value) if number is None else number


def _check_json(value: object, path: str, depth: int) -> None:
    if depth > _MAX_JSON_DEPTH:
        raise InvalidInput(f"{path} is nested more than {_MAX_JSON_DEPTH} deep")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        encodable(value, path)
    elif isinstance(number := number_of(value), int):
        if not -(2**63) <= number < 2**63:
            raise InvalidInput(f"{path} is {shown(value)}: whole numbers have at most 64 bits; write it as a str")
    elif number is not None:
        if not math.isfinite(number):
            raise InvalidInput(f"{path} is {value}: JSON has no such number")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidInput(f"{path} has the key {shown(key)}: keys are str")
            encodable(key, f"a key of {path}")
            _check_json(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            _check_json(item, f"{path}[{i}]", depth + 1)
    else:
        raise InvalidInput(
            f"{path} is {type(value).__name__} {shown(value)}: use str, numbers, bool, None, lists, dicts"
        )


def is_address(path: object) -> bool:
    """Whether a path is the address of a store: scheme://... with a scheme that a package registers."""
    match = _ADDRESS.match(path) if isinstance(path, str) else None
    return match is not None and plugins.registered_name("stores", match[1]) is not None


def check_path(path: object, name: str = "path") -> Path:
    """The absolute path, with `~` expanded; the disk is not accessed.

    Raises InvalidInput unless it is a non-blank str or os.PathLike of str, without NUL, that the file system can
    encode, for the address of a server, and for `~name` of an unknown user.
    """
    text: object = path
    if isinstance(path, os.PathLike):
        try:
            text = os.fspath(path)
        except Exception:  # a foreign __fspath__
            text = None
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"{name} is {shown(path)}: give a path")
    text = str.__str__(text)
    if is_address(text):  # not repeated: it may have a password
        raise InvalidInput(f"{name} is the address of a server, and has to be a file or folder here")
    if "\x00" in text:
        raise InvalidInput(f"{name} is {shown(text)}: a path has no NUL")
    if len(text) > MAX_PATH_CHARS:
        raise InvalidInput(f"{name} has {len(text):,} characters: a path has at most {MAX_PATH_CHARS:,}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as fault:
        raise InvalidInput(f"{name} is {shown(text)}, which no file can be called: {fault.reason}") from None
    try:
        return Path(text).expanduser().absolute()
    except (RuntimeError, OSError) as fault:  # no such user, or a working directory that is gone
        raise InvalidInput(f"{name} is {shown(text)}: {fault}") from None


MAX_PARTS = 1_000
"""Vectors of one record."""


def check_vector(vector: object, dimension: int | None, name: str = "vector") -> NDArray[np.float32]:
    """One unit float32 vector of `dimension` components; NaN, infinity and all zeros are refused."""
    import numpy as np

    try:
        values = np.asarray(vector)
        if values.dtype.kind not in "biuf":
            raise TypeError
        array = values.astype(np.float64)  # the squares of large float32 components overflow
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"{name} is {type(vector).__name__} {shown(vector)}: give a sequence of numbers", "vector"
        ) from None
    if not array.size:
        raise InvalidInput(f"{name} is empty: give a sequence of numbers", "vector")
    if array.ndim != 1 or (dimension is not None and array.shape[0] != dimension):
        expected = "one dimension" if dimension is None else f"shape ({dimension},)"
        raise InvalidInput(f"{name} has shape {array.shape}: this store takes {expected}", "vector")
    if values.dtype == np.float32 and 0.0 < (square := float(array @ array)) < math.inf:
        plain: NDArray[np.float32] = (array / math.sqrt(square)).astype(np.float32)
        return plain
    peak = float(np.abs(array).max())
    if not peak < math.inf:  # NaN too
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InvalidInput(f"{name} holds {array[bad]} at {bad}: every component is a finite number", "vector")
    if peak == 0.0:
        raise InvalidInput(f"{name} is all zeros, which has no direction: leave it out to embed the text", "vector")
    array /= peak
    unit: NDArray[np.float32] = (array / math.sqrt(array @ array)).astype(np.float32)
    return unit


def check_vectors(vector: object, dimension: int | None, name: str = "vector") -> NDArray[np.float32]:
    """The vectors of a record as unit float32 (parts, dimension): one as `check_vector` takes it, or several."""
    import numpy as np

    if isinstance(vector, np.ndarray):
        several = vector.ndim == 2
    else:
        inner = vector[0] if isinstance(vector, list | tuple) and vector else None
        several = isinstance(inner, np.ndarray | list | tuple)
    if not several:
        return check_vector(vector, dimension, name)[None]
    parts = check_list(vector, name)
    if not 0 < len(parts) <= MAX_PARTS:
        raise InvalidInput(f"{name} has {len(parts):,} vectors: give at least one and at most {MAX_PARTS}", "vector")
    first = check_vector(parts[0], dimension, f"{name}[0]")
    rest = [check_vector(part, len(first), f"{name}[{i}]") for i, part in enumerate(parts[1:], 1)]
    return np.stack([first, *rest])
