"""Commands that look after the store: stats, verify, audit, rebuild, purge-expired, vacuum, backup, reembed, warmup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.options import AsJson, Scope, new_key, open_memory
from recollect.cli.output import hint, print_json, print_pairs, print_rows, progress

if TYPE_CHECKING:
    from recollect.reports import Verification

__all__ = ["audit", "backup", "purge_expired", "rebuild", "reembed", "rekey", "stats", "vacuum", "verify", "warmup"]

# As in recollect.audit, which is loaded when it is used.
_CHECKS = (
    "duplicates", "near-duplicates", "contradictions", "stale", "expired", "secrets", "instructions", "junk",
)  # fmt: skip


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


def audit(
    context: typer.Context,
    checks: Annotated[
        list[str] | None, typer.Argument(metavar="[CHECK]...", help=f"{', '.join(_CHECKS)}; all of them.")
    ] = None,
    scope: Scope = None,
    mend: Annotated[bool, typer.Option("--mend", help="Do what the findings of these checks propose.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what should not be in the memory, and the verb that would mend it; nothing changes without --mend.

    The exit status is 1 where something was found and not mended.
    """
    with open_memory(context) as memory, progress("auditing", "memories") as report:
        found = memory.audit(checks or None, scope=scope, mend=mend, on_progress=report)
    if as_json:
        print_json(found)
    else:
        rows = [
            (each.check, "mended" if each.mended else each.verb or "", each.id, each.reason, each.text)
            for each in found.findings
        ]
        print_rows(("check", "verb", "id", "reason", "text"), rows, under=("text",))
        for name, why in found.skipped.items():
            hint(f"{name} were not looked for: {why}")
    if not all(each.mended for each in found.findings):
        raise typer.Exit(1)


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


def rekey(
    context: typer.Context,
    new_key_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file whose first line is the new key; else RECOLLECT_NEW_KEY.")
    ] = None,
    decrypt: Annotated[bool, typer.Option("--decrypt", help="Write the store without encryption instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Encrypt the store with a new key; RECOLLECT_KEY or RECOLLECT_KEY_FILE gives the one it has, if it has one.

    A key is never an argument: the arguments of a process are seen by all users.
    """
    new = new_key(new_key_file, decrypt=decrypt)
    with open_memory(context) as memory:
        memory.rekey(new)
    state = "encrypted" if new is not None else "not encrypted"
    print_json({"encrypted": new is not None}) if as_json else hint(f"{memory.path} is {state} now")


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
