"""Commands that move memories in and out: import, export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.options import AsJson, Format, Kinds, Scope, Tags, Where, open_memory, parse_json
from recollect.cli.output import fail_quietly, hint, print_json, print_rows, progress
from recollect.cli.streams import stdin_stream, stdout_stream
from recollect.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.reports import Exported, FileTrouble, Restored

__all__ = ["export", "import_", "show_exported", "show_restored"]


def import_(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The file, or a folder of Markdown; - is standard input.", show_default=False
        ),
    ],
    format: Format = None,
    scope: Annotated[str, typer.Option(metavar="/A/B", help="Put this before the scopes of the file.")] = "/",
    batch_size: Annotated[int, typer.Option(help="Memories a transaction.")] = 1024,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Of a folder: take the file's where the store has changed too.")
    ] = False,
    forget_missing: Annotated[
        bool, typer.Option("--forget-missing", help="Of a folder: forget memories that were taken out of its files.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read memories from JSON lines, CSV or plain text: what is here already is skipped. Or from a folder of Markdown:
    what was changed there is updated.
    """
    if Path(file).is_dir():
        _import_folder(context, file, scope, overwrite=overwrite, forget_missing=forget_missing, as_json=as_json)
        return
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
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The file; - is standard output; the folder for Markdown.", show_default=False
        ),
    ],
    format: Format = None,
    scope: Scope = None,
    where: Where = None,
    kind: Kinds = None,
    tag: Tags = None,
    vectors: Annotated[bool, typer.Option("--vectors", help="With vectors, which JSON lines can hold.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Of Markdown: replace files that were changed since the last export.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write memories as JSON lines (without loss), CSV or plain text: a file is replaced when all is written. Or as
    Markdown to a folder, a file a scope and month, which import reads back with what people changed in it.
    """
    if format == "markdown":
        if file == "-":
            raise InvalidInput("Markdown is a folder of files: name the folder")
        chosen = {"scope": scope, "where": parse_json(where, "--where"), "kinds": kind or None, "tags": tag or None}
        with open_memory(context) as memory, progress("exporting", "memories") as report:
            done = memory.export_folder(file, **chosen, overwrite=overwrite, on_progress=report)
        show_exported(done, as_json=as_json)
        return
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


def show_exported(done: Exported, *, as_json: bool) -> None:
    """Print the receipt of an export to a folder; exit code 1 where files were left as they are."""
    if as_json:
        print_json(done)
    else:
        print_rows(
            ("", ""),
            [(done.records, "exported"), (len(done.written), "files written"), (done.unchanged, "files as they were"),
             (len(done.removed), "files removed")],
        )  # fmt: skip
        _show_troubles(done.conflicts)
    fail_quietly(bool(done.conflicts))


def show_restored(done: Restored, *, as_json: bool) -> None:
    """Print the receipt of an import of a folder; exit code 1 where something was left out."""
    if as_json:
        print_json(done)
    else:
        print_rows(
            ("", ""),
            [(done.created, "imported"), (done.updated, "updated"), (done.unchanged, "here already"),
             (done.links, "links"), (len(done.missing), "taken out of their files"), (done.forgotten, "forgotten")],
        )  # fmt: skip
        _show_troubles(done.problems)
    fail_quietly(bool(done.problems))


def _import_folder(
    context: typer.Context, folder: str, scope: str, *, overwrite: bool, forget_missing: bool, as_json: bool
) -> None:
    with open_memory(context) as memory, progress("importing", "files") as report:
        within = memory if scope == "/" else memory.scoped(scope)
        done = within.import_folder(folder, overwrite=overwrite, forget_missing=forget_missing, on_progress=report)
    show_restored(done, as_json=as_json)


def _show_troubles(troubles: Sequence[FileTrouble]) -> None:
    for each in troubles:
        hint(f"{each.path}{'' if each.line is None else f':{each.line}'}: {each.reason}")
