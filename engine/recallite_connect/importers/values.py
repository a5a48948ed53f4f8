"""Make fields of a memory from values of other systems: what no field takes is put right, or left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from recallite.text.dates.written import read_written

_MAX_LABEL_CHARS = 200
_MAX_SEGMENT_CHARS = 100
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def cleaned(text: str) -> str:
    """A text with U+FFFD for NUL and lone surrogates."""
    # The expression reads 40 MB a second, these two 1 GB.
    if "\0" not in text:
        with suppress(UnicodeEncodeError):
            _ = text.isascii() or text.encode()
            return text
    return _UNREADABLE.sub("\ufffd", text)


def cleaned_json(value: Any) -> Any:
    """A value of JSON whose texts, and keys, are `cleaned`; what is no JSON in it stays as it is."""
    if isinstance(value, str):
        return cleaned(value)
    if isinstance(value, Mapping):
        return {cleaned_json(name): cleaned_json(inner) for name, inner in value.items()}
    return [*map(cleaned_json, value)] if isinstance(value, list | tuple) else value


def label_of(value: object) -> str | None:
    """A tag, topic, context or source: a line of at most 200 characters; None for what is blank or no text."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    return _CONTROL.sub(" ", cleaned(str(value))).strip()[:_MAX_LABEL_CHARS].rstrip() or None


def tags_of(values: object) -> tuple[str, ...]:
    """The tags of a list, each once; a text is tags with commas or white space between."""
    if isinstance(values, str):
        values = values.replace(",", " ").split()
    tags = map(label_of, values) if isinstance(values, Iterable) else ()
    return tuple(dict.fromkeys(tag.removeprefix("#") for tag in tags if tag and tag != "#"))


def scope_of(*names: object) -> str:
    """The scope of these names, one below the other; those that are blank are left out."""
    segments = (_CONTROL.sub(" ", cleaned(str(name))) for name in names if name is not None)
    plain = (re.sub(r"[/\\]+", "-", segment).strip()[:_MAX_SEGMENT_CHARS].strip() for segment in segments)
    return "/" + "/".join("-" if segment in (".", "..") else segment for segment in plain if segment)


def time_of(
    value: object, *, end: bool = False, day_first: Callable[[], bool | None] = lambda: None
) -> datetime | None:
    """The moment that a value means, or the end of the day that it names; see `readings_of`.

    None for what is no time, or has two readings that `day_first`, which is asked then, does not decide.
    """
    written = read_written(value, day_first)
    return None if written is None else written.end if end else written.begin


def text_of(value: object) -> str:
    """A text that a store can hold, without white space around it; empty for what is no text."""
    return cleaned(value).strip() if isinstance(value, str) else ""


def shown_name(path: str) -> str:
    """The path of a file as reports show it, with U+FFFD for what a terminal does not print."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in path)


def mapping(value: object) -> dict[str, Any]:
    """The value if it is an object of JSON, else an empty one."""
    return value if isinstance(value, dict) else {}


def array(value: object) -> list[Any]:
    """The value if it is an array of JSON, else an empty one."""
    return value if isinstance(value, list) else []


def labels(**fields: object) -> dict[str, Any]:
    """The fields that are numbers, or texts that are not blank, as metadata."""
    values = {name: value if isinstance(value, int) else label_of(value) for name, value in fields.items()}
    return {name: value for name, value in values.items() if value is not None}
