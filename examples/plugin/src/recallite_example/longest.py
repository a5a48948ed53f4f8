"""A command: `recallite longest` prints the longest memories, longest first."""

from __future__ import annotations

import click

from recallite_cli.command import open_memory


@click.command()
@click.option("--limit", type=click.IntRange(min=1), default=5, show_default=True, help="How many to print.")
@click.pass_context
def longest(context: click.Context, limit: int) -> None:
    """Print the longest memories."""
    with open_memory(context) as memory:
        records = sorted(memory.list(limit=None), key=lambda record: len(record.text), reverse=True)
    for record in records[:limit]:
        click.echo(f"{len(record.text):>6}  {record.text}")
