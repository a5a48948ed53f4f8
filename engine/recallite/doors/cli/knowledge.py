"""The commands on documents that do more than one call: ingest, search, delete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from recallite.doors.cli.command import (
    Limit,
    Overrides,
    Yes,
    argument,
    confirm,
    document_id,
    flag,
    nothing,
    option,
    parse_json,
    prints,
    recall_fields,
)
from recallite.doors.cli.output import attributes, hint, print_table
from recallite.errors import InvalidInput

if TYPE_CHECKING:
    from recallite.documents.document import DeletedDocument, Ingested
    from recallite.memory import Memory
    from recallite.model.records import Hit, Hits
    from recallite.store.store import Progress


_SNIPPET_CHARS = 300


class Ingestion(NamedTuple):
    """The result of an ingest, and whether it could not read a source that was named."""

    done: Ingested
    failed: bool


def _print_ingestion(ingestion: Ingestion) -> None:
    done = ingestion.done
    print_table("id outcome chunks source")(done.documents)
    for document in done.documents:
        for warning in document.warnings:
            hint(f"{document.source}: {warning}")
    for skipped in done.skipped:
        hint(f"skipped {skipped.source}: {skipped.reason}")
    if not done.documents:
        hint("nothing was ingested: no document that can be read was found")


@prints(
    _print_ingestion,
    json=lambda ingestion: attributes(ingestion.done, "documents skipped counts seconds"),
    fails=lambda ingestion: ingestion.failed,
    within=True,
    create=True,
    bar=("ingesting", "documents"),
)
def ingest(
    memory: Memory,
    report: Progress | None,
    sources: Annotated[list[str], argument("SOURCE", "Files, folders and http(s) URLs; - is standard input.")],
    metadata: Annotated[str | None, option("JSON", "Kept with each document, to search by with --where.")] = None,
    name: Annotated[str | None, option("NAME", "The name of a single document.")] = None,
    title: Annotated[str | None, option("TEXT", "The title of a single document.")] = None,
    include: Annotated[list[str] | None, option("PATTERN", "In folders only what matches, as in .gitignore.")] = None,
    exclude: Annotated[list[str] | None, option("PATTERN", "Not what matches; repeat for more.")] = None,
    password: Annotated[str | None, option("TEXT", "Opens encrypted PDFs.")] = None,
    recursive: Annotated[bool, flag("Look into folders of folders.", "--recursive/--no-recursive")] = True,
    allow_private_addresses: Annotated[
        bool, flag("Allow URLs in private networks.", "--allow-private-addresses")
    ] = False,
    max_bytes: Annotated[int, option("BYTES", "Leave larger documents out.")] = 100_000_000,
    max_chars: Annotated[int, option("CHARS", "Leave documents with more text out.")] = 50_000_000,
    memory_mb: Annotated[int, option("MB", "Memory of the process that parses a PDF, DOCX or HTML document.")] = 1024,
    seconds: Annotated[float, option("SECONDS", "Time of that process.")] = 60.0,
) -> Ingestion:
    """Read documents, and store what is new or has changed. What was left out is reported on standard error."""
    source: Any = sources[0] if len(sources) == 1 else sources
    if source == "-":
        if sys.stdin.isatty():
            raise InvalidInput("no document was given: pipe one in, or name a file, a folder or a URL")
        source = sys.stdin.buffer.read()
    elif "-" in sources:
        raise InvalidInput("- is standard input, and no source beside others")
    done = memory.knowledge.ingest(
        source, metadata=parse_json(metadata, "--metadata"), name=name, title=title, include=include or (),
        exclude=exclude or (), password=password, recursive=recursive,
        allow_private_addresses=allow_private_addresses, max_bytes=max_bytes, max_chars=max_chars, memory_mb=memory_mb,
        seconds=seconds, on_progress=report,
    )  # fmt: skip
    unread = {skipped.source for skipped in done.skipped if skipped.error is not None}
    return Ingestion(done, not done.documents or not unread.isdisjoint(sources))


def _place(hit: Hit) -> str:
    """The place of a passage, as an editor opens it: path:line, or the page of what has no lines."""
    if hit.source is None:
        return ""
    name = hit.source.path or hit.source.id
    if hit.source.lines is not None:
        return f"{name}:{hit.source.lines[0]}"
    return f"{name} p. {hit.metadata['page']}" if "page" in hit.metadata else name


def _passage_row(hit: Hit) -> tuple[object, ...]:
    line = " ".join(hit.text.split())
    snippet = line if len(line) <= _SNIPPET_CHARS else line[: _SNIPPET_CHARS - 1] + "…"
    return f"{hit.score:.2f}", f"{hit.confidence:.2f}", _place(hit), hit.context, snippet


def _print_passages(passages: Hits | str) -> None:
    if isinstance(passages, str):
        click.echo(passages)
    else:
        print_table("score confidence place context text", _passage_row, under=("context",))(passages)


@prints(
    _print_passages,
    json=lambda passages: {"context": passages} if isinstance(passages, str) else passages,
    fails=nothing,
    within=True,
    operation="knowledge.search",
    without=("scope",),
)
def search(
    memory: Memory,
    query: Annotated[str, argument("QUERY", "The question.")],
    limit: Limit = 5,
    overrides: Overrides = None,
    budget: Annotated[int | None, option("TOKENS", "Print Markdown for a prompt of at most so many tokens.")] = None,
    **fields: Any,
) -> Hits | str:
    """Find passages, best first, with path:line or page."""
    fields = recall_fields(fields, overrides)
    if budget is not None:
        return memory.knowledge.context(query, budget, **fields)
    return memory.knowledge.search(query, limit, **fields)


@prints(
    print_table(
        "id deleted source", lambda deleted: (deleted.id, f"deleted with {deleted.chunks:,} chunks", deleted.source)
    ),
    within=True,
)
def delete(
    memory: Memory,
    ids: Annotated[list[str], argument("ID", "A source, an id, or an unambiguous start or end of an id.")],
    yes: Yes = False,
) -> list[DeletedDocument]:
    """Delete documents with all their passages. Unless --yes is given it asks before it deletes several."""
    documents = dict.fromkeys(document_id(memory, id) for id in ids)
    if len(documents) > 1:
        confirm(f"Delete {len(documents):,} documents with all their passages?", yes)
    return [memory.knowledge.delete(id) for id in documents]
