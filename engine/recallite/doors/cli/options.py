"""The options that commands share, each declared once, and what becomes of their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from recallite.errors import InvalidInput

if TYPE_CHECKING:
    from recallite.memory import Memory
    from recallite.model.settings import Settings


def option(metavar: str, help: str, *names: str) -> Any:
    """An option with a value; without names it is called as its parameter."""
    return typer.Option(*names, metavar=metavar, help=help)


def flag(help: str, *names: str) -> Any:
    """An option without a value."""
    return typer.Option(*names, help=help)


def argument(metavar: str, help: str | None = None) -> Any:
    """An argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


AsJson = Annotated[bool, flag("Print JSON.", "--json")]
Id = Annotated[str, argument("ID", "The id of a memory, or an unambiguous start or end.")]
Ids = Annotated[list[str] | None, argument("ID", "The id of a memory, or an unambiguous start or end.")]
Direction = Annotated[str, option("DIRECTION", "out, in or both.")]
LinkTypes = Annotated[list[str] | None, option("TYPE", "Only links of this type; repeat for more.", "--type")]
Scope = Annotated[str | None, option("/A/B", "Only this scope and those below it.")]
Where = Annotated[str | None, option("JSON", """Only what this matches, e.g. '{"importance": {"gte": 0.5}}'.""")]
Mode = Annotated[str | None, option("MODE", "hybrid (the default), vector or keyword.")]
Overrides = Annotated[
    list[str] | None, option("NAME=VALUE", "An option of the profile, for this call: neighbor_boost=0.", "--set")
]
Vector = Annotated[str | None, option("JSON", "The vector itself, as a JSON list of numbers.")]
Importance = Annotated[float, typer.Option(help="From 0 to 1.")]
Pinned = Annotated[bool, flag("Never prune it.", "--pinned")]
Tag = Annotated[list[str] | None, option("TAG", "A tag; repeat for more.")]
Format = Annotated[
    str | None, option("FORMAT", "jsonl, csv, text or markdown (a folder). Default: by the file's name.")
]
Limit = Annotated[int, typer.Option("--limit", "-n", help="The most to show.")]
Agent = Annotated[str | None, option("NAME", "The agent; without it, the scope's own.")]
Within = Annotated[str | None, option("/A/B", "Within this scope.", "--scope")]
Yes = Annotated[bool, flag("Do not ask for confirmation.", "--yes", "-y")]


class SelectOptions(TypedDict, total=False):
    """Which memories, whatever their time."""

    scope: Scope
    kind: Annotated[list[str] | None, option("KIND", "Only this kind; repeat for more.")]
    tag: Annotated[list[str] | None, option("TAG", "Any of these tags; repeat for more.")]
    where: Where


class FilterOptions(SelectOptions, total=False):
    """Which memories."""

    since: Annotated[str | None, option("TIME", "Not older than this: a date, or ISO 8601 with an offset.")]
    until: Annotated[str | None, option("TIME", "Not newer than this.")]
    as_of: Annotated[str | None, option("TIME", "What the store knew at this time.")]
    valid_at: Annotated[str | None, option("TIME", "What held at this time, superseded since or not.")]
    include_superseded: Annotated[bool | None, flag("Also what others have superseded.", "--include-superseded")]


class LimitOption(FilterOptions, total=False):
    """Which memories, and how many."""

    limit: Annotated[
        int | None, typer.Option("--limit", "-n", help="The most hits to show. Default: the profile's limit.")
    ]


class RankOptions(TypedDict, total=False):
    """How memories are ranked."""

    mode: Mode
    profile: Annotated[str | None, option("NAME", "A named set of recall's options.")]
    group_by: Annotated[str | None, option("source", "Only the best hit of each source.")]
    diversify_by: Annotated[
        str | None, option("time|source", "Cover the relevant times or sources; the hits come in order of time.")
    ]
    token_budget: Annotated[int | None, typer.Option(help="Only hits that fit into so many tokens.")]
    min_score: Annotated[float | None, typer.Option(help="Drop hits that score below this.")]
    min_confidence: Annotated[float | None, typer.Option(help="Drop hits of a confidence below this.")]
    relevant: Annotated[bool, typer.Option("--relevant", help="Only what answers: nothing if nothing does.")]
    overrides: Overrides


class RecallOptions(LimitOption, RankOptions, total=False):
    """Which memories, how many, and how they are ranked."""

    vector: Vector


class EvaluationOptions(FilterOptions, RankOptions, total=False):
    """Which memories, and how they are ranked, for many questions of the same number of hits."""


# The options that may be repeated are called in the singular.
_FIELDS = {"kind": "kinds", "tag": "tags"}
SETTINGS = "recallite.settings"
"""Where a context keeps the path that --settings gives."""
_settings: dict[str, Any] = {"compile_kernels": False}  # a command that ends at once starts no compiler


@contextmanager
def open_memory(
    context: typer.Context, scope: str | None = None, *, create: bool = False, lasting: bool = False,
    dry_run: bool = False,
) -> Iterator[Memory]:  # fmt: skip
    """The memory that --db names, bound to a scope if one is given.

    Its settings are those of --settings, and unless it is `lasting` those of a process that ends at once. Raises
    InvalidInput where the file is missing, unless `create`: a mistyped path is no empty store. What a `dry_run`
    would create is kept in memory.
    """
    from msgspec import structs

    from recallite.memory import Memory
    from recallite.model.environment import default_path
    from recallite.store.opening import shown_path, store_exists

    given = chosen_settings(context)
    place = default_path() if context.obj is None else context.obj
    if not create and not store_exists(place):
        raise InvalidInput(
            f"there is no store at {shown_path(place)}: check --db and RECALLITE_DB, or make one with remember, "
            "import or knowledge ingest"
        )
    if dry_run and not store_exists(place):
        place = ":memory:"
    with Memory(place, settings=given if lasting else structs.replace(given, **_settings)) as memory:
        yield memory if scope is None else memory.scoped(scope)


def chosen_settings(context: typer.Context) -> Settings:
    """The settings of --settings or RECALLITE_SETTINGS."""
    from recallite.compat import load_settings
    from recallite.model.environment import environment
    from recallite.model.settings import Settings

    path = context.meta.get(SETTINGS) or environment("RECALLITE_SETTINGS")
    return Settings() if path is None else load_settings(path)


def new_key(path: str | None, *, decrypt: bool) -> str | None:
    """The new key of rekey: that in a file or in RECALLITE_NEW_KEY; None to decrypt."""
    from recallite.model.environment import environment, key_in

    if path is not None and decrypt:
        raise InvalidInput("--decrypt removes the key: leave --new-key-file out")
    if decrypt:
        return None
    key = environment("RECALLITE_NEW_KEY") if path is None else key_in(path)
    if not key:
        raise InvalidInput("there is no new key: set RECALLITE_NEW_KEY, or give --new-key-file or --decrypt")
    return key


def parse_json(text: str | None, option: str, *, kind: type = dict) -> Any:
    """The value of an option that takes JSON."""
    if text is None:
        return None
    import msgspec

    from recallite.system.messages import shown

    wanted = "object" if kind is dict else "list"
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as fault:
        raise InvalidInput(
            f"{option} {shown(text)} is not JSON ({fault}): give a JSON {wanted} in single quotes"
        ) from None
    if not isinstance(value, kind):
        raise InvalidInput(f"{option} is {shown(text)}: give a JSON {wanted}")
    return value


def filter_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a filter that were given, as the verbs of `Memory` take them."""
    fields = ((_FIELDS.get(name, name), options.get(name)) for name in FilterOptions.__annotations__)
    given = {name: value for name, value in fields if value is not None and value != []}
    if "where" in given:
        given["where"] = parse_json(given["where"], "--where")
    return given


def recall_fields(options: Mapping[str, Any], **beside: Any) -> dict[str, Any]:
    """The arguments of `Memory.recall` that were given; `beside` are further options."""
    from recallite.recall.request import recall_arguments

    return recall_arguments(recall_options(options) | beside)


def recall_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a recall that were given, by name: choices of the profile and fields of a filter among them."""
    own = RecallOptions.__annotations__.keys() - FilterOptions.__annotations__.keys() - {"overrides"}
    given = {name: options[name] for name in own if options.get(name) is not None and options[name] is not False}
    if "vector" in given:
        given["vector"] = parse_json(given["vector"], "--vector", kind=list)
    return filter_fields(options) | _overrides(options.get("overrides")) | given


def _overrides(pairs: list[str] | None) -> dict[str, Any]:
    """The options of `--set name=value`."""
    from recallite.model.profiles import OPTIONS

    return parse_pairs(pairs, "--set", [name for name in OPTIONS if name != "limit"])  # which has its own option


def parse_pairs(pairs: list[str] | None, option: str, allowed: Sequence[str]) -> dict[str, Any]:
    """The values of a repeated option `name=value`: JSON values, and plain words as they are."""
    import msgspec

    from recallite.system.messages import shown

    chosen: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in allowed:
            raise InvalidInput(f"{option} is {shown(pair)}: give name=value with one of {', '.join(allowed)}")
        try:
            chosen[name] = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            chosen[name] = text
    return chosen
