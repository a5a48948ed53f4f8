"""A recall's arguments, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from recollect import checks
from recollect.errors import InvalidFilter, InvalidInput
from recollect.profiles import Profile, by_own_names, resolve_profile
from recollect.store.filters import Filter, where_condition

__all__ = ["Mode", "Request", "build_filter", "build_request"]

Mode = Literal["hybrid", "vector", "keyword"]
_PLAIN = {
    "spread": 0.0, "decay": "none", "importance_weight": 0.0, "mmr_lambda": None, "min_score": 0.0,
    "min_confidence": 0.0, "rerank_weight": 0.0, "composition": "product", "keyword_fallback": False,
    "long_query_chars": None,
}  # fmt: skip
MAX_LIMIT = 10_000
_MOST_SCOPES = 5_000


class Request(Struct, frozen=True, kw_only=True):
    """What every query of one call shares. Times are microseconds since 1970 UTC."""

    profile: Profile
    filter: Filter
    mode: Mode = "hybrid"
    limit: int = 10
    now: int
    group_by: str | None = None
    token_budget: int | None = None
    explain: bool = False

    @property
    def clock(self) -> int:
        """The moment ages are measured from."""
        return self.now if self.filter.as_of is None else self.filter.as_of

    @property
    def wanted(self) -> int:
        """How many candidates by each signal."""
        return max(self.profile.candidates, self.profile.candidate_multiplier * self.limit)

    @property
    def time_range(self) -> str | None:
        """The times asked for, in words; None where any will do."""
        since, until = map(checks.optional_datetime, (self.filter.since, self.filter.until))
        if since is None:
            return None if until is None else f"not later than {until.isoformat()}"
        if until is None:
            return f"not before {since.isoformat()}"
        return f"from {since.isoformat()} to {until.isoformat()}"


def build_request(
    base: str,
    default_profile: str | Profile,
    /,
    *,
    mode: str = "hybrid",
    limit: int | None = None,
    scope: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    kinds: Sequence[str] | str | None = None,
    tags: Sequence[str] | None = None,
    since: object = None,
    until: object = None,
    as_of: object = None,
    profile: str | Profile | None = None,
    min_score: float | None = None,
    group_by: str | None = None,
    token_budget: int | None = None,
    explain: bool = False,
    **overrides: Any,
) -> Request:
    """Check the arguments of `recall`; `overrides` are options of the profile."""
    mode = checks.check_choice(mode, "mode", ("hybrid", "vector", "keyword"))
    if group_by is not None and not (isinstance(group_by, str) and group_by == "source"):
        raise InvalidInput(f"group_by is {checks.shown(group_by)}: 'source' or None")
    chosen = resolve_profile(default_profile if profile is None else profile).override(overrides)
    if min_score is not None:
        chosen = chosen.override({"min_score": min_score})
    if mode != "hybrid":
        # One signal alone; what the caller asks for by name in this very call still stands.
        named = (*by_own_names(overrides), *(() if min_score is None else ("min_score",)))
        asked = {name: getattr(chosen, name) for name in named}
        alone = {"vector_weight": float(mode == "vector"), "keyword_weight": float(mode == "keyword")}
        chosen = chosen.override({**_PLAIN, **asked, **alone, "fusion": "weighted"})
    if limit is None:
        limit = chosen.limit
    if checks.check_count(limit, "limit") > MAX_LIMIT:
        raise InvalidInput(f"limit is {limit:,}: at most {MAX_LIMIT:,}; use list() to walk through a store")
    return Request(
        profile=chosen,
        filter=build_filter(
            base, scope=scope, where=where, kinds=kinds, tags=tags, since=since, until=until, as_of=as_of
        ),
        mode=mode,  # type: ignore[arg-type]
        limit=limit,
        now=checks.now_us(),
        group_by=group_by,
        token_budget=None if token_budget is None else checks.check_count(token_budget, "token_budget"),
        explain=bool(explain),
    )


def build_filter(
    base: str,
    *,
    scope: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    kinds: Sequence[str] | str | None = None,
    tags: Sequence[str] | None = None,
    since: object = None,
    until: object = None,
    as_of: object = None,
) -> Filter:
    """The filter that these arguments describe, within the scope `base`."""
    if kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else checks.check_list(kinds, "kinds")
    if where is not None and not isinstance(where, Mapping):
        raise InvalidFilter(f"where is {checks.shown(where)}: give a dict such as {{'importance': {{'gte': 0.5}}}}")
    chosen = Filter(
        scopes=_scopes(base, scope),
        kinds=() if kinds is None else tuple(checks.check_name(kind, "a kind") for kind in kinds),
        tags=() if tags is None else checks.check_tags(tags),
        where=dict(where) if where else None,
        since=checks.check_time(since, "since"),
        until=checks.check_time(until, "until"),
        as_of=checks.check_time(as_of, "as_of"),
        base=base,
    )
    where_condition(chosen)
    return chosen


def _scopes(base: str, scope: str | Sequence[str] | None) -> tuple[str, ...]:
    """The scopes to search as the store knows them, each once; none where everything is asked for."""
    if scope is None or isinstance(scope, str):
        asked: list[str | None] = [scope]
    else:
        try:
            asked = checks.check_list(scope, "scope")
        except InvalidInput:
            raise InvalidFilter(
                f"scope is {checks.shown(scope)}: give a path such as '/team/project', or a list of them"
            ) from None
        if not asked:
            raise InvalidFilter("scope is an empty list: give at least one, or leave it out")
        for each in asked:
            checks.check_scope(each)
        if len(asked) > _MOST_SCOPES:
            raise InvalidFilter(f"scope lists {len(asked):,} scopes: at most {_MOST_SCOPES:,}; give what they are in")
    joined = [checks.join_scopes(base, each) for each in asked]
    if None in joined or "/" in joined:
        return ()
    return tuple(dict.fromkeys(each for each in joined if each is not None))
