"""Comparing errors: what differs between runs (numbers, paths, ids) is masked, and the words are compared."""

from __future__ import annotations

import re

from recallite.text.words import STOP_TERMS, tokenize

# Dice coefficient of the words. Different errors of one tool, as "no such file" and "permission denied", reach 1/3.
_ALIKE = 0.5
_MASKS = (
    (re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s'\"<>)\]]+", re.IGNORECASE), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"(?<![\w/.])(?:~|\.{1,2})?(?:/[^\s/:'\"<>)\],;]+)+/?|\b[A-Za-z]:\\[^\s:'\"<>]+"), "<path>"),
    (re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b", re.IGNORECASE), "<id>"),
    # A status code such as 404 identifies the error; other numbers do not.
    (re.compile(r"(?<![\w.])(?![1-5]\d\d(?![\w.]))[-+]?\d+(?:[.,]\d+)*"), "<n>"),
)
_MASK = re.compile(r"<(?:url|id|time|path|n)>")
_STATUS = re.compile(r"(?<![\w.])[1-5]\d\d(?![\w.])")


def error_pattern(error: str) -> str:
    """An error with numbers, paths, addresses, times and ids masked, and with white space and case normalised."""
    for mask, name in _MASKS:
        error = mask.sub(name, error)
    return " ".join(error.lower().split())


def similarity_of(pattern: str, other: str) -> float:
    """The similarity of two patterns: 1 for equal ones, else the Dice coefficient of their words, or 0 if low.

    Patterns with different status codes (404, 500) have 0.
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
