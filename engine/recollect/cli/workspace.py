"""Commands on a workspace: index, add, files, status, watch."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.command import nothing, prints
from recollect.cli.options import AsJson, argument, flag, option
from recollect.cli.output import hint, print_json, print_pairs, print_rows, print_table, progress
from recollect.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.workspace.results import FileInfo, IndexResult, StoreStatus
    from recollect.workspace.workspace import Workspace

__all__ = ["open_workspace", "workspace"]

workspace = typer.Typer(no_args_is_help=True, help="A folder of Markdown files as memory.")
Folder = Annotated[str | None, option("FOLDER", "The folder; else --config's, else this one.", "--workspace", "-w")]
Config = Annotated[str | None, option("FILE", "The configuration as TOML, JSON or YAML.", "--config")]
EmbedderName = Annotated[str | None, option("NAME", "Instead of the configured one, e.g. none.", "--embedder")]
Force = Annotated[bool, flag("Read and cut files that seem unchanged too.", "--force")]


def open_workspace(folder: str | None, config: str | None, embedder: str | None, *, make: bool = False) -> Workspace:
    """The workspace that the options name; it starts nothing by itself. A folder that is missing is made only by what
    writes files: elsewhere its name is mistyped.
    """
    from msgspec import structs

    from recollect.workspace.config import WorkspaceConfig
    from recollect.workspace.workspace import Workspace

    given = WorkspaceConfig() if config is None else WorkspaceConfig.load(config)
    place = given.folder if folder is None else Path(folder).expanduser()
    if not make and not place.is_dir():
        raise InvalidInput(f"{place} is no folder: give the folder of a workspace as -w")
    quiet = structs.replace(given.sync, watch=False, interval_minutes=0)
    return Workspace(folder, structs.replace(given, sync=quiet), embedder=embedder)


def _print_result(result: IndexResult) -> None:
    shown = {name: getattr(result, name) for name in result.__struct_fields__ if name != "problems"}
    print_pairs({**shown, "duration_ms": round(result.duration_ms)})


@workspace.command("index")
@prints(_print_result, fails=lambda result: any(not problem.indexed for problem in result.problems))
def index_files(
    folder: Folder = None, force: Force = False, config: Config = None, embedder: EmbedderName = None
) -> IndexResult:
    """Bring the index up to date with the files."""
    with open_workspace(folder, config, embedder) as opened:
        if opened.config.progress:
            with progress("indexing", "files") as report:
                result = opened.index(force, on_progress=report)
        else:
            result = opened.index(force)
    _hint_problems(result)
    return result


@workspace.command("add")
@prints(_print_result, fails=lambda result: any(not problem.indexed for problem in result.problems))
def add_file(
    file: Annotated[str, argument("FILE", "A file in the folder.")],
    folder: Folder = None,
    force: Force = False,
    config: Config = None,
    embedder: EmbedderName = None,
) -> IndexResult:
    """Index one file."""
    with open_workspace(folder, config, embedder) as opened:
        # A shell completes paths from where it is.
        here = Path(file).absolute()
        result = opened.add(here if here.exists() else file, force)
    _hint_problems(result)
    return result


@workspace.command("files")
@prints(print_table("label:source chunks evergreen:is_evergreen file:path"), fails=nothing)
def list_files(
    folder: Folder = None,
    source: Annotated[str | None, option("LABEL", "Only those of this label.")] = None,
    config: Config = None,
) -> list[FileInfo]:
    """Show the indexed files."""
    with open_workspace(folder, config, None) as opened:
        return [each for each in opened.files() if source is None or each.source == source]


def _print_status(status: StoreStatus) -> None:
    print_pairs({name: getattr(status, name) for name in status.__struct_fields__ if name != "problems"})
    for problem in status.problems:
        hint(f"{problem.path}: {problem.reason}")


@workspace.command("status")
@prints(_print_status)
def show_status(folder: Folder = None, config: Config = None, embedder: EmbedderName = None) -> StoreStatus:
    """Show the state of the index, and whether files have changed that are not indexed yet."""
    with open_workspace(folder, config, embedder) as opened:
        return opened.status()


@workspace.command("watch")
def watch_files(
    folder: Folder = None, config: Config = None, embedder: EmbedderName = None, as_json: AsJson = False
) -> None:
    """Index what changes until you stop it (Ctrl-C); prints a line for each run that found something."""

    def tell(result: IndexResult) -> None:
        if result.files_indexed or result.files_deleted or result.files_renamed or result.problems:
            print_json(result) if as_json else _print_run(result)
            _hint_problems(result)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's `&` starts it with Ctrl-C ignored
    with open_workspace(folder, config, embedder) as opened:
        opened.start_watching(tell)
        hint(f"watching {opened.folder}; stop with Ctrl-C")
        threading.Event().wait()


def _print_run(result: IndexResult) -> None:
    figures = (
        result.files_indexed, "indexed", result.files_renamed, "renamed", result.files_deleted, "deleted",
        f"{result.duration_ms:.0f}", "ms",
    )  # fmt: skip
    print_rows(("",) * len(figures), [figures])


def _hint_problems(result: IndexResult) -> None:
    for problem in result.problems:
        hint(f"{problem.path}: {problem.reason}")
    if result.pending:
        hint(f"{result.pending:,} chunks wait for the embedder and are found by keyword: {result.embedder_problem}")
