"""Errors as a model is shown them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from recollect.text.quoting import NOTICE

__all__ = ["Candidate", "FailureType", "ToolFailure", "ToolFault"]

FailureType = Literal[
    "unknown_tool",
    "unknown_action",
    "invalid_json",
    "missing_field",
    "unknown_field",
    "wrong_type",
    "invalid_value",
    "not_found",
    "ambiguous",
    "damaged",
    "not_allowed",
    "unreadable",
]


class Candidate(Struct, frozen=True, kw_only=True):
    """One of several memories that match."""

    id: str
    content: str


class ToolFailure(Struct, frozen=True, kw_only=True):
    """The `error` of a result: what is wrong, in which field, and what is allowed there.

    Candidates are stored texts, with the notice that they are quotes.
    """

    type: FailureType
    field: str | None
    message: str
    allowed: list[str]
    candidates: list[Candidate] | UnsetType = UNSET
    notice: str | UnsetType = UNSET


class ToolFault(Exception):
    """Raised to make a `ToolFailure` the result of a call."""

    def __init__(
        self,
        type: FailureType,
        field: str | None,
        message: str,
        allowed: Iterable[str] = (),
        candidates: list[Candidate] | UnsetType = UNSET,
    ) -> None:
        super().__init__(message)
        self.failure = ToolFailure(
            type=type, field=None if field is None else _encodable(field), message=_encodable(message),
            allowed=[_encodable(each) for each in allowed], candidates=candidates,
            notice=UNSET if candidates is UNSET else NOTICE,
        )  # fmt: skip


def _encodable(text: str) -> str:
    """Text with lone surrogates, which `json.loads` accepts, escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
