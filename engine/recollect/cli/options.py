"""Options that commands share, and what becomes of their text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.memory import Memory

__all__ = [
    "SETTINGS",
    "AsJson",
    "new_key",
    "open_memory",
    "open_within",
    "parse_json",
    "parse_overrides",
    "recall_options",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory.", show_default=False)]
Scope = Annotated[str | None, typer.Option(metavar="/A/B", help="Only this scope and those below it.")]
Where = Annotated[
    str | None, typer.Option(metavar="JSON", help="""Only what this matches, e.g. '{"importance": {"gte": 0.5}}'.""")
]
Kinds = Annotated[list[str] | None, typer.Option("--kind", metavar="KIND", help="Only this kind; repeat for more.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Any of these tags; repeat for more.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Not older than this, ISO 8601 with an offset.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Not newer than this.")]
AsOf = Annotated[str | None, typer.Option(metavar="TIME", help="As the store knew and the clock stood then.")]
Mode = Annotated[str, typer.Option(metavar="MODE", help="hybrid, vector or keyword.")]
ProfileName = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="A named set of choices of recall.")]
MinScore = Annotated[float | None, typer.Option(help="Drop hits that score below this.")]
MinConfidence = Annotated[float | None, typer.Option(help="Drop hits of a confidence below this.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any choice of the profile for this call, e.g. --set spread=0."),
]
Vector = Annotated[str | None, typer.Option(metavar="JSON", help="The vector itself, as a JSON list of numbers.")]
Format = Annotated[
    str | None,
    typer.Option(metavar="FORMAT", help="jsonl, csv, text or markdown (to a folder); else by the file's ending."),
]
Limit = Annotated[int, typer.Option("--limit", "-n", help="At most so many.")]
Agent = Annotated[str | None, typer.Option(metavar="NAME", help="Whose; without it, the scope's own.")]
Within = Annotated[str | None, typer.Option("--scope", metavar="/A/B", help="Within this scope.")]

SETTINGS = "recollect.settings"
"""Where a context keeps the path that --settings gives."""
_settings: dict[str, Any] = {"compile_kernels": False}  # a command that ends at once starts no compiler


def open_memory(context: typer.Context, **settings: Any) -> Memory:
    """The memory that --db names, with those of --settings and the settings of a process that ends at once."""
    from msgspec import structs

    from recollect.compat import load_settings
    from recollect.environment import environment
    from recollect.memory import Memory
    from recollect.settings import Settings

    path = context.meta.get(SETTINGS) or environment("RECOLLECT_SETTINGS")
    given = Settings() if path is None else load_settings(path)
    return Memory(context.obj, settings=structs.replace(given, **_settings, **settings))


def new_key(path: str | None, *, decrypt: bool) -> str | None:
    """The new key of rekey: that in a file or in RECOLLECT_NEW_KEY; None to decrypt."""
    from recollect.environment import environment, key_in

    if path is not None and decrypt:
        raise InvalidInput("--decrypt removes the key: leave --new-key-file out")
    if decrypt:
        return None
    key = environment("RECOLLECT_NEW_KEY") if path is None else key_in(path)
    if not key:
        raise InvalidInput("there is no new key: set RECOLLECT_NEW_KEY, or give --new-key-file or --decrypt")
    return key


@contextmanager
def open_within(context: typer.Context, scope: str | None) -> Iterator[Memory]:
    """`open_memory`, bound to a scope."""
    with open_memory(context) as memory:
        yield memory if scope is None else memory.scoped(scope)


def parse_json(text: str | None, option: str, *, kind: type = dict) -> Any:
    """The value of an option that takes JSON."""
    if text is None:
        return None
    import msgspec

    from recollect.checks import shown

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


def parse_overrides(pairs: list[str] | None) -> dict[str, Any]:
    """The choices of `--set name=value`: JSON values, and plain words as they are."""
    import msgspec

    from recollect.checks import shown
    from recollect.profiles import OPTIONS

    allowed = [name for name in OPTIONS if name != "limit"]  # which has its own option
    chosen: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in allowed:
            raise InvalidInput(f"--set is {shown(pair)}: give name=value with one of {', '.join(allowed)}")
        try:
            chosen[name] = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            chosen[name] = text
    return chosen


def recall_options(
    *, where: str | None, overrides: list[str] | None, min_confidence: float | None, vector: str | None, **plain: Any
) -> dict[str, Any]:
    """The keyword arguments of `Memory.recall` that the options ask for."""
    options = {name: value for name, value in plain.items() if value is not None and value != []}
    options |= parse_overrides(overrides)
    if min_confidence is not None:
        options["min_confidence"] = min_confidence
    if where is not None:
        options["where"] = parse_json(where, "--where")
    if vector is not None:
        options["vector"] = parse_json(vector, "--vector", kind=list)
    return options
