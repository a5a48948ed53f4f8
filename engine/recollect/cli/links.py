"""Commands that follow and undo: links, unlink, restore."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.options import AsJson, Id, Limit, open_memory
from recollect.cli.output import fail_quietly, print_json, print_rows

__all__ = ["links", "restore", "unlink"]


def links(
    context: typer.Context,
    id: Id,
    depth: Annotated[int, typer.Option(help="Over at most so many links.")] = 2,
    type: Annotated[
        list[str] | None, typer.Option(metavar="TYPE", help="Only over links of this type; repeat for more.")
    ] = None,
    direction: Annotated[str, typer.Option(help="out, in or both.")] = "both",
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """Show the memories that links lead to from one, nearest first."""
    with open_memory(context) as memory:
        found = memory.traverse(id, depth=depth, types=type or (), direction=direction, limit=limit)
    if as_json:
        print_json(found)
    else:
        rows = [(each.distance, f"{each.strength:.2f}", each.record.id, each.record.text) for each in found]
        print_rows(("distance", "strength", "id", "text"), rows)
    fail_quietly(not found)


def unlink(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FROM", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="TO", show_default=False)],
    type: Annotated[str | None, typer.Option(metavar="TYPE", help="Only the link of this type.")] = None,
    as_json: AsJson = False,
) -> None:
    """Remove the links from one memory to another; those the other way round stay."""
    with open_memory(context) as memory:
        removed = memory.unlink(source, target, type)
    print_json({"links": removed}) if as_json else print_rows(("links", ""), [(removed, "removed")])
    fail_quietly(not removed)


def restore(
    context: typer.Context,
    id: Id,
    to: Annotated[
        str,
        typer.Option(metavar="VERSION", help="Its place in history, from 0; -2 is the one before now; or a time."),
    ] = "-2",
    as_json: AsJson = False,
) -> None:
    """Make an earlier text of a memory its newest version; nothing is lost."""
    place = to.removeprefix("-")
    with open_memory(context) as memory:
        record = memory.restore(id, int(to) if place.isascii() and place.isdigit() and len(place) < 10 else to)
    print_json(record) if as_json else print_rows(("id", "text"), [(record.id, record.text)])
