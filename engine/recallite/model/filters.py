"""Filters: what a read is restricted to, validated once, when it is built, and the expressions that they hold.

A store evaluates `Comparison`, `And`, `Or` and `Not` over the fields of records. An operator of the dict dialect is one
function that checks its value and builds an expression of these, and one line in `OPERATORS`:

    def _between(field: str, value: object, path: str) -> Expression:
        low, high = _values(field, value, path)
        return And((Comparison(field, "gte", low), Comparison(field, "lte", high)))

    OPERATORS["between"] = _between
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, final

from msgspec import Struct

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.authority import check_authority, rank_of
from recallite.system.messages import shown
from recallite.text.patterns import lazily

_MAX_DEPTH = 20
_MOST_SHOWN = 60
# A comparison binds at most 5 values, and SQLite 32,766 in a statement.
_MOST_COMPARISONS = 5_000
_TIMES = ("created_at", "valid_from", "valid_until", "updated_at", "expires_at", "superseded_at", "held_until")
FIELDS = (
    "id", "kind", "scope", "text", "context", "importance", "pinned", "authority", "topic", "source", "position",
    "embedding_state", "standing", *_TIMES,
)  # fmt: skip
"""Fields that `where` compares, besides "tags" and "metadata.<key>"."""
_KEY = re.compile(r'\.(?:"([^"]*)"|([^".]+))')
_METADATA = lazily(rf"metadata(?:{_KEY.pattern})+")

Scalar: TypeAlias = str | int | float | None


class Comparison(Struct, frozen=True):
    """A field compared with a scalar, or with a tuple of them for "in"; times are microseconds since 1970 UTC.

    "eq" with None asks for no value. A missing value satisfies nothing else; a text is never above or below a number.
    "contains" looks for a str in a text, or for an element of a list of the metadata. "tags" take "in" alone: any of
    them.
    """

    field: str
    operator: Literal["eq", "gt", "gte", "lt", "lte", "in", "contains"]
    value: Scalar | tuple[Scalar, ...]


class And(Struct, frozen=True):
    """All of the parts; of none, true."""

    parts: tuple[Expression, ...]


class Or(Struct, frozen=True):
    """Any of the parts."""

    parts: tuple[Expression, ...]


class Not(Struct, frozen=True):
    """True where the part is not true, also because a value is missing."""

    part: Expression


Expression: TypeAlias = Comparison | And | Or | Not


def parse_where(where: object) -> Expression | None:
    """The expression of a dict. Raises InvalidInput ("filter") with the path of the fault."""
    if where is None:
        return None
    expression = _parse(where, "where", 0)
    if (number := _comparisons(expression)) > _MOST_COMPARISONS:
        raise InvalidInput(
            f"where compares {number:,} values: at most {_MOST_COMPARISONS:,}; put alternatives into one list (in)",
            "filter",
        )
    return expression


def _comparisons(expression: Expression) -> int:
    if isinstance(expression, Comparison):
        return 1
    return sum(map(_comparisons, (expression.part,) if isinstance(expression, Not) else expression.parts))


def _parse(where: object, path: str, depth: int) -> Expression:
    if not isinstance(where, Mapping):
        raise InvalidInput(f"{path} is {shown(where)}: give a dict such as {{'importance': {{'gte': 0.5}}}}", "filter")
    if depth > _MAX_DEPTH:
        raise InvalidInput(f"{path} is nested more than {_MAX_DEPTH} deep", "filter")
    expressions: list[Expression] = []
    for key, value in where.items():
        here = f"{path}.{key if isinstance(key, str) and len(key) <= _MOST_SHOWN and key.isprintable() else shown(key)}"
        if key in ("and", "or"):
            if not isinstance(value, list | tuple) or not value:
                raise InvalidInput(f"{here} is {shown(value)}: give a non-empty list of filters", "filter")
            parts = tuple(_parse(item, f"{here}[{i}]", depth + 1) for i, item in enumerate(value))
            expressions.append(And(parts) if key == "and" else Or(parts))
        elif key == "not":
            expressions.append(Not(_parse(value, here, depth + 1)))
        else:
            name = _field(key, here)
            table = _OF_TAGS if name == "tags" else OPERATORS
            for operator, operand in (value if isinstance(value, Mapping) else {"eq": value}).items():
                if operator not in table:
                    known = ", ".join(table)
                    raise InvalidInput(f"{here} has the operator {shown(operator)}: use one of {known}", "filter")
                expressions.append(table[operator](name, operand, f"{here}.{operator}"))
    return all_of(expressions)


def all_of(parts: Sequence[Expression]) -> Expression:
    """One expression of several that have to be true."""
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _field(name: object, path: str) -> str:
    if isinstance(name, str):
        if name == "tags" or name in FIELDS:
            return name
        if name.startswith("metadata."):
            if not _METADATA.fullmatch(name) or not _storable(name):
                raise InvalidInput(
                    f"{path}: {shown(name)} is no path: write metadata.key or metadata.key.key, "
                    'and a key with a dot in it as metadata."a.b"',
                    "filter",
                )
            return name
    raise InvalidInput(
        f"{path}: unknown field {shown(name)}: use one of {', '.join(FIELDS)}, tags, or metadata.<key>", "filter"
    )


def metadata_field(*keys: str) -> str:
    """The field of `where` for what is under these keys of the metadata, one inside the other."""
    return "metadata." + ".".join(f'"{key}"' if "." in key or not key else key for key in keys)


def metadata_keys(field: str) -> list[str]:
    """The keys that a field of the metadata names, one inside the other."""
    return [quoted or plain for quoted, plain in _KEY.findall(field.removeprefix("metadata"))]


def _scalar(field: str, value: object, path: str) -> Scalar:
    """The value as stores compare it."""
    if value is None:
        return None
    if field == "authority":
        return rank_of(check_authority(value, path))
    number = int(value) if isinstance(value, bool) else checks.number_of(value)
    if number is not None and (-(2**63) <= number < 2**63 if isinstance(number, int) else math.isfinite(number)):
        return number
    if isinstance(value, str) and _storable(value):
        return checks.plain_str(value)
    raise InvalidInput(f"{path} is {shown(value)}: give a str, a finite number, a bool or None", "filter")


def _values(field: str, value: object, path: str) -> tuple[Scalar, ...]:
    """The values of a list; none of them is None."""
    if not isinstance(value, list | tuple | set | frozenset) or any(item is None for item in value):
        raise InvalidInput(f"{path} is {shown(value)}: give a list of values other than None", "filter")
    return tuple(_scalar(field, item, path) for item in value)


def _storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


Builder: TypeAlias = Callable[[str, object, str], Expression]


def _compared(operator: Literal["eq", "gt", "gte", "lt", "lte"]) -> Builder:
    def build(field: str, value: object, path: str) -> Expression:
        if field in _TIMES and value is not None:
            try:
                first, last = checks.moments_of(value, path, field)
            except InvalidInput as fault:
                raise InvalidInput(str(fault), "filter") from None
            if operator == "eq" and first < last:
                return And((Comparison(field, "gte", first), Comparison(field, "lte", last)))
            return Comparison(field, operator, last if operator in ("gt", "lte") else first)
        scalar = _scalar(field, value, path)
        if scalar is None and operator != "eq":
            raise InvalidInput(f"{path} is None: compare with eq or ne", "filter")
        return Comparison(field, operator, scalar)

    return build


def _among(field: str, value: object, path: str) -> Expression:
    if field in _TIMES and isinstance(value, list | tuple | set | frozenset) and None not in value and value:
        return Or(tuple(_compared("eq")(field, item, path) for item in value))
    return Comparison(field, "in", _values(field, value, path))


def _contains(field: str, value: object, path: str) -> Expression:
    scalar = _scalar(field, value, path)
    if field in _TIMES or (not isinstance(scalar, str) and not field.startswith("metadata.")):
        raise InvalidInput(f"{path} is {shown(value)}: give the str to look for", "filter")
    return Comparison(field, "contains", scalar)


def _negated(build: Builder) -> Builder:
    return lambda field, value, path: Not(build(field, value, path))


def _any_tag(field: str, value: object, path: str) -> Expression:
    names = _values(field, value, path)
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"{path} is {shown(value)}: tags are str", "filter")
    return Comparison(field, "in", names)


OPERATORS: dict[str, Builder] = {
    "eq": _compared("eq"),
    "ne": _negated(_compared("eq")),
    "gt": _compared("gt"),
    "gte": _compared("gte"),
    "lt": _compared("lt"),
    "lte": _compared("lte"),
    "in": _among,
    "nin": _negated(_among),
    "contains": _contains,
}
_OF_TAGS: dict[str, Builder] = {
    "eq": lambda field, value, path: _any_tag(field, (value,), path),
    "contains": lambda field, value, path: _any_tag(field, (value,), path),
    "in": _any_tag,
    "nin": _negated(_any_tag),
}


_MOST_SCOPES = 5_000
Versions: TypeAlias = Literal["current", "open", "expired", "closed", "any"]
"""Versions that a filter is applied to: those of now (or of `as_of`) that have not expired, open ones expired or not,
open ones that have expired, those that a later text has replaced, or any."""


CHUNK_KIND = "chunk"
"""The kind of the passages of documents."""
MESSAGE_KIND = "session_message"
"""The kind of the messages of sessions, which sessions alone write; a filter leaves them out unless it names them."""


class FilterFields(TypedDict, total=False):
    """The keyword arguments of a filter; a record has to satisfy all that are given.

    - scope: this scope and its descendants, or a list of such
    - where: {field: {operator: value}}, e.g. {"importance": {"gte": 0.5}, "or": [{"topic": "a"}, {"topic": "b"}]};
      a bare value is compared with "eq"
    - kinds: one of these kinds; tags: any of these tags
    - sessions: also the messages of sessions (kind "session_message"), which are left out otherwise
    - since, until: what overlaps these times, both included: from valid_from, else created_at, to valid_until
    - as_of: the state of the store at that time
    - valid_at: what held at that time, superseded since or not: from valid_from, else created_at, until valid_until if
      that was given, else until it was surely superseded
    - include_superseded: also memories that others have surely superseded, which recall shows in any case

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
    sessions: bool


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
    sessions: bool
    # `scopes` are absolute; scopes in `where` are relative to the scope of the handle, this one. What the handle reads
    # beside it is in `shared`.
    base: str
    shared: tuple[str, ...]

    def __init__(self, **fields: Unpack[FilterFields]) -> None:
        if unknown := [name for name in fields if name not in FIELD_NAMES]:
            raise TypeError(f"a filter has no {unknown[0]!r}: use {', '.join(FIELD_NAMES)}")
        times = {name: checks.check_time(fields.get(name), name) for name in ("since", "until", "as_of", "valid_at")}
        stated, where = fields.get("kinds"), parse_where(fields.get("where"))
        kinds: tuple[str, ...] | None = None
        if stated is not None:
            kinds = tuple(checks.check_name(kind, "a kind") for kind in checks.as_list(stated, "kinds"))
        elif where is not None:
            kinds, where = _kinds_in(where)
        sessions = checks.check_flag(fields.get("sessions") or False, "sessions") or MESSAGE_KIND in (kinds or ())
        if sessions and kinds:
            kinds = tuple(dict.fromkeys((*kinds, MESSAGE_KIND)))
        tags = fields.get("tags")
        self._set(
            scopes=_scopes(fields.get("scope")),
            kinds=kinds,
            tags=None if tags is None else checks.check_tags(tags),
            where=where,
            **times,
            include_superseded=checks.check_flag(fields.get("include_superseded") or False, "include_superseded"),
            sessions=sessions,
            base="/",
            shared=(),
        )

    def within(self, base: str, shared: tuple[str, ...] = ()) -> Filter:
        """The filter for a handle bound to the scope `base`, which admits nothing outside.

        Without a scope of its own it also admits the `shared` ones, absolute paths.
        """
        if base == "/" and "/" not in self.scopes:
            return self
        joined = dict.fromkeys(checks.join_scopes(base, scope) or "/" for scope in self.scopes or ("/",))
        admitted = (*joined, *(() if self.scopes else shared))
        return self.replaced(scopes=() if "/" in admitted else admitted, base=base, shared=shared)

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
        return Filter().replaced(
            tags=self.tags, where=self.where, base=self.base, shared=self.shared, include_superseded=True, sessions=True
        )

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


def bound_filter(
    base: str,
    filter_: Filter | None,
    fields: Mapping[str, Any],
    *,
    takes_as_of: bool = True,
    shared: tuple[str, ...] = (),
) -> Filter:
    """The filter given to a handle bound to `base` that also reads the `shared` scopes, as a value or by its fields."""
    if filter_ is None:
        filter_ = Filter(**fields)
    elif not isinstance(filter_, Filter):
        raise InvalidInput(f"filter is {shown(filter_)}: give Filter(...), or its fields as arguments")
    elif named := [name for name, value in fields.items() if value is not None]:
        raise InvalidInput(f"filter and {named[0]} are both given: put {named[0]} into the Filter")
    if filter_.as_of is not None and not takes_as_of:
        raise InvalidInput("as_of is for recall, explain, list and count: this works on the current records")
    return filter_.within(base, shared)


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
        paths = checks.as_list(scope, "scope")
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
    for i, part in enumerate(parts):
        if isinstance(part, Comparison) and part.field == "kind" and part.operator in ("eq", "in"):
            values = part.value if isinstance(part.value, tuple) else (part.value,)
            kinds = tuple(value for value in values if isinstance(value, str))
            if values and len(kinds) == len(values):
                others = parts[:i] + parts[i + 1 :]
                return kinds, all_of(others) if others else None
    return None, where
