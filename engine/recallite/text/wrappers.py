"""Wrappers of recalled text (list marks, brackets, tags, scores), read as claims about a memory.

A claim is a field with a value. Text that cannot be parsed is read as the claim of a tag, which is false of nearly
every memory, so that a wrapper with new information makes the text new.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from recallite.text.lazy_patterns import lazily
from recallite.text.quoting import NOTICE

Claim = tuple[str, Any]
"""A field of a memory, and its value according to a wrapper."""

_Wrapper = tuple[Callable[[str], re.Match[str] | None], Callable[[str], list[Claim]] | None]


_ELEMENTS = r"(?:(?:recalled[-_])?memor(?:y|ies)|recall|recalled|hits?|results?|quoted?|records?|items?|context|data)"
_TAG = rf"</?{_ELEMENTS}(\s[^<>]{{0,300}})?/?>"
_ATTRIBUTE = lazily(r"(?<![\w-])([\w-]++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>]+))")
_NUMBERED = r"(?:score|confidence|relevance|similarity|importance)"
_LABELLED_SCORE = rf"{_NUMBERED}\s*[:=]\s*\d+(?:\.\d+)?\s?%?"
# Wrappers that are removed from each end of a line.
_MOST_WRAPPERS = 6
# Two decimals at least: "0.5 litres of milk" is a measure.
_BARE_SCORE = r"(?:0?\.\d{2,}|1\.00+)"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?"
_PATH = r"/[\w./-]*"
_PIECE = rf"(?:{_LABELLED_SCORE}|{_BARE_SCORE}|{_UUID}|{_DATE}|{_PATH})"

_MARKS = lazily(
    r"(?:(?:[-*•·‣◦–—>]+|#{1,6}|\(?\d{1,3}[.):]|\[\d{1,3}\])\s+|(?:from |recalled )?memory(?:\s+#?\d{1,3})?\s*:\s+)",
    re.IGNORECASE,
)
_HEAD_TAG = lazily(rf"{_TAG}\s*", re.IGNORECASE)
_TAIL_TAG = lazily(rf"{_TAG}$", re.IGNORECASE)
_HEAD_PIECE = lazily(rf"({_PIECE})(?:\s*[-–—:,|]\s+|\s+)", re.IGNORECASE)
_TAIL_SCORE = lazily(rf"[-–—:,|]\s*{_LABELLED_SCORE}$", re.IGNORECASE)
_HEAD_BRACKET = lazily(r"(?:\[([^\[\]]{1,300})\]|\(([^()]{1,300})\))\s*(?:[-–—:,|]\s+)?")
_TAIL_BRACKET = lazily(r"(?:[-–—:,|]\s*)?(?:\[([^\[\]]{1,300})\]|\(([^()]{1,300})\))$")

_BRACKET_PARTS = lazily(
    rf"""[\s,;|·•]+
    |(?P<silent>(?:{_NUMBERED}(?:\s*+[:=]\s*+|\s++)\d+(?:\.\d+)?\s?%?|{_BARE_SCORE}|from\ memory
       |(?:memory|hit)\s*\#?\d{{1,3}})(?=[\s,;|·•]|$))
    |(?:(?P<name>id|scope|kind|topic|source|tags?|match_reasons|(?:created|event|updated|accessed)(?:_at)?)\s*[:=]\s*)?
       "?(?P<value>{_UUID}|{_DATE}|{_PATH})"?(?=[\s,;|·•]|$)
    |(?P<field>id|kind|topic|source|tags?|match_reasons)\s*[:=]\s*(?:"(?P<quoted>[^"]*)"|(?P<bare>[^;|·•]+))
    |(?P<rest>[^,;|·•]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_LISTED = {"tag": "tags", "tags": "tags", "match_reasons": "match_reasons"}

# The words of a line that only announces quotes, and those of which it has one. Words of time, person and truth are not
# among them: "Previously:", "From Bob:".
_ANNOUNCED = frozenset(["context", "facts", "hits", "items", "memories", "memory", "recall", "records", "results"])
_AROUND = """
    a about all and are following for found from have here i in is known matching me my of quoted recalled relevant
    remember remembered retrieved search stored that the these this to what your
"""
_ANNOUNCING = _ANNOUNCED.union(_AROUND.split())
_HEADING = lazily(r"(?:#{1,6}\s.*|.*:|[*_]{2}.*[*_]{2})")
_RULE = lazily(r"(?:-{3,}|={3,}|\*{3,}|`{3}(?:json|text|txt|md|markdown)?)", re.IGNORECASE)
_HEADING_PARTS = lazily(r"[^\W\d_]+|\d+|[^\s\w]|_")
_HEADING_MARKS = frozenset("#:*_-.,")


def stripped_head(line: str) -> Iterator[tuple[str, list[Claim]]]:
    """A line with each amount of wrapping removed from its beginning: the rest, and the claims removed."""
    wrappers = ((_MARKS.match, None), (_HEAD_TAG.match, _attributes), (_HEAD_PIECE.match, bracket_claims),
                (_HEAD_BRACKET.match, bracket_claims))  # fmt: skip
    return _stripped(line, wrappers)


def stripped_tail(line: str) -> Iterator[tuple[str, list[Claim]]]:
    """A line with each amount of wrapping removed from its end: the rest, and the claims removed."""
    wrappers = ((_TAIL_TAG.search, _attributes), (_TAIL_SCORE.search, None), (_TAIL_BRACKET.search, bracket_claims))
    return _stripped(line, wrappers)


def _stripped(line: str, wrappers: Sequence[_Wrapper]) -> Iterator[tuple[str, list[Claim]]]:
    claims: list[Claim] = []
    yield line, claims
    for _ in range(_MOST_WRAPPERS):
        for find, claims_of in wrappers:
            if match := find(line):
                wrapper_claims = claims_of(next(filter(None, match.groups()), "")) if claims_of is not None else []
                break
        else:
            return
        line = line[match.end() :] if match.start() == 0 else line[: match.start()].rstrip()
        claims = [*claims, *wrapper_claims]
        if not line.strip():
            return
        yield line, claims


def bracket_claims(words: str) -> list[Claim]:
    """The claims of a bracket, or a column, before or after a text."""
    claims: list[Claim] = []
    silent = False
    for part in _BRACKET_PARTS.finditer(words):
        if part["silent"]:
            silent = True
        elif part["value"]:
            claims.append(((part["name"] or _sort_of(part["value"])).lower(), part["value"]))
        elif part["field"]:
            claims.append(_field_claim(part["field"].lower(), (part["quoted"] or part["bare"] or "").strip()))
        elif part["rest"]:
            claims.append(("tags", [part["rest"].strip()]))
    return claims if claims or silent else [("tags", [words])]


def announced(line: str) -> list[Claim] | None:
    """The claims of a line that only announces or ends quotes; None for any other line."""
    claims: list[Claim] = []
    begin = 0
    while match := _HEAD_TAG.match(line, begin):
        claims += _attributes(match[1] or "")
        begin = match.end()
    rest = line[begin:]
    if not rest or rest == NOTICE or _RULE.fullmatch(rest):
        return claims
    if _HEADING.fullmatch(rest) is None:
        return None
    parts = _HEADING_PARTS.findall(rest.casefold())
    plain = all(part in _ANNOUNCING or part in _HEADING_MARKS or (part.isdigit() and len(part) < 4) for part in parts)
    return claims if plain and not _ANNOUNCED.isdisjoint(parts) else None


def _attributes(words: str) -> list[Claim]:
    words = words.strip().removesuffix("/")
    claims = [_field_claim(name.lower(), "".join(values)) for name, *values in _ATTRIBUTE.findall(words)]
    rest = _ATTRIBUTE.sub(" ", words).strip()
    return [*claims, ("tags", [rest])] if rest else claims


def _field_claim(name: str, value: str) -> Claim:
    listed = _LISTED.get(name)
    return (listed, [item.strip() for item in value.split(",")]) if listed else (name, value)


def _sort_of(value: str) -> str:
    if value.startswith("/"):
        return "scope"
    return "date" if re.fullmatch(_DATE, value) else "id"
