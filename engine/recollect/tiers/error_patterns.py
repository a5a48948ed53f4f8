"""When two errors are the same: what differs from run to run (numbers, paths, ids) masked, the words compared."""

from __future__ import annotations

import re

from recollect.text.stopwords import STOP_TERMS
from recollect.text.tokens import tokenize

__all__ = ["alike", "error_pattern"]

# Dice's coefficient of the words; "no such file" and "permission denied" of one tool share a third of theirs.
_ALIKE = 0.5
_MASKS = (
    (re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s'\"<>)\]]+", re.IGNORECASE), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"(?<![\w/.])(?:~|\.{1,2})?(?:/[^\s/:'\"<>)\],;]+)+/?|\b[A-Za-z]:\\[^\s:'\"<>]+"), "<path>"),
    (re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b", re.IGNORECASE), "<id>"),
    # A status such as 404 says which error it is; other numbers do not.
    (re.compile(r"(?<![\w.])(?![1-5]\d\d(?![\w.]))[-+]?\d+(?:[.,]\d+)*"), "<n>"),
)
_MASK = re.compile(r"<(?:url|id|time|path|n)>")
_STATUS = re.compile(r"(?<![\w.])[1-5]\d\d(?![\w.])")


def error_pattern(error: str) -> str:
    """An error with numbers, paths, addresses, times and ids masked, its spaces and case made even."""
    for mask, name in _MASKS:
        error = mask.sub(name, error)
    return " ".join(error.lower().split())


def alike(pattern: str, other: str) -> float:
    """How alike two patterns are, 0 for not enough: 1 for equal ones, else Dice's coefficient of their words.

    Patterns that name different statuses (404, 500) are not alike.
    """
    if pattern == other:
        return 1.0
    statuses, others = set(_STATUS.findall(pattern)), set(_STATUS.findall(other))
    if statuses and others and not statuses & others:
        return 0.0
    words, known = _words(pattern), _words(other)
    if not words or not known:
        return 0.0
    nearness = 2 * len(words & known) / (len(words) + len(known))
    return nearness if nearness >= _ALIKE else 0.0


def _words(pattern: str) -> set[str]:
    return set(tokenize(_MASK.sub(" ", pattern))) - STOP_TERMS
