"""The commands import and export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from recallite.errors import InvalidInput
from recallite.model.authority import check_authority, speaking_as
from recallite.model.reports import Exported, Imported, Restored
from recallite_cli.command import Format, Yes, argument, confirm, flag, number, open_memory, option, prints
from recallite_cli.output import hint, print_counts, print_rows, progress, stdin_stream, stdout_stream

if TYPE_CHECKING:
    from recallite.model.reports import FileTrouble
    from recallite_connect.exporters import ExportToReport
    from recallite_connect.importers import ImportReport


def print_exported(done: Exported) -> None:
    """The receipt of an export to a folder."""
    print_rows(
        ("", ""),
        [(done.records, "exported"), (len(done.written), "files written"), (done.unchanged, "files unchanged"),
         (len(done.removed), "files removed")],
    )  # fmt: skip
    _hint_troubles(done.conflicts)


def print_restored(done: Restored) -> None:
    """The receipt of an import of a folder."""
    print_rows(
        ("", ""),
        [(done.created, "imported"), (done.updated, "updated"), (done.unchanged, "already in the store"),
         (done.links, "links"), (len(done.missing), "no longer in their files"), (done.forgotten, "forgotten"),
         (len(done.left_out), "forgotten since, left out")],
    )  # fmt: skip
    if done.left_out:
        hint("what was forgotten in the store since the last export or import stays so: --overwrite stores it again")
    _hint_troubles(done.problems)


def _hint_troubles(troubles: Sequence[FileTrouble]) -> None:
    for trouble in troubles:
        hint(f"{trouble.path}{'' if trouble.line is None else f':{trouble.line}'}: {trouble.reason}")


def _print_imported(done: Imported | Restored | ImportReport) -> None:
    if isinstance(done, Restored):
        print_restored(done)
    elif not isinstance(done, Imported):
        print_rows(
            ("", ""),
            [(done.created, "would be imported" if done.dry_run else "imported"), (done.updated, "changed there"),
             (done.unchanged, "already in the store"), (done.links, "links"), (done.troubles_total, "not taken"),
             *((count, f"{what}, left out") for what, count in sorted(done.left_out.items()))],
        )  # fmt: skip
        _hint_troubles(done.troubles)
    else:
        print_counts("imported:records; already in the store:skipped; links")(done)
        for warning in done.warnings:
            hint(warning)


@prints(
    _print_imported,
    fails=lambda done: bool(done.problems) if isinstance(done, Restored) else getattr(done, "troubles_total", 0) > 0,
)
def import_(
    context: click.Context,
    file: Annotated[str | None, argument("FILE", "The file, or a folder of Markdown; - is standard input.")] = None,
    format: Format = None,
    from_: Annotated[str | None, option("SYSTEM", "Another system's files; with ? the list.", "--from")] = None,
    map_: Annotated[
        list[str] | None, option("FIELD=PATH", "Of --from jsonl: where a field stands, as scope=user.id.", "--map")
    ] = None,
    dry_run: Annotated[bool, flag("Of --from: only count.", "--dry-run")] = False,
    watch: Annotated[bool, flag("Of sessions of a coding agent: go on with what is written.", "--watch")] = False,
    scope: Annotated[str, option("/A/B", "Put this before the scopes of the file.")] = "/",
    authority: Annotated[str, option("WHO", "Whose word it is at most, such as web for files of others.")] = "user",
    batch_size: Annotated[
        int | None, number("How many memories are written in one transaction. Default: what takes 10 to 20 ms.")
    ] = None,
    overwrite: Annotated[bool, flag("Of a folder: the file wins over a changed store.", "--overwrite")] = False,
    forget_missing: Annotated[bool, flag("Of a folder: forget what was removed from it.", "--forget-missing")] = False,
    yes: Yes = False,
) -> Imported | Restored | ImportReport:
    """Read memories from files, Markdown or another system.

    From JSON lines, CSV and text, memories whose id is already in the store are skipped, and one without an id gets one
    derived from its content: an import that was stopped is finished by the same command. From a folder of Markdown,
    memories that were changed there are updated. With --from, the files of another system are read, where it keeps them
    if no path is given; a second run takes what is new, and --watch goes on. See the guide "Importing".

    The exit status is 1 where something of a folder or of another system could not be read.
    """
    context.with_resource(speaking_as(check_authority(authority, "--authority")))
    if from_ is not None:
        _refuse("--from", {"--format": format, "--overwrite": overwrite, "--forget-missing": forget_missing})
        if watch and map_:
            raise InvalidInput("--watch reads no fields by --map: leave one of them out")
        if watch:
            return _watch_from(context, from_, file, scope=scope, dry_run=dry_run, batch_size=batch_size)
        return _import_from(
            context, from_, file, _mapping(map_ or []), scope=scope, dry_run=dry_run, batch_size=batch_size
        )
    if map_ or watch or dry_run:
        raise InvalidInput(f"{'--map' if map_ else '--watch' if watch else '--dry-run'} is given without --from")
    if file is None:
        raise InvalidInput("give a file, - for standard input, or --from SYSTEM")
    if Path(file).is_dir():
        if forget_missing:
            confirm("Forget the memories that were removed from the folder?", yes)
        with open_memory(context, scope, create=True) as memory, progress("importing", "files") as report:
            return memory.transfer.import_folder(
                file, overwrite=overwrite, forget_missing=forget_missing, on_progress=report
            )
    with open_memory(context, create=True) as memory, progress("importing", "lines") as report:
        return memory.transfer.import_(
            stdin_stream() if file == "-" else file,
            format=format, scope=scope, batch_size=batch_size, on_progress=report,
        )  # fmt: skip


def _mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Return the path of each field, of FIELD=PATH in each --map."""
    mapping: dict[str, str] = {}
    for field, equals, path in (pair.partition("=") for pair in pairs):
        if not equals:
            raise InvalidInput(f"--map is {field!r}: give FIELD=PATH, such as text=body")
        if mapping.setdefault(field.strip(), path.strip()) != path.strip():
            raise InvalidInput(f"--map gives {field.strip()} twice: leave one of them out")
    return mapping


def _refuse(option: str, others: dict[str, object]) -> None:
    """Refuse options that would not be read."""
    if idle := [name for name, value in others.items() if value]:
        raise InvalidInput(f"{idle[0]} has no meaning with {option}: leave it out")


def _import_from(
    context: click.Context, system: str, path: str | None, mapping: dict[str, str], *, scope: str, dry_run: bool,
    batch_size: int | None,
) -> ImportReport:  # fmt: skip
    from recallite_connect.importers import import_from, sources
    from recallite_connect.importers.sources import source_named

    if system == "?":
        print_rows(("from", "what"), [(name, source.path) for name, source in sorted(sources().items())])
        raise click.exceptions.Exit
    source_named(system).folder_or_file(path)  # before a store is made
    with open_memory(context, create=True, dry_run=dry_run) as memory, progress("importing", "memories") as report:
        return import_from(
            memory, system, path, scope=scope, mapping=mapping, dry_run=dry_run, batch_size=batch_size,
            on_progress=report,
        )  # fmt: skip


def _watch_from(
    context: click.Context, system: str, path: str | None, *, scope: str, dry_run: bool, batch_size: int | None
) -> ImportReport:
    from recallite_connect.importers import watch_from
    from recallite_connect.importers.sources import source_named

    if dry_run:
        raise InvalidInput("--watch stores what it finds: leave --dry-run out")
    source_named(system).folder_or_file(path)  # before a store is made
    with open_memory(context, create=True) as memory:
        return watch_from(
            memory, system, path, scope=scope, batch_size=batch_size,
            on_import=lambda done: hint(f"{done.created:,} imported, Ctrl-C ends"),
        )  # fmt: skip


def _export_to(
    context: click.Context, system: str, path: str | None, mapping: dict[str, str], fields: dict[str, Any]
) -> ExportToReport:
    from recallite_connect.exporters import export_to, targets

    if system == "?":
        print_rows(("to", "what"), [(name, target.path) for name, target in sorted(targets().items())])
        raise click.exceptions.Exit
    if path is None or path == "-":
        raise InvalidInput("--to writes a file or a folder: name it")
    with open_memory(context) as memory, progress("exporting", "memories") as report:
        return export_to(memory, system, path, mapping=mapping, on_progress=report, **fields)


def _print_export(done: Exported | ExportToReport | dict[str, Any]) -> None:
    if isinstance(done, Exported):
        print_exported(done)
    elif not isinstance(done, dict):
        lost = [(count, f"{name}, not in this form") for name, count in done.lost.items()]
        print_rows(("", ""), [(done.records, "exported"), *lost])
    else:
        print_rows(("", ""), [(done["records"], "exported")])


@prints(_print_export, fails=lambda done: isinstance(done, Exported) and bool(done.conflicts), operation="count")
def export(
    context: click.Context,
    file: Annotated[str | None, argument("FILE", "The file; - is standard output; the folder for Markdown.")] = None,
    format: Format = None,
    vectors: Annotated[bool, flag("With vectors, which JSON lines can hold.", "--vectors")] = False,
    overwrite: Annotated[bool, flag("Of Markdown: replace changed files too.", "--overwrite")] = False,
    to: Annotated[str | None, option("SYSTEM", "In another system's form; with ? the list.", "--to")] = None,
    map_: Annotated[list[str] | None, option("FIELD=PATH", "Of --to jsonl: where a field stands.", "--map")] = None,
    **fields: Any,
) -> Exported | ExportToReport | dict[str, Any]:
    """Write memories to files, Markdown or for another system.

    JSON lines have everything of memories and documents; CSV and plain text do not. Sessions, working memory, snapshots
    and experience are in none: backup and copy carry them. A file is replaced when all is written. Markdown is a file
    for each memory, which import reads back with what people changed.
    """
    if to is not None:
        _refuse("--to", {"--format": format, "--vectors": vectors, "--overwrite": overwrite})
        return _export_to(context, to, file, _mapping(map_ or []), fields)
    if map_:
        raise InvalidInput("--map is given without --to jsonl")
    if file is None:
        raise InvalidInput("give a file, or - for standard output")
    if format == "markdown":
        if file == "-":
            raise InvalidInput("Markdown is a folder of files: name the folder")
        with open_memory(context) as memory, progress("exporting", "memories") as report:
            return memory.transfer.export_folder(file, **fields, overwrite=overwrite, on_progress=report)
    with open_memory(context) as memory, progress("exporting", "memories") as report:
        count = memory.transfer.export(
            stdout_stream() if file == "-" else file, format=format, vectors=vectors, on_progress=report, **fields
        )
    if file == "-":
        hint(f"{count:,} memories exported")
        raise click.exceptions.Exit  # standard output is the export, and nothing else
    return {"records": count, "path": file}
