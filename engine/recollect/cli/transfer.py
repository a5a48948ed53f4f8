"""Commands that move memories in and out: import, export."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.options import AsJson, Format, Kinds, Scope, Tags, Where, open_memory, parse_json
from recollect.cli.output import hint, print_json, print_rows, progress
from recollect.cli.streams import stdin_stream, stdout_stream

__all__ = ["export", "import_"]


def import_(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file; - is standard input.", show_default=False)],
    format: Format = None,
    scope: Annotated[str, typer.Option(metavar="/A/B", help="Put this before the scopes of the file.")] = "/",
    batch_size: Annotated[int, typer.Option(help="Memories a transaction.")] = 1024,
    as_json: AsJson = False,
) -> None:
    """Read memories from JSON lines, CSV or plain text. What is here already is skipped."""
    with open_memory(context) as memory, progress("importing", "lines") as report:
        done = memory.import_(
            stdin_stream() if file == "-" else file,
            format=format, scope=scope, batch_size=batch_size, on_progress=report,
        )  # fmt: skip
    if as_json:
        print_json(done)
    else:
        print_rows(("", ""), [(done.records, "imported"), (done.skipped, "here already"), (done.links, "links")])


def export(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file; - is standard output.", show_default=False)],
    format: Format = None,
    scope: Scope = None,
    where: Where = None,
    kind: Kinds = None,
    tag: Tags = None,
    vectors: Annotated[bool, typer.Option("--vectors", help="With vectors, which JSON lines can hold.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write memories as JSON lines (without loss), CSV or plain text. A file is replaced when all is written."""
    with open_memory(context) as memory, progress("exporting", "memories") as report:
        count = memory.export(
            stdout_stream() if file == "-" else file,
            format=format, scope=scope, where=parse_json(where, "--where"), kinds=kind or None, tags=tag or None,
            vectors=vectors, on_progress=report,
        )  # fmt: skip
    if file == "-":
        hint(f"{count:,} memories exported")
    elif as_json:
        print_json({"records": count, "path": file})
    else:
        print_rows(("", ""), [(count, "exported")])
