"""Whether what a text claims about a record holds of that record: such a text adds nothing new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from recallite.model.authority import said_by
from recallite.model.match_reasons import MATCH_REASONS
from recallite.model.records import Record
from recallite.system.numerics import kernels
from recallite.text.patterns import lazily
from recallite.text.quotes import Claim

_NUMBERS = frozenset(["score", "confidence", "relevance", "similarity", "importance", "position", "left_out"])
_NUMBER = lazily(r"\d+(?:\.\d+)?\s?%?")
_SIGNALS = lazily(rf"(?:{'|'.join(kernels.Signals._fields)})(?:_rank)?")
# As recall words its evidence gaps.
_GAP = lazily(
    r"no hit has (?:an? )?[a-z ]{1,40}|no hit mentions (['\"])[\w'-]{1,60}\1|the best hit's confidence is \d\.\d\d"
)
_TIMES = {
    "created": "created_at", "created_at": "created_at", "event": "valid_from", "valid_from": "valid_from",
    "updated": "updated_at", "updated_at": "updated_at", "accessed": "accessed_at", "accessed_at": "accessed_at",
    "valid_until": "valid_until", "held_until": "held_until",
}  # fmt: skip


def claims_hold(record: Record, claims: Sequence[Claim]) -> bool:
    """Whether every claim holds of a record. Numbers that depend on the query, such as scores, always do."""
    return all(_holds(record, name, value) for name, value in claims)


def _holds(record: Record, name: str, value: Any) -> bool:
    if value is None or value == [] or value == {}:
        return name in _NUMBERS or name in _TIMES or name in _FIELDS
    if name in _NUMBERS:
        return _is_number(value)
    if name in _TIMES:
        return _is_time(value, getattr(record, _TIMES[name]))
    check = _FIELDS.get(name)
    return check is not None and check(record, value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value: Any, moment: datetime | None) -> bool:
    """Whether a text names this moment, to its own precision; without an offset it is UTC."""
    if not isinstance(value, str) or moment is None:
        return False
    try:
        claimed = datetime.fromisoformat(value)
    except ValueError:
        return False
    claimed = claimed.replace(tzinfo=UTC) if claimed.tzinfo is None else claimed.astimezone(UTC)
    if len(value) == len("2026-01-02"):
        return claimed.date() == moment.date()
    if value.count(":") == 1:
        return claimed == moment.replace(second=0, microsecond=0)
    return claimed == (moment if "." in value else moment.replace(microsecond=0))


def _is_scope(record: Record, value: Any) -> bool:
    """Scopes may be relative to that of a handle: the end of the path is compared."""
    return isinstance(value, str) and value.startswith("/") and (value == "/" or record.scope.endswith(value))


def _all_in(value: Any, allowed: Sequence[str] | frozenset[str]) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item in allowed for item in value)


def _is_source(record: Record, value: Any) -> bool:
    if isinstance(value, Mapping):
        claimed = {name: item for name, item in value.items() if item is not None}
        return claimed.items() <= {"id": record.source, "position": record.position}.items()
    return bool(value == record.source)


def _are_gaps(_: Record, value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(gap, str) and _GAP.fullmatch(gap) for gap in value)


def _are_signals(_: Record, value: Any) -> bool:
    return isinstance(value, dict) and all(_SIGNALS.fullmatch(name) and _is_number(value[name]) for name in value)


def _are_formers(record: Record, value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(former, Mapping) and former.get("id") in record.supersedes for former in value
    )


_FIELDS: Mapping[str, Any] = {
    "id": lambda record, value: isinstance(value, str) and value.lower() == record.id,
    "scope": _is_scope,
    "date": lambda record, value: _is_time(value, record.created_at) or _is_time(value, record.valid_from),
    "kind": lambda record, value: value == record.kind,
    "authority": lambda record, value: value == record.authority,
    "said_by": lambda record, value: value == said_by(record.authority, record.source),
    "topic": lambda record, value: value == record.topic,
    "context": lambda record, value: value == record.context,
    "source": _is_source,
    "superseded_by": lambda record, value: _all_in(value, record.superseded_by),
    "supersedes": _are_formers,
    "tags": lambda record, value: _all_in(value, record.tags),
    "metadata": lambda record, value: value == record.metadata,
    "match_reasons": lambda _, value: _all_in(value, MATCH_REASONS),
    "evidence_gaps": _are_gaps,
    "sub_queries": lambda *_: False,
    "signals": _are_signals,
}
