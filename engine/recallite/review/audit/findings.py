"""The checks, and their findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from recallite.model.records import Record
from recallite.model.reports import Finding

CHECKS: dict[str, str | None] = {
    "duplicates": "forget",
    "near-duplicates": "forget",
    "contradictions": "supersede",
    "stale": "expire",
    "expired": "purge_expired",
    "secrets": "redact",
    "instructions": "expire",
    "junk": "forget",
    "superseded": None,
    "unjudged": None,
    "diverged": None,
}
"""Each check with the method that repairs its findings; None where only a person can tell."""

REVIEWS = ("superseded", "unjudged", "diverged")
"""Checks of what is as it should be, for review: only by name."""

# Records of a file, or saved as a whole, must be changed there.
MADE_ELSEWHERE = ("chunk", "procedure")
_BATCH = 256
T = TypeVar("T")


def finding(check: str, record: Record, reason: str) -> Finding:
    """Make a finding about one memory."""
    verb = CHECKS[check]
    if (record.pinned and verb in ("forget", "expire")) or (record.kind in MADE_ELSEWHERE and verb == "redact"):
        verb = None
    return Finding(check=check, id=record.id, text=record.text, reason=reason, verb=verb)


def finding_of_pair(check: str, record: Record, other: Record, reason: str, verb: str | None) -> Finding:
    """Make a finding about a memory and another; `verb` is for the first."""
    return Finding(
        check=check, id=record.id, text=record.text, reason=reason, other=other.id, other_text=other.text, verb=verb
    )


def batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split row ids, or pairs of them."""
    return (values[start : start + _BATCH] for start in range(0, len(values), _BATCH))
