"""Commands on documents: ingest, search, list, delete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from recollect.cli.command import nothing, prints
from recollect.cli.ids import document_id
from recollect.cli.options import (
    Limit,
    Mode,
    Overrides,
    Where,
    Within,
    open_within,
    parse_json,
    recall_fields,
)
from recollect.cli.output import hint, print_rows, print_table, progress, stamp
from recollect.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.knowledge.documents import DeletedDocument, Document, Ingested
    from recollect.records import Hit, Hits

__all__ = ["knowledge"]

knowledge = typer.Typer(no_args_is_help=True, help="Documents, searched by passage: PDF, Word, HTML, Markdown, text.")
_SNIPPET_CHARS = 300


class Ingestion(NamedTuple):
    """What an ingest did, and whether it could not read a source that was named."""

    done: Ingested
    failed: bool


def _print_ingestion(ingestion: Ingestion) -> None:
    done = ingestion.done
    rows = [(each.id, each.outcome, each.chunks, each.source) for each in done.documents]
    print_rows(("id", "outcome", "chunks", "source"), rows)
    for document in done.documents:
        for warning in document.warnings:
            hint(f"{document.source}: {warning}")
    for skipped in done.skipped:
        hint(f"skipped {skipped.source}: {skipped.reason}")
    if not done.documents:
        hint("nothing was ingested: no document that can be read was found")


def _ingestion_json(ingestion: Ingestion) -> dict[str, Any]:
    return {name: getattr(ingestion.done, name) for name in ("documents", "skipped", "counts", "seconds")}


def _has_failed(ingestion: Ingestion) -> bool:
    return ingestion.failed


@knowledge.command("ingest")
@prints(_print_ingestion, json=_ingestion_json, fails=_has_failed)
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
) -> Ingestion:
    """Read documents, and store what is new or has changed. What was left out is reported on standard error."""
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
    unread = {skipped.source for skipped in done.skipped if skipped.error is not None}
    return Ingestion(done, not done.documents or not unread.isdisjoint(sources))


def _place(hit: Hit) -> str:
    """Where a passage is, as an editor opens it: path:line, or the page of what has no lines."""
    if hit.source is None:
        return ""
    name = hit.source.path or hit.source.id
    if hit.source.lines is not None:
        return f"{name}:{hit.source.lines[0]}"
    return f"{name} p. {hit.metadata['page']}" if "page" in hit.metadata else name


def _passage_row(hit: Hit) -> tuple[object, ...]:
    line = " ".join(hit.text.split())
    snippet = line if len(line) <= _SNIPPET_CHARS else line[: _SNIPPET_CHARS - 1] + "…"
    return f"{hit.score:.2f}", _place(hit), hit.context, snippet


def _print_passages(found: Hits | str) -> None:
    if isinstance(found, str):
        typer.echo(found)
    else:
        print_table("score place context text", _passage_row, under=("context",))(found)


def _passages_json(found: Hits | str) -> object:
    return {"context": found} if isinstance(found, str) else found


@knowledge.command("search")
@prints(_print_passages, json=_passages_json, fails=nothing)
def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The question.", show_default=False)],
    limit: Limit = 5,
    where: Where = None,
    mode: Mode = None,
    overrides: Overrides = None,
    budget: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="Print Markdown for a prompt within so many tokens instead.")
    ] = None,
    scope: Within = None,
) -> Hits | str:
    """Find passages, best first, with path:line or page."""
    options = recall_fields({"where": where, "mode": mode, "overrides": overrides})
    with open_within(context, scope) as memory:
        if budget is not None:
            return memory.knowledge.context(query, budget, **options)
        return memory.knowledge.search(query, limit, **options)


def _document_row(document: Document) -> tuple[object, ...]:
    return document.id, document.chunks, stamp(document.updated_at), document.title, document.source


@knowledge.command("list")
@prints(print_table("id chunks updated title source", _document_row), fails=nothing)
def list_documents(context: typer.Context, limit: Limit = 1000, scope: Within = None) -> list[Document]:
    """Show the documents, in the order of their sources."""
    with open_within(context, scope) as memory:
        return memory.knowledge.list(limit=limit)


def _deleted_row(document: DeletedDocument) -> tuple[object, ...]:
    return document.id, f"deleted with {document.chunks:,} chunks", document.source


def _print_deleted(deleted: list[DeletedDocument]) -> None:
    print_rows(("id", "", "source"), [_deleted_row(each) for each in deleted])


@knowledge.command("delete")
@prints(_print_deleted)
def delete(
    context: typer.Context,
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...", help="Sources of documents, or their ids, or starts or ends of these.", show_default=False
        ),
    ],
    scope: Within = None,
) -> list[DeletedDocument]:
    """Delete documents with all their passages."""
    with open_within(context, scope) as memory:
        return [memory.knowledge.delete(document_id(memory, each)) for each in ids]
