"""Commands that change memories: remember, update, restore, forget, link, unlink."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from recollect.cli.command import nothing, prints
from recollect.cli.ids import whole_id
from recollect.cli.options import (
    Id,
    Ids,
    Importance,
    Metadata,
    Pinned,
    SelectOptions,
    Tag,
    Vector,
    Yes,
    filter_fields,
    open_memory,
    parse_json,
)
from recollect.cli.output import hint, named, print_number, print_rows
from recollect.cli.streams import stdin_text
from recollect.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.records import Record
    from recollect.reports import ErasureReceipt, Forgotten
    from recollect.tiers.procedures import Procedure

__all__ = ["forget", "link", "print_id", "remember", "restore", "unlink", "update"]

From = Annotated[str, typer.Argument(metavar="FROM", help="An id.", show_default=False)]
To = Annotated[str, typer.Argument(metavar="TO", help="An id.", show_default=False)]
Header = Annotated[
    str | None, typer.Option("--context", help="A short header that is found with the text: a speaker, a title.")
]
Topic = Annotated[str | None, typer.Option(help="The topic it belongs to.")]
Source = Annotated[str | None, typer.Option(help="The document or session it comes from.")]
Position = Annotated[int | None, typer.Option(help="Its place in the source.")]
EventAt = Annotated[str | None, typer.Option(metavar="TIME", help="When it happened.")]
ExpiresAt = Annotated[str | None, typer.Option(metavar="TIME", help="When it stops being true.")]

_CLEARED: dict[str, Any] = {
    "context": None, "topic": None, "source": None, "position": None, "event_at": None, "expires_at": None, "tags": (),
    "metadata": {},
}  # fmt: skip
# What a receipt calls the rows of a table; the rows of other tables are derived from these.
_NOUNS = {
    "record": "memories and versions", "vector": "vectors", "term": "words", "tag": "tags", "source": "sources",
    "scope": "scopes", "link": "links", "document": "documents", "session": "sessions",
    "session_message": "messages", "session_snapshot": "session snapshots", "tool_pattern": "tool patterns",
    "error_recovery": "error recoveries", "procedure_use": "uses of procedures", "working_state": "working memories",
    "consolidation": "consolidation cycles", "embedding_cache": "cached vectors",
}  # fmt: skip


def print_id(stored: Record | Procedure) -> None:
    """The id of what was stored."""
    print_rows(("",), [(stored.id,)])


def _print_ids(stored: Record | list[Record]) -> None:
    for record in stored if isinstance(stored, list) else [stored]:
        print_id(record)


@prints(_print_ids)
def remember(
    context: typer.Context,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="A memory each; without one, all of standard input is one memory."),
    ] = None,
    scope: Annotated[str, typer.Option(metavar="/A/B", help="Where it belongs.")] = "/",
    kind: Annotated[str, typer.Option(help="What it is.")] = "memory",
    tag: Tag = None,
    importance: Importance = 0.5,
    metadata: Metadata = None,
    header: Header = None,
    topic: Topic = None,
    source: Source = None,
    position: Position = None,
    created_at: Annotated[str | None, typer.Option(metavar="TIME", help="When it was learnt; else now.")] = None,
    event_at: EventAt = None,
    expires_at: ExpiresAt = None,
    pinned: Pinned = False,
    vector: Vector = None,
) -> Record | list[Record]:
    """Store memories; prints their ids."""
    fields: dict[str, Any] = {
        "scope": scope, "kind": kind, "tags": tag or (), "importance": importance,
        "metadata": parse_json(metadata, "--metadata"), "context": header, "topic": topic, "source": source,
        "position": position, "created_at": created_at, "event_at": event_at, "expires_at": expires_at,
        "pinned": pinned, "vector": parse_json(vector, "--vector", kind=list),
    }  # fmt: skip
    given = [stdin_text("remember")] if not texts or texts == ["-"] else texts
    with open_memory(context) as memory:
        if len(given) == 1:
            return memory.remember(given[0], **fields)
        return [memory.get(id) for id in memory.remember_many([{"text": text, **fields} for text in given])]


@prints(print_id)
def update(
    context: typer.Context,
    id: Id,
    text: Annotated[str | None, typer.Option(help="The new text; - reads standard input.")] = None,
    scope: Annotated[str | None, typer.Option(metavar="/A/B", help="Move it there.")] = None,
    kind: Annotated[str | None, typer.Option(help="What it is.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Its tags from now on; repeat for more.")] = None,
    importance: Annotated[float | None, typer.Option(help="From 0 to 1.")] = None,
    metadata: Metadata = None,
    header: Header = None,
    topic: Topic = None,
    source: Source = None,
    position: Position = None,
    event_at: EventAt = None,
    expires_at: ExpiresAt = None,
    pinned: Annotated[bool | None, typer.Option("--pinned/--unpinned", help="Whether it is never pruned.")] = None,
    vector: Vector = None,
    clear: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help=f"Empty a field: {', '.join(_CLEARED)}; repeat for more.")
    ] = None,
) -> Record:
    """Change fields of a memory; `history` keeps its old texts."""
    given: dict[str, Any] = {
        "text": stdin_text("update --text -") if text == "-" else text,
        "scope": scope, "kind": kind, "tags": tag or None,
        "importance": importance, "metadata": parse_json(metadata, "--metadata"), "context": header, "topic": topic,
        "source": source, "position": position, "event_at": event_at, "expires_at": expires_at, "pinned": pinned,
        "vector": parse_json(vector, "--vector", kind=list),
    }  # fmt: skip
    changes = {name: value for name, value in given.items() if value is not None}
    for name in clear or ():
        field = name.replace("-", "_")
        if field not in _CLEARED:
            raise InvalidInput(f"--clear is {name!r}: use one of {', '.join(_CLEARED)}")
        if field in changes:
            raise InvalidInput(f"{field} is given and cleared at once: leave one out")
        changes[field] = _CLEARED[field]
    with open_memory(context) as memory:
        return memory.update(whole_id(memory, id), **changes)


def _print_restored(record: Record) -> None:
    print_rows(("id", "text"), [(record.id, record.text)])


@prints(_print_restored)
def restore(
    context: typer.Context,
    id: Id,
    to: Annotated[
        str,
        typer.Option(metavar="VERSION", help="Its place in history, from 0; -2 is the one before now; or a time."),
    ] = "-2",
) -> Record:
    """Make an earlier text of a memory its newest version; nothing is lost."""
    place = to.removeprefix("-")
    version = int(to) if place.isascii() and place.isdigit() and len(place) < 10 else to
    with open_memory(context) as memory:
        return memory.restore(whole_id(memory, id), version)


def _print_forgotten(gone: Forgotten) -> None:
    print_rows(("memories", ""), [(gone.records, "forgotten")])
    if gone.receipt is not None:
        _print_receipt(gone.receipt)


def _forgot_too_little(gone: Forgotten) -> bool:
    return not (gone.records or gone.services) or (gone.receipt is not None and not gone.receipt.complete)


@prints(_print_forgotten, fails=_forgot_too_little)
def forget(
    context: typer.Context,
    ids: Ids = None,
    yes: Yes = False,
    receipt: Annotated[
        bool, typer.Option("--receipt", help="Compact the file, search its bytes for what was removed, and report.")
    ] = False,
    **options: Unpack[SelectOptions],
) -> Forgotten:
    """Purge memories for good, by id or all that filters match. On a terminal it asks before it removes several.

    With --receipt the exit status is 1 where any of their text is left in the files.
    """
    fields = filter_fields(options)
    with open_memory(context) as memory:
        whole = [whole_id(memory, id) for id in ids or ()]
        if not yes and sys.stdin.isatty():
            going = len(dict.fromkeys(whole)) if whole else memory.count(**fields) if fields else 0
            if going > 1 and not typer.confirm(f"Forget {going:,} memories for good?", err=True):
                hint("nothing was forgotten")
                raise typer.Exit(1)
        return memory.forget(whole or None, **fields, receipt=receipt)


def _print_receipt(receipt: ErasureReceipt) -> None:
    """A receipt as lines of what and how much."""
    removed, elsewhere = _by_noun(receipt.removed), _by_noun(receipt.elsewhere)
    lines = [
        *((f"{noun} removed", f"{rows:,}") for noun, rows in removed.items()),
        *((f"searched {name}", f"{size:,} bytes") for name, size in receipt.files.items()),
        ("byte sequences searched for", f"{receipt.searched:,}"),
        *((f"{noun} not forgotten that hold some of the same text", f"{rows:,}") for noun, rows in elsewhere.items()),
        ("erased completely", "yes" if receipt.complete else "no"),
    ]
    print_rows(("", ""), lines)
    for problem in receipt.problems:
        hint(problem)


def _by_noun(rows: dict[str, int]) -> Counter[str]:
    """Rows by what people call them, from rows by table or by table and column."""
    counts: Counter[str] = Counter()
    for table, number in rows.items():
        counts[_NOUNS.get(table.partition(".")[0], "index entries")] += number
    return counts


def _print_link(made: dict[str, Any]) -> None:
    print_rows(("from", "to", "type"), [(made["source"], made["target"], made["type"])])


@prints(_print_link)
def link(
    context: typer.Context,
    source: From,
    target: To,
    type: Annotated[
        str, typer.Option(help="similar, sequential, causal, contradicts, supports or elaborates.")
    ] = "similar",
    strength: Annotated[float, typer.Option(help="From 0 to 1.")] = 1.0,
) -> dict[str, Any]:
    """Link two memories; recall of one then reaches the other."""
    with open_memory(context) as memory:
        source, target = whole_id(memory, source), whole_id(memory, target)
        memory.link(source, target, type=type, strength=strength)
    return {"source": source, "target": target, "type": type, "strength": strength}


@prints(print_number("removed"), json=named("links"), fails=nothing)
def unlink(
    context: typer.Context,
    source: From,
    target: To,
    type: Annotated[str | None, typer.Option(metavar="TYPE", help="Only the link of this type.")] = None,
) -> int:
    """Remove the links from one memory to another, not those in the other direction."""
    with open_memory(context) as memory:
        return memory.unlink(whole_id(memory, source), whole_id(memory, target), type)
