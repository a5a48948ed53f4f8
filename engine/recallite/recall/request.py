"""The arguments of a recall, checked once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.filters import Filter, FilterFields, bound_filter
from recallite.model.profiles import Profile, ProfileChoices, resolve_profile
from recallite.system.messages import shown

Mode = Literal["hybrid", "vector", "keyword"]
_PLAIN = {
    "spread": 0.0, "decay": "none", "importance_weight": 0.0, "mmr_lambda": None, "min_score": 0.0,
    "min_confidence": 0.0, "rerank_weight": 0.0, "speaker_weight": 0.0, "date_weight": 0.0, "composition": "product",
    "keyword_fallback": False, "long_query_chars": None, "adaptive": False, "standing": 0, "superseded": "ignore",
    "steps": 0,
}  # fmt: skip
MAX_LIMIT = 10_000
ANSWER_CONFIDENCE, ANSWER_SHARE = 0.12, 0.5
"""The least confidence of an answer, and its least share of the best hit's. The first keeps 95 % of right hits."""
# MMR chooses among this many times the limit, and at least this many.
_MMR_POOL, _MMR_LEAST = 4, 32
# What is spread is chosen among this many times the limit.
_SPREAD_POOL = 8


class RecallOptions(FilterFields, ProfileChoices, total=False):
    """The keyword arguments of `recall`: its own, the fields of a filter, and choices of the profile for this call.

    - filter: a `Filter`, in place of its fields
    - mode: "hybrid", or "vector" or "keyword" for one signal alone, without spreading, decay, MMR or thresholds
    - profile: "default", "reeve", "hermes", "memweave" or a `Profile`
    - relevant: leave out what does not answer: hits with a confidence below 0.12 (or `min_confidence`, if it is more),
      and those that are less than half as sure as the best; nothing is left if nothing answers
    - group_by: "source" for one hit per source
    - spread_over: "time" or "source" for hits that cover the relevant periods or sources, in order of time and not of
      score; in place of MMR
    - token_budget: as many hits as fit, at least the best
    - count_access: whether the hits count as accessed, which `accessed_at` and `access_count` tell; True
    - explain: each hit's signals also hold its rank in each signal (`cosine_rank`, ..., 0 for none), from 1
    """

    filter: Filter | None
    mode: Mode
    profile: str | Profile | None
    relevant: bool
    group_by: Literal["source"] | None
    spread_over: Literal["time", "source"] | None
    token_budget: int | None
    explain: bool
    count_access: bool


class Request(Struct, frozen=True, kw_only=True):
    """What every query of one call shares. Times are microseconds since 1970 UTC.

    Without `counted` its hits are no accesses of their records. `relevant` leaves out hits that are less than half as
    sure as the best. `own_words` says that what the user said is asked for, not what was said to them; `about_past`
    that the questions were recognised as being about the past.
    """

    profile: Profile
    filter: Filter
    mode: Mode = "hybrid"
    limit: int = 10
    now: int
    relevant: bool = False
    group_by: str | None = None
    spread_over: str | None = None
    own_words: bool = False
    about_past: bool = False
    token_budget: int | None = None
    explain: bool = False
    counted: bool = True

    @property
    def clock(self) -> int:
        """The moment ages are measured from."""
        return self.now if self.filter.as_of is None else self.filter.as_of

    @property
    def wanted(self) -> int:
        """How many candidates by each signal."""
        multiplier = self.profile.candidate_multiplier
        if self.spread_over is not None:
            multiplier = max(multiplier, _SPREAD_POOL)
        return max(self.profile.candidates, multiplier * self.limit)

    @property
    def mmr_pool(self) -> int:
        """How many of the best MMR chooses among."""
        return max(_MMR_POOL * self.limit, _MMR_LEAST)

    @property
    def time_range(self) -> str | None:
        """The times asked for, in words; None where any will do."""
        since, until = map(checks.optional_datetime, (self.filter.since, self.filter.until))
        if since is None:
            return None if until is None else f"not later than {until.isoformat()}"
        if until is None:
            return f"not before {since.isoformat()}"
        return f"from {since.isoformat()} to {until.isoformat()}"


def _chosen(profile: Profile, mode: str, options: dict[str, Any]) -> Profile:
    """The profile with the choices of a call."""
    chosen = profile.override(options)
    if mode != "hybrid":
        # One signal alone; options that this call names are kept.
        asked = {name: getattr(chosen, name) for name in options}
        alone = {"vector_weight": float(mode == "vector"), "keyword_weight": float(mode == "keyword")}
        chosen = chosen.override({**_PLAIN, **asked, **alone, "fusion": "weighted"})
    return chosen


# Checking a profile took 4 % of a recall from 1,000 records, and calls repeat their options. Typed: True is no 1.
@lru_cache(maxsize=64, typed=True)
def _chosen_again(profile: Profile, mode: str, names: tuple[str, ...], *values: Any) -> Profile:
    return _chosen(profile, mode, dict(zip(names, values, strict=True)))


@lru_cache(maxsize=64)
def _unfiltered(base: str) -> Filter:
    return bound_filter(base, None, {})


def build_request(
    base: str,
    default_profile: str | Profile,
    /,
    *,
    mode: str = "hybrid",
    limit: int | None = None,
    filter: Filter | None = None,
    profile: str | Profile | None = None,
    relevant: bool = False,
    group_by: str | None = None,
    spread_over: str | None = None,
    token_budget: int | None = None,
    explain: bool = False,
    count_access: bool = True,
    **options: Any,
) -> Request:
    """Check the arguments of `recall`; `options` are the fields of a filter and choices of the profile."""
    fields = {name: options.pop(name) for name in FilterFields.__annotations__ if name in options}
    if options.get("min_score", 0.0) is None:
        del options["min_score"]
    mode = checks.check_choice(mode, "mode", ("hybrid", "vector", "keyword"))
    if group_by is not None and not (isinstance(group_by, str) and group_by == "source"):
        raise InvalidInput(f"group_by is {shown(group_by)}: 'source' or None")
    if spread_over is not None:
        checks.check_choice(spread_over, "spread_over", ("time", "source"))
        if group_by is not None and spread_over == "source":
            raise InvalidInput("group_by='source' gives one hit a source already: leave out spread_over, or use 'time'")
    given = resolve_profile(default_profile if profile is None else profile)
    try:
        chosen = _chosen_again(given, mode, tuple(options), *options.values())
    except TypeError:  # a value that cannot be a key
        chosen = _chosen(given, mode, options)
    if checks.check_flag(relevant, "relevant") and chosen.min_confidence < ANSWER_CONFIDENCE:
        chosen = _chosen_again(chosen, "hybrid", ("min_confidence",), ANSWER_CONFIDENCE)
    if limit is None:
        limit = chosen.limit
    if checks.check_count(limit, "limit") > MAX_LIMIT:
        raise InvalidInput(f"limit is {limit:,}: at most {MAX_LIMIT:,}; use list() to walk through a store")
    return Request(
        profile=chosen,
        filter=bound_filter(base, filter, fields) if fields or filter is not None else _unfiltered(base),
        mode=mode,  # type: ignore[arg-type]
        limit=limit,
        now=checks.now_us(),
        relevant=relevant,
        group_by=group_by,
        spread_over=spread_over,
        token_budget=None if token_budget is None else checks.check_count(token_budget, "token_budget"),
        explain=bool(explain),
        counted=checks.check_flag(count_access, "count_access"),
    )
