"""The arguments of a recall, checked once, and its answer as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, get_args

from msgspec import Struct, structs

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.filters import FIELD_NAMES, Filter, bound_filter
from recallite.model.settings import OPTIONS, Profile, resolve_profile, unknown_option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recallite.recall.confidence import Missing

Mode = Literal["hybrid", "vector", "keyword"]
Diversity = Literal["time", "source", "one_per_source", "one_per_source_over_time"]
Purpose = Literal["use", "inspect", "explain"]
_DIVERSITIES, _PURPOSES = get_args(Diversity), get_args(Purpose)
_PLAIN = {
    "neighbor_boost": 0.0, "half_life_days": 0.0, "importance_weight": 0.0, "mmr_lambda": None, "min_score": 0.0,
    "min_confidence": 0.0, "rerank_weight": 0.0, "speaker_weight": 0.0, "date_weight": 0.0, "composition": "product",
    "keyword_fallback": False, "long_query_chars": None, "adaptive": False, "standing_instructions": 0,
    "superseded": "as_ranked", "hops": 0, "reading": None,
}  # fmt: skip
_PARAMETERS = {"query", "limit", "vector"}
_NOTHING = {type(None)}
MAX_LIMIT = 10_000
ANSWER_CONFIDENCE, ANSWER_SHARE = 0.15, 0.5
"""The least confidence of an answer, and its least share of the best hit's. The first keeps 95 % of right hits."""
# What remains to be spread over if each source gives one hit.
_ONE_PER_SOURCE: dict[str | None, str | None] = {"one_per_source": None, "one_per_source_over_time": "time"}


class RecallOptions(TypedDict, total=False):
    """The keyword arguments that `recall` shares with everything else that recalls.

    - mode: "hybrid", or "vector" or "keyword" for one signal alone, without spreading, decay, MMR or thresholds
    - profile: how to rank: the name of a preset, a `Profile`, or choices in place of those of the store's profile, as
      {"neighbor_boost": 0}; with "name" in place of those of that preset
    - relevant: leave out what does not answer: hits with a confidence below 0.15, or 0.18 if they were read (or the
      profile's `min_confidence`, if it is more), and those that are less than half as sure as the best; nothing is left
      if nothing answers. Of one to three words that do not ask, every hit that has all of them stays; a question about
      a whole story is not cut
    - scope, kinds, sessions, tags, where, as_of, valid_at: fields of a filter; with `sessions` the messages of sessions
      are found too
    - filter: a `Filter`, in place of its fields; it has further ones: `since`, `until`, `include_superseded`
    - diversify_by: "time" or "source" for hits that cover the relevant periods or sources, in order of time and not of
      score; in place of MMR. "one_per_source" for the best hit of each source, in order of score, and
      "one_per_source_over_time" for those that cover the periods
    - token_budget: as many hits as fit, at least the best
    - purpose: "use" counts the hits as accessed (`accessed_at`, `access_count`); "inspect" and "explain" do not.
      "explain" adds to each hit's signals its rank by each of them, from 1 (`cosine_rank`, ...; 0 for none)
    """

    mode: Mode
    profile: str | Profile | Mapping[str, Any] | None
    relevant: bool
    scope: str | Sequence[str] | None
    kinds: str | Sequence[str] | None
    sessions: bool
    tags: Sequence[str] | None
    where: Mapping[str, Any] | None
    as_of: date | str | None
    valid_at: date | str | None
    filter: Filter | None
    diversify_by: Diversity | None
    token_budget: int | None
    purpose: Purpose


# Options as they are if not given. Those of no filter and no profile are parameters of `_plain_request`, in this order.
_IN_FILTER = ("scope", "kinds", "tags", "where", "as_of", "valid_at")
_ABSENT: dict[str, Any] = {
    **dict.fromkeys(RecallOptions.__annotations__), "mode": "hybrid", "relevant": False, "sessions": False,
    "purpose": "use",
}  # fmt: skip


class Request(Struct, frozen=True, kw_only=True):
    """The part that every query of one call shares. Times are microseconds since 1970 UTC.

    - relevant: leave out hits that are less than half as sure as the best; `own_least` is the profile's
      `min_confidence` before it was raised to an answer's
    - keywords: the questions are words alone, and hits that have all of them need no confidence
    - own_words: what the user said is asked for, not what was said to them
    - counted: hits count as accesses of their records
    """

    profile: Profile
    filter: Filter
    mode: Mode = "hybrid"
    limit: int = 10
    now: int
    relevant: bool = False
    own_least: float = 0.0
    keywords: bool = False
    one_per_source: bool = False
    diversify_by: str | None = None
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
    def takes_steps(self) -> bool:
        """Whether what further steps of a question find may join its hits."""
        ranked = not self.one_per_source and self.diversify_by is None and self.token_budget is None
        return ranked and self.profile.adaptive and self.profile.hops > 0

    @property
    def time_range(self) -> str | None:
        """The times asked for, in words; None where any will do."""
        since, until = map(checks.optional_datetime, (self.filter.since, self.filter.until))
        if since is None:
            return None if until is None else f"not later than {until.isoformat()}"
        if until is None:
            return f"not before {since.isoformat()}"
        return f"from {since.isoformat()} to {until.isoformat()}"


# Checking arguments took 4 % of a recall from 1,000 records, and calls repeat their options. Typed: True is no 1.
@lru_cache(maxsize=64, typed=True)
def _plain_request(
    base: str, shared: tuple[str, ...], limit: int | None, mode: str, relevant: bool, diversify_by: str | None,
    token_budget: int | None, purpose: str, preset: str | Profile, names: tuple[str, ...], *values: Any,
) -> Request:  # fmt: skip
    """The request without a filter's fields and without a time; the profile has the choices of a call."""
    mode = checks.check_choice(mode, "mode", ("hybrid", "vector", "keyword"))
    options = dict(zip(names, values, strict=True))
    ranking = resolve_profile(preset).override(options)
    if mode != "hybrid":
        # One signal alone; options that this call names are kept.
        named = {name: getattr(ranking, name) for name in options}
        alone = {"vector_weight": float(mode == "vector"), "keyword_weight": float(mode == "keyword")}
        without = {name: value for name, value in _PLAIN.items() if hasattr(ranking, name)}
        ranking = ranking.override({**without, **named, **alone, "fusion": "weighted"})
    own_least = ranking.min_confidence
    if checks.check_flag(relevant, "relevant") and own_least < ANSWER_CONFIDENCE:
        ranking = ranking.override({"min_confidence": ANSWER_CONFIDENCE})
    if diversify_by is not None:
        checks.check_choice(diversify_by, "diversify_by", _DIVERSITIES)
    checks.check_choice(purpose, "purpose", _PURPOSES)
    return Request(
        profile=ranking,
        filter=bound_filter(base, None, {}, shared=shared),
        mode=mode,  # type: ignore[arg-type]
        limit=ranking.limit if limit is None else checks.check_count(limit, "limit"),
        now=0,
        relevant=relevant,
        own_least=own_least,
        one_per_source=diversify_by in _ONE_PER_SOURCE,
        diversify_by=_ONE_PER_SOURCE.get(diversify_by, diversify_by),
        token_budget=None if token_budget is None else checks.check_count(token_budget, "token_budget"),
        explain=purpose == "explain",
        counted=purpose == "use",
    )


def unknown_argument(method: str, name: str) -> InvalidInput:
    """The error for a keyword argument that `recall` and its like do not have."""
    return InvalidInput(unknown_option(method, name))


def build_request(
    base: str,
    default_profile: str | Profile,
    shared: tuple[str, ...] = (),
    /,
    *,
    limit: int | None = None,
    **options: Unpack[RecallOptions],
) -> Request:
    """Check the arguments of `recall`, of a handle bound to `base` that reads the `shared` scopes too."""
    given: dict[str, Any] = {**_ABSENT, **options}
    if len(given) > len(_ABSENT):
        raise TypeError(f"recall has no argument {min(given.keys() - _ABSENT.keys())}")
    choices: dict[str, Any] = {}
    profile, filter, sessions = given.pop("profile"), given.pop("filter"), given.pop("sessions")
    if isinstance(profile, Mapping):
        choices, profile = dict(profile), None
        profile = choices.pop("name", None)
    fields = {name: given.pop(name) for name in _IN_FILTER}
    chosen = default_profile if profile is None else profile, tuple(choices), *choices.values()
    plain = base, shared, limit, *given.values()
    try:
        request = _plain_request(*plain, *chosen)
    except TypeError:  # a value that cannot be a key
        request = _plain_request.__wrapped__(*plain, *chosen)
    if request.limit > MAX_LIMIT:
        raise InvalidInput(f"limit is {request.limit:,}: at most {MAX_LIMIT:,}; use list() to walk through a store")
    if sessions:
        fields["sessions"] = sessions
    if filter is None and _NOTHING.issuperset(map(type, fields.values())):
        return structs.replace(request, now=checks.now_us())
    return structs.replace(request, now=checks.now_us(), filter=bound_filter(base, filter, fields, shared=shared))


def recall_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `recall` from options by name, among which are choices of a profile and any field of a filter.

    The command line, HTTP and files of questions give them so. Raises InvalidInput for an unknown name.
    """
    arguments = {name: value for name, value in options.items() if name not in OPTIONS and name not in FIELD_NAMES}
    if unknown := [name for name in arguments if name not in RecallOptions.__annotations__.keys() | _PARAMETERS]:
        raise InvalidInput(unknown_option("recall", unknown[0]))
    fields = {name: value for name, value in options.items() if name in FIELD_NAMES and value is not None}
    if fields.keys() <= RecallOptions.__annotations__.keys():
        arguments |= fields
    elif arguments.get("filter") is not None:
        raise InvalidInput(f"filter and {next(iter(fields))} are both given: put {next(iter(fields))} into the Filter")
    else:
        arguments["filter"] = Filter(**fields)
    choices = {name: value for name, value in options.items() if name in OPTIONS and name != "limit"}
    if choices.get("min_score", 0.0) is None:
        del choices["min_score"]
    if choices:
        named = arguments.get("profile")
        base = named if isinstance(named, Mapping) else {"name": named} if isinstance(named, str) else {}
        arguments["profile"] = named.override(choices) if isinstance(named, Profile) else {**base, **choices}
    if "limit" in options:
        arguments["limit"] = options["limit"]
    return arguments


# What the kernel answers, until its records are hits.


class Trace(Struct, frozen=True):
    """Every candidate of a question: rows, signals float64 (signals, candidates), the candidates in order, and the
    scores before learned ranking; the features of the best and the evidence of the hits, float64 (kinds, ...).
    """

    rows: NDArray[np.int64]
    signals: NDArray[np.float64]
    order: NDArray[np.int64]
    formula: NDArray[np.float64]
    features: NDArray[np.float64]
    evidence: NDArray[np.float64]
    best_of: NDArray[np.int64] | None


class Answer(NamedTuple):
    """The hits of a question as columns, best first; the last are `brought` as standing ones.

    `signals` are in the order of `SHOWN`; successors are row ids, -1 for none. Gaps are found by `missing`, None for a
    decomposed question, which has its gaps.
    """

    row_ids: list[int]
    scores: list[float]
    confidence: list[float]
    reasons: list[int]
    signals: list[list[float]]
    successors: list[int]
    brought: int
    gaps: tuple[str, ...]
    trace: Trace | None = None
    missing: Missing | None = None

    def taken(self, ranks: Sequence[int]) -> Answer:
        """The hits of these ranks in their order, each with its score."""
        return Answer._make((*[[*map(column.__getitem__, ranks)] for column in self[:6]], *self[6:]))

    def reordered(self, ranks: Sequence[int]) -> Answer:
        """The first hits in the order of these ranks, while the scores keep their places; the others follow."""
        return self.taken([*ranks, *range(len(ranks), len(self.row_ids))])._replace(scores=self.scores)
