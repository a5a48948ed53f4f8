"""Recognising text that a recall returned: whole texts of memories, in bullets, quote marks, scores and provenance."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Sequence

from msgspec import Struct

from recollect.text.normalise import text_key
from recollect.text.quoting import unquoted

__all__ = ["Quotation"]

# Longer texts are recognised as a whole only.
_MOST_CHARS = 50_000
_MOST_LINES = 300
# A memory of more lines is recognised only where it stands alone.
_MOST_LINES_EACH = 12


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What may stand in a bracket, a tag or a line about a memory without saying anything of its own: "outdated" may not.
_ABOUT = _words(
    """
    a about accessed agent and are as at be below by cited confidence context created data date document event facts
    following for found from have here hit hits i id importance in instructions is item items kind known match
    matched me memories memory my of on or past previous previously quote quoted recall recalled record relevance
    relevant remember remembered result results retrieved role scope score scored search similarity source stored
    tag tags text that the they these this time to topic trust trusted untrusted user was were what with you your
    """
)
# The fields of a result in JSON; one with others says something of its own.
_FIELDS = _words(
    """
    accessed_at confidence content context created_at event_at evidence_gaps id importance kind left_out
    match_reasons metadata notice position query results hits scope score signals source sub_queries tags text topic
    updated_at
    """
)
_ELEMENTS = r"(?:memor(?:y|ies)|recalled|recall|hits?|results?|quoted?|records?|items?|context|documents?|data)"
_TAG = rf"</?{_ELEMENTS}(?:[\s_-][^<>]{{0,300}})?>"
_SCORE = r"(?:score|confidence|relevance|similarity)?\s*[:=]?\s*(?:[01]?\.\d+|[01]\.0*|\d{1,3}(?:\.\d+)?\s?%)"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?"
_PIECE = rf"(?:{_SCORE}|{_UUID}|{_DATE}|/[\w./-]*)"
_JOINT = r"\s*[-–—:,|]?\s*"
_HEADS = [
    re.compile(rf"(?:[-*•·‣◦–—>]+|#{{1,6}}|\(?\d{{1,3}}[.):](?=\s)|{_TAG})\s*", re.IGNORECASE),
    re.compile(rf"{_PIECE}(?:\s*[-–—:,|]\s*|\s+)", re.IGNORECASE),
    re.compile(r"(?:memory|recalled|quoted|from memory)(?:\s+#?\d+)?\s*:\s*", re.IGNORECASE),
]
_TAILS = [
    re.compile(rf"\s*{_TAG}$", re.IGNORECASE),
    re.compile(rf"(?:\s*[-–—:,|]\s*|\s+){_PIECE}$", re.IGNORECASE),
]
_BRACKET_HEAD = re.compile(r"(?:\[([^\[\]]{1,300})\]|\(([^()]{1,300})\))" + _JOINT)
_BRACKET_TAIL = re.compile(_JOINT + r"(?:\[([^\[\]]{1,300})\]|\(([^()]{1,300})\))$")
_FACT = re.compile(rf"{_PIECE}|[\w.-]+\s*[=:]\s*(?:\"[^\"]*\"|[\w./:+-]+)|#?\d+", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_HEADING = re.compile(r"(?:#{1,6}\s.*|.*:|-{3,}|={3,}|`{3}\w*|[*_]{2}.*[*_]{2}|\(.*\)|\[.*\])")


class Quotation(Struct, frozen=True):
    """A text seen as quotes of memories: `lines`, and for each line the runs from there that may be one memory.

    A run is (the line after it, the keys it may have: with and without what may be wrapped around it).
    """

    lines: tuple[str, ...]
    runs: tuple[tuple[tuple[int, tuple[bytes, ...]], ...], ...]

    @classmethod
    def of(cls, text: str) -> Quotation:
        """The quotation that a text may be."""
        text = unquoted(text)
        lines = tuple(_lines(text))
        if len(text) > _MOST_CHARS or len(lines) > _MOST_LINES:
            return cls((text,), (((1, (text_key(text),)),),))
        heads = [list(_stripped(line, _HEADS, _BRACKET_HEAD, leading=True)) for line in lines]
        tails = [list(_stripped(line, _TAILS, _BRACKET_TAIL, leading=False)) for line in lines]
        runs = []
        for start in range(len(lines)):
            last = len(lines) if not start else min(len(lines), start + _MOST_LINES_EACH)
            stops = [stop for stop in range(start + 1, last + 1) if stop - start <= _MOST_LINES_EACH or stop == last]
            chosen = [(stop, tuple(_keys(heads[start], lines[start + 1 : stop], tails[stop - 1]))) for stop in stops]
            runs.append(tuple(chosen))
        return cls(lines, tuple(runs))

    @property
    def keys(self) -> set[bytes]:
        """The key of every memory that it may quote."""
        return {key for runs in self.runs for _, keys in runs for key in keys}

    def quoted(self, known: Container[bytes]) -> list[bytes] | None:
        """The keys of the memories it quotes, in order, where it says nothing besides; None otherwise."""
        # From the end: of each line, whether all from there on is quoted, and the keys.
        rest: list[list[bytes] | None] = [None] * len(self.lines) + [[]]
        for start in range(len(self.lines) - 1, -1, -1):
            for stop, keys in reversed(self.runs[start]):
                after = rest[stop]
                key = next((key for key in keys if key in known), None)
                if after is not None and key is not None:
                    rest[start] = [key, *after]
                    break
            else:
                if rest[start + 1] is not None and _says_nothing(self.lines[start]):
                    rest[start] = rest[start + 1]
        return rest[0] or None


def _lines(text: str) -> Iterator[str]:
    """The lines that are not blank; of JSON, those of its texts."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            found = list(_texts(json.loads(text)))
        except (ValueError, RecursionError):
            found = []
        if found:
            yield from (line.strip() for each in found for line in each.splitlines() if line.strip())
            return
    yield from (line.strip() for line in text.splitlines() if line.strip())


def _texts(value: object) -> Iterator[str]:
    """The texts of results; ValueError where anything else stands among them."""
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict) and value.keys() <= _FIELDS:
        for name, item in value.items():
            if name in ("content", "text"):
                yield str(item)
            elif name in ("results", "hits"):
                yield from _texts(item)
    else:
        raise ValueError("no result")


def _keys(heads: list[str], following: Sequence[str], tails: list[str]) -> list[bytes]:
    """The keys of a run, as it is and with ever more of what is wrapped around it taken off.

    `heads` are what is left of its first line, `tails` of its last, which may be the first.
    """
    if following:
        runs = ["\n".join([head, *following[:-1], tail]) for head in heads for tail in tails]
    else:
        runs = [run for head in heads for run in _stripped(head, _TAILS, _BRACKET_TAIL, leading=False)]
        runs += [head.rsplit("\t", 1)[1] for head in heads if "\t" in head]
    return list(dict.fromkeys(map(text_key, runs)))


def _stripped(text: str, patterns: list[re.Pattern[str]], bracket: re.Pattern[str], *, leading: bool) -> Iterator[str]:
    yield text
    while True:
        found = None
        for pattern in patterns:
            found = pattern.match(text) if leading else pattern.search(text)
            if found:
                break
        else:
            found = bracket.match(text) if leading else bracket.search(text)
            if found and not _about(found[1] or found[2]):
                return
        if not found or not found.group():
            return
        text = text[found.end() :] if leading else text[: found.start()]
        if not text.strip():
            return
        yield text


def _about(words: str) -> bool:
    """Whether these words only tell where a memory comes from."""
    return all(word in _ABOUT for word in _WORD.findall(_FACT.sub(" ", words).casefold()))


def _says_nothing(line: str) -> bool:
    """Whether a line only announces or closes quotes."""
    bare = re.sub(_TAG, " ", line, flags=re.IGNORECASE).strip()
    return not bare or (_HEADING.fullmatch(bare) is not None and _about(bare))
