"""Filters: what a read is restricted to, validated once, when it is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, final

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.expressions import And, Comparison, Expression, Not, Or, all_of, parse_where
from recallite.system.messages import shown

_MOST_SCOPES = 5_000
Versions: TypeAlias = Literal["current", "open", "expired", "closed", "any"]
"""Versions that a filter is applied to: those of now (or of `as_of`) that have not expired, open ones expired or not,
open ones that have expired, those that a later text has replaced, or any."""


class FilterFields(TypedDict, total=False):
    """The keyword arguments of a filter; a record has to satisfy all that are given.

    - scope: this scope and its descendants, or a list of such
    - where: {field: {operator: value}}, e.g. {"importance": {"gte": 0.5}, "or": [{"topic": "a"}, {"topic": "b"}]};
      a bare value is compared with "eq"
    - kinds: one of these kinds; tags: any of these tags
    - since, until: what overlaps these times, both included: from valid_from, else created_at, to valid_until
    - as_of: the state of the store at that time
    - valid_at: what held at that time, superseded since or not: from valid_from, else created_at, until valid_until if
      that was given, else until it was superseded
    - include_superseded: also memories that others have superseded

    Times are aware datetimes, ISO 8601 texts, or texts such as "7d" (seven days ago), "yesterday" and "2026-03". A day
    or month alone is its first moment in UTC for `since`, its last for the others, and all of it in `where`.
    """

    scope: str | Sequence[str] | None
    where: Mapping[str, Any] | None
    kinds: str | Sequence[str] | None
    tags: Sequence[str] | None
    since: date | str | None
    until: date | str | None
    as_of: date | str | None
    valid_at: date | str | None
    include_superseded: bool


FIELD_NAMES = FilterFields.__annotations__


@final
@dataclass(frozen=True, init=False, slots=True)
class Filter:
    """A filter that several calls can share: `Filter(scope="/a", tags=["x"])`; `FilterFields` lists the fields.

    Raises InvalidInput, for scope and where ("filter") with the path of the fault.
    """

    scopes: tuple[str, ...]
    kinds: tuple[str, ...] | None
    tags: tuple[str, ...] | None
    where: Expression | None
    since: int | None
    until: int | None
    as_of: int | None
    valid_at: int | None
    include_superseded: bool
    # `scopes` are absolute; scopes in `where` are relative to the scope of the handle, this one.
    base: str

    def __init__(self, **fields: Unpack[FilterFields]) -> None:
        if unknown := [name for name in fields if name not in FIELD_NAMES]:
            raise TypeError(f"a filter has no {unknown[0]!r}: use {', '.join(FIELD_NAMES)}")
        stated, where = fields.get("kinds"), parse_where(fields.get("where"))
        kinds: tuple[str, ...] | None = None
        if stated is not None:
            kinds = tuple(checks.check_name(kind, "a kind") for kind in checks.listed(stated, "kinds"))
        elif where is not None:
            kinds, where = _kinds_in(where)
        tags = fields.get("tags")
        self._set(
            scopes=_scopes(fields.get("scope")),
            kinds=kinds,
            tags=None if tags is None else checks.check_tags(tags),
            where=where,
            since=checks.check_time(fields.get("since"), "since"),
            until=checks.check_time(fields.get("until"), "until"),
            as_of=checks.check_time(fields.get("as_of"), "as_of"),
            valid_at=checks.check_time(fields.get("valid_at"), "valid_at"),
            include_superseded=checks.check_flag(fields.get("include_superseded") or False, "include_superseded"),
            base="/",
        )

    def within(self, base: str) -> Filter:
        """The filter for a handle bound to the scope `base`, which admits nothing outside."""
        if base == "/" and "/" not in self.scopes:
            return self
        joined = dict.fromkeys(checks.join_scopes(base, scope) or "/" for scope in self.scopes or ("/",))
        return self.replaced(scopes=() if "/" in joined else tuple(joined), base=base)

    def replaced(self, **changes: Any) -> Filter:
        """A copy with some attributes changed."""
        made = object.__new__(Filter)
        made._set(**{name: getattr(self, name) for name in Filter.__slots__} | changes)
        return made

    @property
    def scopes_only(self) -> bool:
        """True if it restricts nothing but the scope."""
        bounds = (self.since, self.until, self.as_of, self.valid_at)
        return not (self.kinds or self.tags or _restricts(self.where)) and all(bound is None for bound in bounds)

    @property
    def blanks(self) -> list[str]:
        """The fields that were given empty and restrict nothing."""
        restricting = {"where": _restricts(self.where), "kinds": self.kinds != (), "tags": self.tags != ()}
        return [name for name, restricts in restricting.items() if not restricts and getattr(self, name) is not None]

    @property
    def unindexed(self) -> Filter | None:
        """The part that an index of scopes, kinds and times cannot evaluate; None if there is none."""
        if not self.tags and not _restricts(self.where):
            return None
        return self.replaced(
            scopes=(), kinds=None, since=None, until=None, as_of=None, valid_at=None, include_superseded=True
        )

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


def bound_filter(base: str, filter_: Filter | None, fields: Mapping[str, Any], *, takes_as_of: bool = True) -> Filter:
    """The filter given to a handle bound to `base`, as a value or by its fields."""
    if filter_ is None:
        filter_ = Filter(**fields)
    elif not isinstance(filter_, Filter):
        raise InvalidInput(f"filter is {shown(filter_)}: give Filter(...), or its fields as arguments")
    elif named := [name for name, value in fields.items() if value is not None]:
        raise InvalidInput(f"filter and {named[0]} are both given: put {named[0]} into the Filter")
    if filter_.as_of is not None and not takes_as_of:
        raise InvalidInput("as_of is for recall, explain, list and count: this works on the current records")
    return filter_.within(base)


def _restricts(where: Expression | None) -> bool:
    """False for what every record satisfies whatever its fields are."""
    if isinstance(where, And):
        return any(map(_restricts, where.parts))
    if isinstance(where, Or):
        return all(map(_restricts, where.parts))
    if isinstance(where, Not):  # of nothing: {"nin": []}
        return not (isinstance(where.part, Comparison) and where.part.value == ())
    return where is not None


def _scopes(scope: object) -> tuple[str, ...]:
    if scope is None:
        return ()
    try:
        paths = checks.listed(scope, "scope")
    except InvalidInput:
        raise InvalidInput(
            f"scope is {shown(scope)}: give a path such as '/team/project', or a list of them", "filter"
        ) from None
    if not paths:
        raise InvalidInput("scope is an empty list: give at least one, or leave it out", "filter")
    if len(paths) > _MOST_SCOPES:
        raise InvalidInput(
            f"scope lists {len(paths):,} scopes: at most {_MOST_SCOPES:,}; give what they are in", "filter"
        )
    return tuple(dict.fromkeys(map(checks.check_scope, paths)))


def _kinds_in(where: Expression) -> tuple[tuple[str, ...] | None, Expression | None]:
    """The kinds that `where` requires, which an index can evaluate, and the rest of it."""
    parts = where.parts if isinstance(where, And) else (where,)
    for place, part in enumerate(parts):
        if isinstance(part, Comparison) and part.field == "kind" and part.operator in ("eq", "in"):
            values = part.value if isinstance(part.value, tuple) else (part.value,)
            kinds = tuple(value for value in values if isinstance(value, str))
            if values and len(kinds) == len(values):
                left = parts[:place] + parts[place + 1 :]
                return kinds, all_of(left) if left else None
    return None, where
