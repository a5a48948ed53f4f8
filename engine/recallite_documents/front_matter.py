"""A file of Markdown that people wrote: its text, its front matter, and what of that goes with each chunk."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import yaml

from recallite.model.configuration import check_keys_once


def decode(data: bytes) -> tuple[str, str | None]:
    """The text of a file, and what is wrong with it. Bytes that are no character become U+FFFD.

    UTF-8, with or without a byte order mark, and UTF-16 with one.
    """
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    problem = None
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as fault:
        text = data.decode(encoding, errors="replace")
        name = "UTF-16" if encoding == "utf-16" else "UTF-8"
        problem = f"byte {fault.start:,} is not {name}: indexed with � in its place; convert the file"
    if "\x00" in text:
        problem = problem or f"character {text.index(chr(0)):,} is NUL: indexed with � in its place"
        text = text.replace("\x00", "�")
    return text, problem


_MAX_CHARS = 65_536
_MAX_DEPTH = 16
_MAX_INTEGER = 2**63
# Nesting and aliases need marks: with few of them the YAML cannot be a bomb, and is not checked for one.
_SAFE_MARKS = 200
_opening = re.compile(r"\ufeff?(---|\+\+\+)[ \t]*(?:\r\n?|\n)").match


class _Language(NamedTuple):
    """What ends the front matter of a language, what it begins with, where its properties and its other lines begin,
    and what follows the name of a property.
    """

    closing: Callable[..., re.Match[str] | None]
    beginning: Callable[..., re.Match[str] | None]
    properties: Callable[..., Iterator[re.Match[str]]]
    others: Callable[..., Iterator[re.Match[str]]]
    separator: str


_YAML = _Language(
    re.compile(r"(?:(?<=\n)|(?<=\r))(?:---|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)").search,
    # A thematic break looks the same: front matter begins with a key, or a comment before one.
    re.compile(r"\s*+(?:#[^\r\n]*+\s++)*+[\w\"'][^:\r\n]*+:(?:\s|\Z)").match,
    # What may follow a name without a space is no property: "http://...". A list may stand at the margin below it.
    re.compile(r"^(?:[^\W\d_]|\d|[_\"'])[^:\r\n]*+:(?=\s|\Z)", re.MULTILINE).finditer,
    re.compile(r"^(?![\s#\-\]}])(?![^:\r\n]*+:(?:\s|\Z))[^\r\n]", re.MULTILINE).finditer,
    ":",
)
_TOML = _Language(
    re.compile(r"(?:(?<=\n)|(?<=\r))\+\+\+[ \t]*(?:\r\n?|\n|\Z)").search,
    re.compile(r"\s*+(?:#[^\r\n]*+\s++)*+(?:\[|[\w\"'-][^=\r\n]*+=)").match,
    re.compile(r"^[\w\"'-][^=\r\n]*+=", re.MULTILINE).finditer,
    re.compile(r"^(?![\s#\[\]}\"])(?![^=\r\n]*+=)[^\r\n]", re.MULTILINE).finditer,
    "=",
)
_BY_MARK = {"---": _YAML, "+++": _TOML}
_tag_taken_for_comment = re.compile(
    r"^([^\s:#-][^:\r\n]*+:[ \t]+|[ \t]*+-[ \t]+)(#[^\s#'][^'\r\n]*)(?=\r?$)", re.MULTILINE
).sub
_link = re.compile(r"!?\[\[(?:[^\[\]\n|]*\|)?([^\[\]\n|]*)\]\]").sub
_has_words = re.compile(r"\w").search
# Each takes a call of the parser: 1,000 take 0.1 s.
_MOST_READ_ALONE = 1_000


def front_matter(text: str) -> tuple[dict[str, Any], int]:
    """The values of the front matter, and where the body begins; ({}, 0) where there is none.

    Between lines `---` they are JSON values by the rules of YAML 1.2: dates, times and `yes` are strings; between lines
    `+++` those of TOML, dates and times as strings too. If the block is no valid mapping, its properties are read one
    by one. A property that breaks the rules of the language, has aliases or tags (`!!int`), or is nested deeper than
    16, has the text that stands there as its value, as have the tags `#a #b`, which YAML takes for a comment. A block
    longer than 65,536 characters, or most of whose lines begin no property, is left in the body.
    """
    span = front_matter_span(text)
    if span is None:
        return {}, 0
    begin, close, end = span
    source = text[begin:close]
    language = _YAML if "---" in text[:begin] else _TOML
    values = _mapping(source, language)
    begins = [match.start() for match in language.properties(source)] if values is None else []
    # A text that only looks like properties has more lines that are none.
    if begins and sum(1 for _ in language.others(source)) < len(begins):
        values = {}
        for begin, stop in pairwise([*begins, len(source)]):
            part = source[begin:stop]
            read = _mapping(part, language) if len(begins) <= _MOST_READ_ALONE else None
            name, _, value = part.partition(language.separator)
            values |= read if read is not None else {_string(name.strip(" \t\"'")): _string(" ".join(value.split()))}
    if values and language is _YAML and "#" in source:
        said = _mapping(_tag_taken_for_comment(r"\1'\2'", source), language) or {}
        values |= {
            name: said[name]
            for name, value in values.items()
            if said.get(name) and (value is None or (isinstance(value, list) and None in value))
        }
    return (values, end) if values else ({}, 0)


def _mapping(source: str, language: _Language) -> dict[str, Any] | None:
    """The values of a mapping in a language; None for anything else."""
    try:
        if language is _TOML:
            values: dict[str, Any] = _plain(tomllib.loads(source), 0)
            return values
        if "*" in source or "!" in source or sum(map(source.count, "-:?[{")) > _SAFE_MARKS:
            # Aliases expand without limit, deep nesting recurses, tags call constructors.
            depth = 0
            for event in yaml.parse(source, _Loader):
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None) or depth > _SAFE_MARKS:
                    return None
        loaded = yaml.load(source, _Loader)
        return _plain(loaded, 0) if isinstance(loaded, dict) else None
    except Exception:  # any fault of the library: a malicious file fails only its own front matter
        return None


def properties_text(values: Mapping[str, Any], *, without: Collection[str] = ()) -> str:
    """Properties as text, "name: value; name: value, value", except for these names and for empty values.

    Links are written as the names that they show.
    """
    texts = [(name, _text(value)) for name, value in values.items() if name.casefold() not in without]
    return "; ".join(f"{' '.join(name.split())}: {text}" for name, text in texts if text)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {text}" for name, inner in value.items() if (text := _text(inner)))
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value)))
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    text = " ".join(_link(r"\1", str(value)).split())
    return text if _has_words(text) else ""


def front_matter_span(text: str) -> tuple[int, int, int] | None:
    """Return the offsets of the block's begin and end and of the body's begin; None without front matter."""
    opening = _opening(text)
    if opening is None:
        return None
    language = _BY_MARK[opening[1]]
    # A line more than is accepted: the pattern must not take the end of the search for the end of the text.
    close = language.closing(text, opening.end(), opening.end() + _MAX_CHARS + 80)
    if close is None or close.start() > opening.end() + _MAX_CHARS:
        return None
    if not language.beginning(text, opening.end(), close.start()):
        return None
    return opening.end(), close.start(), close.end()


def read_block(source: str) -> dict[str, Any]:
    """The values of front matter that must be a mapping in YAML.

    Raises ValueError, also for aliases, keys given twice and comments, which `write_block` would not write again.
    """
    try:
        end = 0
        for token in yaml.scan(source, _Loader) if "#" in source else ():
            if "#" in source[end : token.start_mark.index]:
                raise ValueError("a comment would be lost: write it into the text")
            end = token.end_mark.index
        loader = _Loader(source)
        node = loader.get_single_node()
        check_keys_once(node, set())
        values = loader.construct_document(node)
    except yaml.YAMLError as fault:
        raise ValueError(" ".join(str(fault).split())) from None
    if not isinstance(values, dict):
        raise ValueError("it is no mapping")
    return values


def write_block(values: Mapping[str, Any]) -> str:
    """The YAML of front matter that `read_block` reads."""
    block: str = yaml.dump(
        dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=2**31 - 1
    )
    return block


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.2's core schema: YAML 1.1 makes 12:30 the number 750 and `no` false."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]{1,20}|(?:0|[1-9][0-9]{0,17})\.[0-9]{0,20})(?:[eE][-+]?[0-9]{1,2})?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), ["" if c == "\0" else c for c in _first]
    )


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes plainly what `_Loader` reads as a string."""

    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers

    def ignore_aliases(self, data: object) -> bool:
        return True


def _plain(value: Any, depth: int) -> Any:
    """The value as JSON, with string keys."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"nested deeper than {_MAX_DEPTH}")
    if isinstance(value, dict):
        return {_string(key): _plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, depth + 1) for inner in value]
    # TOML has dates, times, numbers that are none and whole ones of any length.
    is_whole = isinstance(value, int) and abs(value) < _MAX_INTEGER
    is_json = value is None or is_whole or (isinstance(value, float) and math.isfinite(value))
    return value if is_json else _string(value)


def _string(value: Any) -> str:
    return str(value).encode("utf-8", "replace").decode().replace("\x00", "�")


# Limits on the title, headings and metadata that are stored with each chunk of a document.
_MOST_CONTEXT_CHARS = 400
_MOST_NAME_CHARS = 200
_MOST_VALUE_BYTES = 2_000
# 60 KB of front matter stored with each of 1,500 chunks took 93 MB.
_MOST_VALUES_BYTES = 4_000


def short_name(text: str) -> str:
    """A title or heading of at most 200 characters, without NUL."""
    return text.replace("\x00", "�").strip()[:_MOST_NAME_CHARS].rstrip()


def short_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The values of at most 2,000 bytes as JSON each, in order, up to 4,000 bytes in all."""
    short, left = {}, _MOST_VALUES_BYTES
    for name, value in metadata.items():
        size = len(msgspec.json.encode({name: value}))
        if size <= min(left, _MOST_VALUE_BYTES):
            short[name] = value
            left -= size
    return short


def context_of(title: str | None, headings: Sequence[str], properties: str = "") -> str | None:
    """Title and headings as a context of at most 400 characters; a title equal to the first heading is left out.

    What the front matter says follows in brackets.
    """
    path = [heading for heading in headings if heading.strip()]
    if title is not None and path[:1] != [title]:
        path.insert(0, title)
    context = " > ".join(path)[:_MOST_CONTEXT_CHARS].rstrip()
    if properties:
        context = f"{context} ({properties})" if context else properties
    return context or None
