"""Commands that look after the store: stats, verify, rebuild, purge-expired, vacuum, backup, reembed, warmup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.options import AsJson, Scope, open_memory
from recollect.cli.output import hint, print_json, print_pairs, print_rows, progress

if TYPE_CHECKING:
    from recollect.records import Verification

__all__ = ["backup", "purge_expired", "rebuild", "reembed", "stats", "vacuum", "verify", "warmup"]


def stats(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the state of the store and of what serves it."""
    with open_memory(context) as memory:
        figures = memory.stats()
    if as_json:
        print_json(figures)
        return
    print_pairs({name: getattr(figures, name) for name in figures.__struct_fields__ if name != "notes"})
    for note in figures.notes:
        hint(f"note: {note}")


def verify(context: typer.Context, as_json: AsJson = False) -> None:
    """Check the file and everything derived from the memories; changes nothing."""
    with open_memory(context) as memory, progress("verifying", "memories") as report:
        found = memory.verify(on_progress=report)
    _print_verification(found, as_json=as_json)


def rebuild(context: typer.Context, as_json: AsJson = False) -> None:
    """Make everything derived afresh from the memories, and verify."""
    with open_memory(context) as memory, progress("rebuilding", "memories") as report:
        found = memory.rebuild(on_progress=report)
    _print_verification(found, as_json=as_json)


def purge_expired(context: typer.Context, scope: Scope = None, as_json: AsJson = False) -> None:
    """Purge the memories that have expired: until then they are not found, but in the file."""
    with open_memory(context) as memory:
        gone = memory.purge_expired(scope=scope)
    print_json(gone) if as_json else print_rows(("memories", ""), [(gone.records, "purged")])


def vacuum(context: typer.Context, as_json: AsJson = False) -> None:
    """Give unused space back to the file system."""
    with open_memory(context) as memory:
        freed = memory.vacuum()
    print_json({"bytes_freed": freed}) if as_json else print_rows(("", ""), [(f"{freed:,}", "bytes freed")])


def backup(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A new file.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Copy the store to a new file, while others read and write."""
    with open_memory(context) as memory, progress("copying", "pages") as report:
        path = memory.backup(file, on_progress=report)
    print_json({"path": path}) if as_json else typer.echo(path)


def reembed(context: typer.Context, as_json: AsJson = False) -> None:
    """Move the store to the configured embedder, or embed what still waits. It can be stopped and resumed."""
    with open_memory(context) as memory, progress("embedding", "memories") as report:
        embedded = memory.reembed(on_progress=report)
    print_json({"embedded": embedded}) if as_json else print_rows(("", ""), [(embedded, "embedded")])


def warmup(context: typer.Context, as_json: AsJson = False) -> None:
    """Compile the kernels and load the embedder and the index; shows the seconds each took."""
    with open_memory(context) as memory:
        with progress("compiling", "kernels") as report:
            seconds = memory.warmup(on_progress=report)
        backend = memory.stats().kernels
    if as_json:
        print_json({"seconds": seconds, "kernels": backend})
        return
    print_rows(("seconds", ""), [(f"{value:.3f}", name) for name, value in seconds.items()])
    hint(f"kernels: {backend}")


def _print_verification(found: Verification, *, as_json: bool) -> None:
    if as_json:
        print_json({"ok": found.ok, "records": found.records, "vectors": found.vectors, "problems": found.problems})
    else:
        print_rows(
            ("count", "problem", "examples", "remedy"),
            [(each.count, each.name, " ".join(each.examples), each.remedy) for each in found.problems],
        )
        outcome = "clean" if found.ok else f"{len(found.problems)} problems"
        hint(f"{found.records:,} records and {found.vectors:,} vectors: {outcome}")
    if not found.ok:
        raise typer.Exit(1)
