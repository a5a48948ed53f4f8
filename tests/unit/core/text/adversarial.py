"""Texts that make a pattern or a scanner slow where anything can, and how the time grows with their length.

Processor time is compared at n and 4n characters: a linear scan takes 4 times as long, a quadratic one 16 times.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterator
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]

Call = Callable[[str], object]
Make = Callable[[int], str]

# Between 4, which is linear, and 16, which is quadratic.
_STEEP = 9.0
# Small steps first: where the time doubles with each repeat, 512 characters would never end.
_SIZES = (*range(32, 513, 32), 2_048, 8_192)
# 8,192 characters that are scanned in less take a few steps each.
_LEAST_SECONDS = 0.001
_LONG_SECONDS = 0.02
_MOST_CHARS = 2_000_000
_CANDIDATES = "aZ1 \t\n-_.:#`<>[]()\"'\\/,!|é漢\x01"
RUNS = (
    " ", "\t", "\n", "\r\n", "\r", "\f", "a", "1", "_", "\\", "#", "'", "\"", "`", "-", "=", "*", ".", ",", ":", "/",
    "~", "(", "[", "{", "<", ">", "|", "&", "é", "漢", "。", "́", "\ufffe", "a ", "a,", "a.", "a\n", "a-", "1.", "1,",
    ", ", "\n ", " \n", "\r\n\r\n", "```", "```\n", "~~~\n", "<!--", "<!-- ", "-->", "[[", "]]", "[a](", "![", "</",
    "<a ", "> ", "- ", "1. ", "# ", "## ", "| a ", "---\n", "{\"a\":", "a='", "&amp;", "<recalled-memories>",
    "<!-- recallite ", "## x\n", "**", "__", "\\\n", "#a\n", "x: y\n", "http://", "C:\\", "0x", "2026-01-01T00:00:00",
    "a\t", "a'", "̧́", "<!---->", "<recalled-memories>x", "- - ", "* a\n", "<p>", "<div>", "&#", "a=", "a: ", "? ",
)  # fmt: skip
"""What is repeated in front of a scanner of text."""
ENDS = ("", "!", "\n", "x", "\x01")


def growth(call: Call, make: Make) -> float | None:
    """How many times longer 4n characters take than n where that is not 4 or so; None for a call that is linear."""
    before = 0.0
    for size in _SIZES:
        seconds = _seconds(call, make(size))
        if size > 512 and seconds > _LEAST_SECONDS and seconds > _STEEP * before:
            return _confirmed(call, make, size)
        if size <= 512:
            if seconds > _LONG_SECONDS and _least(call, make(size), seconds) > _STEEP * _seconds(call, make(size // 2)):
                return float("inf")
        elif seconds > 20 * _LONG_SECONDS:
            return _confirmed(call, make, size)
        before = seconds
    return None


def _confirmed(call: Call, make: Make, size: int) -> float | None:
    """The least of several ratios, at a length that takes long enough for the clock; None if that is no steep one."""
    while (seconds := _seconds(call, make(size))) < _LONG_SECONDS and size < _MOST_CHARS:
        size *= 2
    if seconds > 20 * _LONG_SECONDS:
        size = max(16, size // 8)
    ratio = float("inf")
    for _ in range(3):
        short, long = make(size), make(4 * size)
        once = _least(call, short, _seconds(call, short))
        ratio = min(ratio, _least(call, long, _seconds(call, long)) / max(once, 1e-7))
        if ratio < _STEEP:
            return None
    return ratio


def _least(call: Call, text: str, seconds: float) -> float:
    """The least of this time and, unless it is long, of two more: a cold cache or a page fault makes one longer."""
    return seconds if seconds > 1 else min(seconds, _seconds(call, text), _seconds(call, text))


def _seconds(call: Call, text: str) -> float:
    """Processor time of this thread alone, without that of the garbage collector."""
    gc.disable()
    try:
        begun = time.thread_time_ns()
        call(text)
        return (time.thread_time_ns() - begun) / 1e9
    finally:
        gc.enable()


def run_of(unit: str, *, begin: str = "", end: str = "") -> Make:
    """Texts of about n characters: a beginning, a run of one unit, an end."""
    return lambda size: begin + unit * (size // max(1, len(unit))) + end


def attacks(pattern: str | bytes, flags: int = 0) -> Iterator[tuple[str, str]]:
    """What may make a pattern slow: (begin, unit), each once. The unit is any part that the pattern repeats, any
    beginning of what it matches, and every character it knows; before it stands what leads up to it.
    """
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    seen: set[tuple[str, str]] = set()
    chars: dict[str, None] = {}
    for choice in range(3):
        sample, spans = _sample(_parser.parse(text, flags & ~re.DEBUG), choice)
        chars.update(dict.fromkeys(sample))
        spans += [(0, end) for _, end in spans] + [(0, start) for start, _ in spans] + [(0, len(sample))]
        for start, end in spans:
            unit = sample[start:end]
            for pair in ((sample[:start], unit), ("", unit)):
                if unit and len(unit) <= 200 and pair not in seen:
                    seen.add(pair)
                    yield pair
        for start in {start for start, _ in spans} | {end for _, end in spans}:
            for char in chars:
                if (sample[:start], char) not in seen:
                    seen.add((sample[:start], char))
                    yield sample[:start], char


def _sample(tree: object, choice: int) -> tuple[str, list[tuple[int, int]]]:
    """A text that goes through a parsed pattern, every repeat taken, and where in it the repeats are."""
    said: list[str] = []
    spans: list[tuple[int, int]] = []

    def length() -> int:
        return sum(map(len, said))

    def walk(nodes: object) -> None:
        for kind, value in nodes:  # type: ignore[attr-defined]
            if kind is op.LITERAL:
                said.append(chr(value))
            elif kind is op.NOT_LITERAL:
                said.append(next(char for char in _CANDIDATES if ord(char) != value))
            elif kind is op.ANY:
                said.append("a <"[choice])
            elif kind is op.IN:
                said.append(_member(value, choice))
            elif kind is op.BRANCH:
                walk(value[1][choice % len(value[1])])
            elif kind is op.SUBPATTERN:
                walk(value[3])
            elif kind is op.ATOMIC_GROUP:
                walk(value)
            elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
                start = length()
                for _ in range(max(1, min(value[0], 4))):
                    begun = length()
                    walk(value[2])
                spans.append((begun, length()))
                spans.append((start, length()))

    walk(tree)
    return "".join(said), spans


def _member(parts: list[tuple[object, object]], choice: int) -> str:
    """A character of a set."""
    negated = parts[0][0] is op.NEGATE
    if negated:
        inside = re.compile(_class_of(parts[1:]))
        found = [char for char in _CANDIDATES if not inside.fullmatch(char)]
    else:
        inside = re.compile(_class_of(parts))
        found = [char for char in _CANDIDATES if inside.fullmatch(char)]
        for kind, value in parts:
            if kind is op.LITERAL:
                found.append(chr(value))  # type: ignore[arg-type]
            elif kind is op.RANGE:
                found.append(chr(value[0]))  # type: ignore[index]
    return found[choice % len(found)] if found else "a"


_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s", op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


def _class_of(parts: list[tuple[object, object]]) -> str:
    written = ""
    for kind, value in parts:
        if kind is op.LITERAL:
            written += re.escape(chr(value))  # type: ignore[arg-type]
        elif kind is op.RANGE:
            written += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"  # type: ignore[index]
        elif kind is op.CATEGORY:
            written += _CATEGORIES[value]
    return f"[{written}]"
