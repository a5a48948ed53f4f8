"""Commands on a workspace: index, add, files, status, watch, search, flush."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from recallite.errors import InvalidInput
from recallite.system.processes import heed_interrupts, wait_for_interrupt
from recallite_cli.command import AsJson, Group, argument, command, flag, nothing, number, option, prints
from recallite_cli.output import (
    console,
    hint,
    named,
    one_line,
    print_json,
    print_pairs,
    print_rows,
    print_table,
    progress,
    safe,
    stdin_text,
)
from recallite_cli.printers import marked

if TYPE_CHECKING:
    from recallite_notes.note_files import FileInfo, IndexResult, StoreStatus
    from recallite_notes.search import SearchResults
    from recallite_notes.workspace import Workspace


Folder = Annotated[
    str | None, option("FOLDER", "The folder. Default: that of --config, or the current folder.", "--workspace", "-w")
]
Config = Annotated[str | None, option("FILE", "The configuration as TOML, JSON or YAML.", "--config")]
EmbedderName = Annotated[str | None, option("NAME", "Instead of the configured one, e.g. none.", "--embedder")]
Force = Annotated[bool, flag("Read and cut files that seem unchanged too.", "--force")]


def open_workspace(folder: str | None, config: str | None, embedder: str | None) -> Workspace:
    """The workspace that the options name; it starts nothing. A missing folder is a mistyped name."""
    from msgspec import structs

    from recallite_notes.config import WorkspaceConfig
    from recallite_notes.workspace import Workspace

    settings = WorkspaceConfig() if config is None else WorkspaceConfig.load(config)
    path = settings.folder if folder is None else Path(folder).expanduser()
    if not path.is_dir():
        raise InvalidInput(f"{path} is no folder: give the folder of a workspace as -w")
    quiet = structs.replace(settings.sync, watch=False, interval_minutes=0)
    return Workspace(folder, structs.replace(settings, sync=quiet), embedder=embedder)


def _print_result(result: IndexResult) -> None:
    shown = {name: getattr(result, name) for name in result.__struct_fields__ if name != "problems"}
    print_pairs({**shown, "duration_ms": round(result.duration_ms)})


@prints(_print_result, fails=lambda result: any(not problem.indexed for problem in result.problems))
def index_files(
    folder: Folder = None, force: Force = False, config: Config = None, embedder: EmbedderName = None
) -> IndexResult:
    """Bring the index up to date with the files."""
    with (
        open_workspace(folder, config, embedder) as opened,
        progress("indexing", "files") if opened.config.progress else nullcontext() as report,
    ):
        result = opened.index(force, on_progress=report)
    _hint_problems(result)
    return result


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


@prints(print_table("label:source chunks evergreen:is_evergreen file:path"), fails=nothing)
def list_files(
    folder: Folder = None,
    source: Annotated[str | None, option("LABEL", "Only those of this label.")] = None,
    config: Config = None,
) -> list[FileInfo]:
    """Show the indexed files."""
    with open_workspace(folder, config, None) as opened:
        return [entry for entry in opened.files() if source is None or entry.source == source]


def _print_status(status: StoreStatus) -> None:
    print_pairs({name: getattr(status, name) for name in status.__struct_fields__ if name != "problems"})
    for problem in status.problems:
        hint(f"{problem.path}: {problem.reason}")


@prints(_print_status)
def show_status(folder: Folder = None, config: Config = None, embedder: EmbedderName = None) -> StoreStatus:
    """Show the state of the index.

    It says whether files have changed that are not indexed yet.
    """
    with open_workspace(folder, config, embedder) as opened:
        return opened.status()


@command
def watch_files(
    folder: Folder = None, config: Config = None, embedder: EmbedderName = None, as_json: AsJson = False
) -> None:
    """Index what changes until you stop it (Ctrl-C).

    Prints a line for each run that found something.
    """

    def tell(result: IndexResult) -> None:
        if not (result.files_indexed or result.files_deleted or result.files_renamed or result.problems):
            return
        if as_json:
            print_json(result)
        else:
            figures = (
                result.files_indexed, "indexed", result.files_renamed, "renamed", result.files_deleted, "deleted",
                f"{result.duration_ms:.0f}", "ms",
            )  # fmt: skip
            print_rows(("",) * len(figures), [figures])
        _hint_problems(result)

    heed_interrupts()
    with open_workspace(folder, config, embedder) as opened:
        opened.start_watching(tell)
        hint(f"watching {opened.folder}; stop with Ctrl-C")
        wait_for_interrupt()


def _hint_problems(result: IndexResult) -> None:
    for problem in result.problems:
        hint(f"{problem.path}: {problem.reason}")
    if result.pending:
        hint(f"{result.pending:,} chunks wait for the embedder and are found by keyword: {result.embedder_problem}")


class Passages(NamedTuple):
    """Results of a search, with the question and the folder that it was asked in."""

    results: SearchResults
    query: str
    root: Path


def _print_passages(passages: Passages) -> None:
    """Print on a terminal the place and the marked passage below it; elsewhere `path:line: passage` on one line."""
    from recallite.recall.snippets import highlight

    terminal = console()
    for result in passages.results:
        spans = highlight(result.snippet, passages.query)
        line = result.snippet_line + (result.snippet.count("\n", 0, spans[0][0]) if spans else 0)
        place = f"{os.path.relpath(passages.root / result.path)}:{line}"
        if terminal is None:
            click.echo(f"{safe(place)}: {one_line(result.snippet)}")
            continue
        from rich.text import Text

        head = Text(safe(place), "bold cyan").append(f"  {result.score:.2f}  {one_line(result.source)}", "dim")
        terminal.print(head, soft_wrap=True)
        terminal.print(marked(result.snippet, spans, "bold reverse"), soft_wrap=True)
        terminal.print()


@prints(_print_passages, json=lambda passages: passages.results, fails=lambda passages: not passages.results)
def search_files(
    query: Annotated[str | None, argument("QUERY", "The question. Default: standard input.")] = None,
    folder: Folder = None,
    max_results: Annotated[int | None, number("The most results.", "--limit", "-n")] = None,
    min_score: Annotated[float | None, number("Drop results that score below this; 0 drops none.")] = None,
    min_confidence: Annotated[float | None, number("Drop results of a confidence below this.")] = None,
    strategy: Annotated[str | None, option("NAME", "hybrid, vector or keyword.")] = None,
    source: Annotated[str | None, option("LABEL", "Only files of this label.")] = None,
    vector_weight: Annotated[float | None, number("Share of the vector score, from 0 to 1.")] = None,
    text_weight: Annotated[float | None, number("Share of the keyword score, from 0 to 1.")] = None,
    candidate_multiplier: Annotated[int | None, number("Candidates of each search, times the limit.")] = None,
    mmr_lambda: Annotated[float | None, number("From 1 (relevance only) to 0 (diversity only).")] = None,
    half_life_days: Annotated[float | None, number("Half-life of scores, in days.")] = None,
    decay: Annotated[bool | None, flag("Score old files lower.", "--decay/--no-decay")] = None,
    snippet_chars: Annotated[int | None, number("The longest snippet.")] = None,
    config: Config = None,
    embedder: EmbedderName = None,
) -> Passages:
    """Find passages, best first.

    Prints file and line, and the passage with the matched words marked. If nothing answers, a hint shows what is weak.
    """
    question = stdin_text("workspace search") if query is None else query
    with open_workspace(folder, config, embedder) as opened:
        results = opened.search(
            question, max_results=max_results, min_score=min_score, min_confidence=min_confidence, strategy=strategy,
            source_filter=source, vector_weight=vector_weight, text_weight=text_weight,
            candidate_multiplier=candidate_multiplier, mmr_lambda=mmr_lambda, temporal_decay=decay,
            decay_half_life_days=half_life_days, snippet_max_chars=snippet_chars,
        )  # fmt: skip
    for remark in (*results.problems, *results.evidence_gaps):
        hint(remark)
    for weak in () if results else results.weak:
        place = f"{os.path.relpath(opened.folder / weak.path)}:{weak.snippet_line}"
        sure = "" if weak.confidence is None else f", confidence {weak.confidence:.2f}"
        hint(f"weak{sure}: {place}: {one_line(weak.snippet)}")
    return Passages(results, question, opened.folder)


def _print_flushed(written: str | None) -> None:
    if written is None:
        hint("nothing was worth keeping, or it is in the files already")
    else:
        click.echo(safe(written))


@prints(_print_flushed, json=named("written"))
def flush_conversation(
    file: Annotated[str, argument("FILE", "The conversation as JSON, a list of messages; - is standard input.")] = "-",
    folder: Folder = None,
    model: Annotated[str | None, option("NAME", "The model, as gpt-4o-mini or gemini/gemini-2.0-flash.")] = None,
    system_prompt: Annotated[str | None, option("TEXT", "Instead of Recallite's own.")] = None,
    config: Config = None,
    embedder: EmbedderName = None,
) -> str | None:
    """Have a language model note what is worth keeping.

    It reads a conversation and writes to today's file. OPENAI_API_KEY, or RECALLITE_LLM_BASE_URL and
    RECALLITE_LLM_MODEL, name the model.
    """
    conversation = _conversation(file)
    with open_workspace(folder, config, embedder) as opened:
        return opened.flush(conversation, model=model, system_prompt=system_prompt)


def _conversation(file: str) -> Any:
    """The messages of a file: a JSON list, or an object that has one as `messages`."""
    import msgspec

    try:
        text = stdin_text("workspace flush FILE") if file == "-" else Path(file).read_bytes()
    except (OSError, ValueError) as fault:
        raise InvalidInput(f"{file} cannot be read: {fault}") from fault
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as fault:
        raise InvalidInput(f"{file} is not JSON ({fault}): give a list of messages with role and content") from None
    return value["messages"] if isinstance(value, dict) and "messages" in value else value


workspace = Group(
    help="A folder of Markdown files as memory.",
    commands={
        "index": index_files, "add": add_file, "files": list_files, "status": show_status, "watch": watch_files,
        "search": search_files, "flush": flush_conversation,
    },
)  # fmt: skip
