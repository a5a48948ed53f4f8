"""A command: `recallite longest` prints the longest memories, longest first."""

from __future__ import annotations

from typing import Annotated

import typer

from recallite.doors.cli.options import open_memory


def longest(
    context: typer.Context,
    limit: Annotated[int, typer.Option(help="How many to print.", min=1)] = 5,
) -> None:
    """Print the longest memories."""
    with open_memory(context) as memory:
        records = sorted(memory.list(limit=None), key=lambda record: len(record.text), reverse=True)
    for record in records[:limit]:
        typer.echo(f"{len(record.text):>6}  {record.text}")
