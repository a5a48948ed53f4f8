"""The options that commands share, each declared once, and what becomes of their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import click

from recallite.doors.cli.parameters import argument, flag, number, option
from recallite.errors import InvalidInput

if TYPE_CHECKING:
    from recallite.memory import Memory
    from recallite.model.settings import Settings


AsJson = Annotated[bool, flag("Print JSON.", "--json")]
Id = Annotated[str, argument("ID", "The id of a memory, or an unambiguous start or end.")]
Ids = Annotated[list[str] | None, argument("ID", "The id of a memory, or an unambiguous start or end.")]
Overrides = Annotated[
    list[str] | None, option("NAME=VALUE", "An option of the profile, for this call: neighbor_boost=0.", "--set")
]
Format = Annotated[
    str | None, option("FORMAT", "jsonl, csv, text or markdown (a folder). Default: by the file's name.")
]
Limit = Annotated[int, number("The most to show.", "--limit", "-n")]
Agent = Annotated[str | None, option("NAME", "The agent; without it, the scope's own.")]
Within = Annotated[str | None, option("/A/B", "Within this scope.", "--scope")]
Yes = Annotated[bool, flag("Do not ask for confirmation.", "--yes", "-y")]


SETTINGS = "recallite.settings"
"""Key under which a context keeps the path that --settings gives."""


@contextmanager
def open_memory(
    context: click.Context, scope: str | None = None, *, create: bool = False, lasting: bool = False,
    dry_run: bool = False,
) -> Iterator[Memory]:  # fmt: skip
    """The memory that --db names, bound to a scope if one is given.

    Its settings are those of --settings. Unless it is `lasting`, no kernels are compiled. What a `dry_run` would create
    is kept in memory. Raises InvalidInput where the file is missing, unless `create`: a typing error makes no store.
    """
    from msgspec import structs

    from recallite.memory import Memory
    from recallite.model.environment import default_path
    from recallite.store.opening import shown_path, store_exists

    settings = chosen_settings(context)
    place = default_path() if context.obj is None else context.obj
    if not create and not store_exists(place):
        raise InvalidInput(
            f"there is no store at {shown_path(place)}: check --db and RECALLITE_DB, or make one with remember, "
            "import or knowledge ingest"
        )
    if dry_run and not store_exists(place):
        place = ":memory:"
    with Memory(place, settings=settings) as memory:
        if not lasting:  # a command that ends at once starts no compiler
            memory._engine.tuning = structs.replace(memory._engine.tuning, compile_kernels=False)
        yield memory if scope is None else memory.scoped(scope)


def chosen_settings(context: click.Context) -> Settings:
    """The settings of --settings or RECALLITE_SETTINGS."""
    from recallite.compat import load_settings
    from recallite.model.environment import environment
    from recallite.model.settings import Settings

    path = context.meta.get(SETTINGS) or environment("RECALLITE_SETTINGS")
    return Settings() if path is None else load_settings(path)


@contextmanager
def packages_of(extra: str) -> Iterator[None]:
    """Around imports for a server: a missing package is an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as fault:
        from recallite.system.messages import install_command

        raise InvalidInput(f"the server needs the package {fault.name}: {install_command(extra)}") from None


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


def parse_overrides(pairs: list[str] | None) -> dict[str, Any]:
    """The options of `--set name=value`."""
    from recallite.model.settings import OPTIONS

    return parse_pairs(pairs, "--set", [name for name in OPTIONS if name != "limit"])  # which has its own option


def recall_fields(fields: Mapping[str, Any], overrides: list[str] | None) -> dict[str, Any]:
    """The arguments of a recall from its options and `--set`."""
    from recallite.recall.request import recall_arguments

    return recall_arguments({**fields, **parse_overrides(overrides)})


def parse_pairs(pairs: list[str] | None, option: str, allowed: Sequence[str]) -> dict[str, Any]:
    """The values of a repeated option `name=value`: JSON values, and plain words as they are."""
    import msgspec

    from recallite.system.messages import shown

    values: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in allowed:
            raise InvalidInput(f"{option} is {shown(pair)}: give name=value with one of {', '.join(allowed)}")
        try:
            values[name] = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            values[name] = text
    return values
