"""Commands that change memories: remember, update, forget, link."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli.options import AsJson, Id, Kinds, Scope, Tags, Vector, Where, open_memory, parse_json
from recollect.cli.output import hint, print_json, print_rows
from recollect.cli.streams import stdin_text
from recollect.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.reports import ErasureReceipt

__all__ = ["forget", "link", "remember", "update"]

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


def remember(
    context: typer.Context,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="A memory each; without one, all of standard input is one memory."),
    ] = None,
    scope: Annotated[str, typer.Option(metavar="/A/B", help="Where it belongs.")] = "/",
    kind: Annotated[str, typer.Option(help="What it is.")] = "memory",
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag; repeat for more.")] = None,
    importance: Annotated[float, typer.Option(help="From 0 to 1.")] = 0.5,
    metadata: Annotated[str | None, typer.Option(metavar="JSON", help="A JSON object.")] = None,
    header: Annotated[
        str | None, typer.Option("--context", help="A short header that is found with the text: a speaker, a title.")
    ] = None,
    topic: Annotated[str | None, typer.Option(help="The topic it belongs to.")] = None,
    source: Annotated[str | None, typer.Option(help="The document or session it comes from.")] = None,
    position: Annotated[int | None, typer.Option(help="Its place in the source.")] = None,
    created_at: Annotated[str | None, typer.Option(metavar="TIME", help="When it was learnt; else now.")] = None,
    event_at: Annotated[str | None, typer.Option(metavar="TIME", help="When it happened.")] = None,
    expires_at: Annotated[str | None, typer.Option(metavar="TIME", help="When it stops being true.")] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Keep it out of every pruning.")] = False,
    vector: Vector = None,
    as_json: AsJson = False,
) -> None:
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
            record = memory.remember(given[0], **fields)
            print_json(record) if as_json else print_rows(("id",), [(record.id,)])
            return
        ids = memory.remember_many([{"text": text, **fields} for text in given])
        print_json([memory.get(id) for id in ids]) if as_json else print_rows(("id",), [(id,) for id in ids])


def update(
    context: typer.Context,
    id: Id,
    text: Annotated[str | None, typer.Option(help="The new text; - reads standard input.")] = None,
    scope: Annotated[str | None, typer.Option(metavar="/A/B", help="Move it there.")] = None,
    kind: Annotated[str | None, typer.Option()] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Its tags from now on; repeat for more.")] = None,
    importance: Annotated[float | None, typer.Option(help="From 0 to 1.")] = None,
    metadata: Annotated[
        str | None, typer.Option(metavar="JSON", help="A JSON object that takes the old one's place.")
    ] = None,
    header: Annotated[str | None, typer.Option("--context")] = None,
    topic: Annotated[str | None, typer.Option()] = None,
    source: Annotated[str | None, typer.Option()] = None,
    position: Annotated[int | None, typer.Option()] = None,
    event_at: Annotated[str | None, typer.Option(metavar="TIME")] = None,
    expires_at: Annotated[str | None, typer.Option(metavar="TIME")] = None,
    pinned: Annotated[bool | None, typer.Option("--pinned/--unpinned")] = None,
    vector: Vector = None,
    clear: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help=f"Empty a field: {', '.join(_CLEARED)}; repeat for more.")
    ] = None,
    as_json: AsJson = False,
) -> None:
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
        record = memory.update(id, **changes)
        print_json(record) if as_json else print_rows(("id",), [(record.id,)])


def forget(
    context: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="The memories to forget.")] = None,
    scope: Scope = None,
    where: Where = None,
    kind: Kinds = None,
    tag: Tags = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    receipt: Annotated[
        bool, typer.Option("--receipt", help="Compact the file, search its bytes for what was removed, and say so.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Purge memories for good, by id or all that filters match. On a terminal it asks before more than one goes.

    With --receipt the exit status is 1 where something of them is left in the files.
    """
    filters: dict[str, Any] = {
        "scope": scope, "where": parse_json(where, "--where"), "kinds": kind or None, "tags": tag or None,
    }  # fmt: skip
    with open_memory(context) as memory:
        if not yes and sys.stdin.isatty():
            going = len(dict.fromkeys(ids)) if ids else 0 if not any(filters.values()) else memory.count(**filters)
            if going > 1 and not typer.confirm(f"Forget {going:,} memories for good?", err=True):
                hint("nothing was forgotten")
                raise typer.Exit(1)
        gone = memory.forget(ids or None, **filters, receipt=receipt)
    if as_json:
        print_json(gone)
    else:
        print_rows(("memories", ""), [(gone.records, "forgotten")])
        if gone.receipt is not None:
            _print_receipt(gone.receipt)
    if not (gone.records or gone.services) or (gone.receipt is not None and not gone.receipt.complete):
        raise typer.Exit(1)


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


def link(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FROM", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="TO", show_default=False)],
    type: Annotated[
        str, typer.Option(help="similar, sequential, causal, contradicts, supports or elaborates.")
    ] = "similar",
    strength: Annotated[float, typer.Option(help="From 0 to 1.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Link two memories; recall of one then reaches the other."""
    with open_memory(context) as memory:
        memory.link(source, target, type=type, strength=strength)
    made = {"source": source, "target": target, "type": type, "strength": strength}
    print_json(made) if as_json else print_rows(("from", "to", "type"), [(source, target, type)])
