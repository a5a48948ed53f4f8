"""Commands on documents: ingest, search, list, delete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli.options import AsJson, Limit, Mode, Overrides, Where, Within, open_within, parse_json, recall_options
from recollect.cli.output import fail_quietly, hint, print_json, print_rows, progress, stamp
from recollect.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.records import Hit

__all__ = ["knowledge"]

knowledge = typer.Typer(no_args_is_help=True, help="Documents, searched by passage: PDF, Word, HTML, Markdown, text.")
_SNIPPET_CHARS = 300


@knowledge.command("ingest")
def ingest(
    context: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...", help="Files, folders and http(s) URLs; - is standard input.", show_default=False
        ),
    ],
    metadata: Annotated[
        str | None, typer.Option(metavar="JSON", help="Kept with each document, to search by with --where.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The name of a single document.")] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="The title of a single document.")] = None,
    include: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="In folders only what matches, as in .gitignore.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Not what matches; repeat for more.")
    ] = None,
    password: Annotated[str | None, typer.Option(metavar="TEXT", help="Opens encrypted PDFs.")] = None,
    recursive: Annotated[bool, typer.Option(help="Look into folders of folders.")] = True,
    follow_symlinks: Annotated[
        bool, typer.Option("--follow-symlinks", help="Follow links that stay in the folder.")
    ] = False,
    allow_private_addresses: Annotated[
        bool, typer.Option("--allow-private-addresses", help="URLs may lead into private networks.")
    ] = False,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Read documents, and store what is new or has changed. What is left out is told on standard error."""
    given: Any = sources[0] if len(sources) == 1 else sources
    if given == "-":
        if sys.stdin.isatty():
            raise InvalidInput("no document was given: pipe one in, or name a file, a folder or a URL")
        given = sys.stdin.buffer.read()
    elif "-" in sources:
        raise InvalidInput("- is standard input, and no source beside others")
    with open_within(context, scope) as memory, progress("ingesting", "documents") as report:
        done = memory.knowledge.ingest(
            given, metadata=parse_json(metadata, "--metadata"), name=name, title=title, include=include or (),
            exclude=exclude or (), password=password, recursive=recursive, follow_symlinks=follow_symlinks,
            allow_private_addresses=allow_private_addresses, on_progress=report,
        )  # fmt: skip
    if as_json:
        print_json({"documents": done.documents, "skipped": done.skipped, "counts": done.counts,
                    "seconds": done.seconds})  # fmt: skip
    else:
        rows = [(each.id, each.outcome, each.chunks, each.source) for each in done.documents]
        print_rows(("id", "outcome", "chunks", "source"), rows)
        for document in done.documents:
            for warning in document.warnings:
                hint(f"{document.source}: {warning}")
        for skipped in done.skipped:
            hint(f"skipped {skipped.source}: {skipped.reason}")
        if not done.documents:
            hint("nothing was ingested: no document that can be read was found")
    unread = {skipped.source for skipped in done.skipped if skipped.error is not None}
    fail_quietly(not done.documents or not unread.isdisjoint(sources))


@knowledge.command("search")
def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What is asked.", show_default=False)],
    limit: Limit = 5,
    where: Where = None,
    mode: Mode = "hybrid",
    overrides: Overrides = None,
    budget: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="Print Markdown for a prompt within so many tokens instead.")
    ] = None,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Find passages, best first, with path:line or page."""
    options = recall_options(where=where, overrides=overrides, min_confidence=None, vector=None, mode=mode)
    with open_within(context, scope) as memory:
        if budget is not None:
            text = memory.knowledge.context(query, budget, **options)
            print_json({"context": text}) if as_json else typer.echo(text)
            fail_quietly(not text)
            return
        hits = memory.knowledge.search(query, limit, **options)
    if as_json:
        print_json(hits)
    else:
        rows = [(f"{hit.score:.2f}", _place(hit), hit.context, _snippet(hit.text)) for hit in hits]
        print_rows(("score", "place", "context", "text"), rows, under=("context",))
    fail_quietly(not hits)


@knowledge.command("list")
def list_documents(context: typer.Context, limit: Limit = 1000, scope: Within = None, as_json: AsJson = False) -> None:
    """Show the documents, in the order of their sources."""
    with open_within(context, scope) as memory:
        found = memory.knowledge.list(limit=limit)
    if as_json:
        print_json(found)
    else:
        rows = [(each.id, each.chunks, stamp(each.updated_at), each.title, each.source) for each in found]
        print_rows(("id", "chunks", "updated", "title", "source"), rows)
    fail_quietly(not found)


@knowledge.command("delete")
def delete(
    context: typer.Context,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Ids of documents, or their sources.", show_default=False)
    ],
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Delete documents with all their passages."""
    with open_within(context, scope) as memory:
        deleted = [memory.knowledge.delete(each) for each in ids]
    if as_json:
        print_json(deleted)
    else:
        rows = [(each.id, f"deleted with {each.chunks:,} chunks", each.source) for each in deleted]
        print_rows(("id", "", "source"), rows)


def _place(hit: Hit) -> str:
    """Where a passage stands, as an editor opens it: path:line, or the page of what has no lines."""
    if hit.source is None:
        return ""
    name = hit.source.path or hit.source.id
    if hit.source.lines is not None:
        return f"{name}:{hit.source.lines[0]}"
    return f"{name} p. {hit.metadata['page']}" if "page" in hit.metadata else name


def _snippet(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SNIPPET_CHARS else line[: _SNIPPET_CHARS - 1] + "…"
