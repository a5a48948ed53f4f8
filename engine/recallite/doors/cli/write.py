"""Commands that change memories: remember, update, supersede, restore, forget, link, unlink."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, Unpack

import typer

from recallite.doors.cli.command import nothing, prints
from recallite.doors.cli.ids import whole_id
from recallite.doors.cli.options import (
    Id,
    Ids,
    Importance,
    Pinned,
    SelectOptions,
    Vector,
    Yes,
    argument,
    filter_fields,
    flag,
    open_memory,
    option,
    parse_json,
)
from recallite.doors.cli.output import hint, named, one_line, print_number, print_rows, progress
from recallite.doors.cli.streams import stdin_text
from recallite.errors import InvalidInput
from recallite.model.reports import Remembered

if TYPE_CHECKING:
    from recallite.agents.procedures import Procedure
    from recallite.memory import Memory
    from recallite.model.records import Record
    from recallite.model.reports import ErasureReceipt, Forgotten


From = Annotated[str, argument("FROM", "The id of a memory.")]
To = Annotated[str, argument("TO", "The id of a memory.")]
EventAt = Annotated[str | None, option("TIME", "When it happened. Default: when it was learnt.")]


class FieldOptions(TypedDict, total=False):
    """Fields of a memory that may be left out."""

    tag: Annotated[list[str] | None, option("TAG", "A tag; repeat for more. They replace those it has.")]
    metadata: Annotated[str | None, option("JSON", "A JSON object. It replaces what it has.")]
    header: Annotated[str | None, option("TEXT", "Searched with the text: a speaker, a title.", "--context")]
    topic: Annotated[str | None, option("TEXT", "The topic it belongs to.")]
    source: Annotated[str | None, option("NAME", "The document or session it comes from.")]
    position: Annotated[int | None, option("N", "Its place in the source.")]
    valid_from: EventAt
    valid_until: Annotated[str | None, option("TIME", "When what it says ended, or will end.")]
    expires_at: Annotated[str | None, option("TIME", "When it stops being true.")]
    vector: Vector


_CLEARED: dict[str, Any] = {
    "context": None, "topic": None, "source": None, "position": None, "valid_from": None, "valid_until": None,
    "expires_at": None, "tags": (), "metadata": {},
}  # fmt: skip
_OF_FILES = ("texts", "scope", "workers", "as_json")
# What a receipt calls the rows of a table; the rows of other tables are derived from these.
_NOUNS = {
    "record": "memories and versions", "vector": "vectors", "term": "words", "tag": "tags", "source": "sources",
    "scope": "scopes", "link": "links", "supersession": "supersessions", "occurrence": "repeated statements",
    "document": "documents", "session": "sessions",
    "session_message": "messages", "session_snapshot": "session snapshots", "tool_pattern": "tool patterns",
    "error_recovery": "error recoveries", "procedure_use": "uses of procedures", "working_state": "working memories",
    "consolidation": "consolidation cycles", "embedding_cache": "cached vectors",
}  # fmt: skip


def print_id(stored: Record | Procedure) -> None:
    """The id of what was stored."""
    print_rows(("",), [(stored.id,)])


def _print_stored(stored: Record | list[Record] | Remembered) -> None:
    if isinstance(stored, Remembered):
        print_rows(
            ("", ""),
            [(stored.records, "stored"), (stored.known, "already in the store"), (stored.junk, "left out as junk")],
        )
        return
    for record in stored if isinstance(stored, list) else [stored]:
        if record.outcome == "skipped":
            hint("not stored: it is only small talk or tool noise")
            continue
        print_id(record)
        if record.outcome == "duplicate":
            times = f", now {record.occurrences:,} times" if record.occurrences > 1 else ""
            hint(f"{record.id} says it already{times}")
        for old in record.supersedes:
            hint(f"{record.id} supersedes {old}: history shows it, restore undoes it")
        for each in record.contradictions:
            hint(f"{record.id} may contradict {each.id}: {one_line(each.text)}")


def _given(options: FieldOptions) -> dict[str, Any]:
    """The fields that were given, as `Memory.remember` names them."""
    fields: dict[str, Any] = {**options, "metadata": parse_json(options["metadata"], "--metadata")}
    fields["vector"] = parse_json(fields["vector"], "--vector", kind=list)
    fields["context"], fields["tags"] = fields.pop("header"), fields.pop("tag") or None
    return {name: value for name, value in fields.items() if value is not None}


def _days(days: float | None) -> timedelta | None:
    """A time in days as an option gives it."""
    from recallite.model.checks import check_finite

    try:
        return None if days is None else timedelta(days=check_finite(days, "--expires-after-days"))
    except OverflowError:
        raise InvalidInput(f"--expires-after-days is {days:g}: give at most 365,250") from None


@prints(_print_stored)
def remember(
    context: typer.Context,
    texts: Annotated[
        list[str] | None,
        argument("TEXT", "The text of a memory; repeat for more. Without it, standard input is read as one memory."),
    ] = None,
    scope: Annotated[str, option("/A/B", "Where it belongs.")] = "/",
    kind: Annotated[str, option("KIND", "What it is.")] = "memory",
    importance: Importance = 0.5,
    created_at: Annotated[str | None, option("TIME", "When it was learnt. Default: now.")] = None,
    pinned: Pinned = False,
    supersedes: Annotated[list[str] | None, option("ID", "A memory that it supersedes; repeat for more.")] = None,
    id: Annotated[str | None, option("ID", "An id of your own, by which it is replaced later.")] = None,
    on_existing: Annotated[
        str, option("CHOICE", "What becomes of a memory that has this id: error, replace, or version (with history).")
    ] = "error",
    expires_after_days: Annotated[
        float | None, typer.Option(help="It expires so many days after it is stored, or touched.")
    ] = None,
    not_indexed: Annotated[bool, flag("Keep it out of recall: get and list show it.", "--not-indexed")] = False,
    workers: Annotated[
        int | None, option("N", "The arguments are files, whose memories so many processes embed: see below.")
    ] = None,
    **options: Unpack[FieldOptions],
) -> Record | list[Record] | Remembered:
    """Store memories, and print their ids.

    What a memory supersedes, repeats or may contradict is said on standard error.

    With --workers the arguments are files of JSON lines, CSV, plain text or Parquet. A memory whose id is in the store
    is passed over, and one without an id gets one derived from its content: a run that was stopped is finished by the
    same command.
    """
    if workers is not None:
        return _remember_files(context, texts or [], scope, workers)
    fields = _given(options) | {
        "scope": scope, "kind": kind, "importance": importance, "created_at": created_at, "pinned": pinned,
        "indexed": not not_indexed, "expires_after": _days(expires_after_days),
    }  # fmt: skip
    given = [stdin_text("remember")] if not texts or texts == ["-"] else texts
    own: dict[str, Any] = {"id": id, "on_existing": on_existing}
    if id is not None and len(given) > 1:
        raise InvalidInput("--id goes with one text: each memory has an id of its own")
    if supersedes and len(given) > 1:
        raise InvalidInput("--supersedes goes with one text: several take the place of one by supersede OLD NEW NEW")
    with open_memory(context, create=True) as memory:
        if supersedes:
            fields["supersedes"] = [whole_id(memory, id) for id in supersedes]
        if len(given) == 1:
            return memory.remember(given[0], **fields, **own)
        return [memory.get(id) for id in memory.remember_many([{"text": text, **fields} for text in given]) if id]


def _remember_files(context: typer.Context, files: list[str], scope: str, workers: int) -> Remembered:
    from recallite.bulk import remember_files

    if not files:
        raise InvalidInput("--workers goes with files: recallite remember --workers 8 big.jsonl")
    for each in context.command.params:
        source = context.get_parameter_source(each.name or "")
        if each.name not in _OF_FILES and source is not None and source.name == "COMMANDLINE":
            raise InvalidInput(f"{each.opts[0]} does not go with --workers: a file has the fields of its memories")
    with open_memory(context, scope, create=True) as memory, progress("remembering", "memories") as report:
        return remember_files(memory, files, workers=workers, on_progress=report)


@prints(print_id)
def update(
    context: typer.Context,
    id: Id,
    text: Annotated[str | None, option("TEXT", "The new text; - reads standard input.")] = None,
    scope: Annotated[str | None, option("/A/B", "Move it there.")] = None,
    kind: Annotated[str | None, option("KIND", "What it is.")] = None,
    importance: Annotated[float | None, option("N", "From 0 to 1.")] = None,
    pinned: Annotated[bool | None, flag("Whether it is never pruned.", "--pinned/--unpinned")] = None,
    clear: Annotated[list[str] | None, option("FIELD", f"Empty a field: {', '.join(_CLEARED)}.")] = None,
    **options: Unpack[FieldOptions],
) -> Record:
    """Change fields of a memory. `history` keeps its old texts."""
    fields = {
        "text": stdin_text("update --text -") if text == "-" else text,
        "scope": scope, "kind": kind, "importance": importance, "pinned": pinned,
    }  # fmt: skip
    changes = _given(options) | {name: value for name, value in fields.items() if value is not None}
    for name in clear or ():
        field = name.replace("-", "_")
        if field not in _CLEARED:
            raise InvalidInput(f"--clear is {name!r}: use one of {', '.join(_CLEARED)}")
        if field in changes:
            raise InvalidInput(f"{field} is given and cleared at once: leave one out")
        changes[field] = _CLEARED[field]
    with open_memory(context) as memory:
        updated: Record = memory.update(whole_id(memory, id), **changes)
        return updated


def _print_restored(record: Record) -> None:
    print_rows(("id", "text"), [(record.id, record.text)])


@prints(_print_restored)
def restore(
    memory: Memory,
    id: Id,
    to: Annotated[
        str | None, option("VERSION", "Of its own versions, from 0; -2 is the one before now; or a time.")
    ] = None,
) -> Record:
    """Undo a supersession, or restore an earlier text.

    Without --to a superseded memory holds again; with it, an earlier text becomes its newest version. Nothing is lost.
    """
    whole = whole_id(memory, id)
    if to is None:
        return memory.restore(whole)
    place = to.removeprefix("-")
    version = int(to) if place.isascii() and place.isdigit() and len(place) < 10 else to
    return memory.restore(whole, version)


def _print_superseded(done: dict[str, Any]) -> None:
    print_rows(("old", "new"), [(old, new) for old in done["old"] for new in done["new"]])


@prints(_print_superseded)
def supersede(
    memory: Memory,
    old: Annotated[str, argument("OLD", "The memory that no longer holds.")],
    new: Annotated[list[str], argument("NEW", "The memory that holds in its place; repeat for more.")],
    also: Annotated[list[str] | None, option("ID", "Another that no longer holds; repeat for more.")] = None,
    reason: Annotated[str | None, option("TEXT", "Why.")] = None,
    strength: Annotated[float, typer.Option(help="From 0 to 1: how sure it is.")] = 1.0,
    at: Annotated[str | None, option("TIME", "When the new one began to hold. Default: its own time.")] = None,
) -> dict[str, Any]:
    """Put memories in the place of others.

    The old ones stay in history; restore undoes it.
    """
    olds, news = ([whole_id(memory, id) for id in ids] for ids in ([old, *(also or ())], new))
    memory.supersede(olds, news, reason=reason, strength=strength, at=at)
    return {"old": olds, "new": news, "reason": reason, "strength": strength, "at": at}


def _print_forgotten(gone: Forgotten) -> None:
    print_number("forgotten")(gone.records)
    if gone.receipt is not None:
        _print_receipt(gone.receipt)


def _forgot_too_little(gone: Forgotten) -> bool:
    return not (gone.records or gone.services) or (gone.receipt is not None and not gone.receipt.complete)


@prints(_print_forgotten, fails=_forgot_too_little)
def forget(
    context: typer.Context,
    ids: Ids = None,
    yes: Yes = False,
    missing_ok: Annotated[bool, flag("Pass over ids that are not there.", "--missing-ok")] = False,
    receipt: Annotated[bool, flag("Compact the file, search it for the removed text, report.", "--receipt")] = False,
    chain: Annotated[bool, flag("Forget what they superseded too; else it holds again.", "--chain")] = False,
    **options: Unpack[SelectOptions],
) -> Forgotten:
    """Purge memories by id or by filter. On a terminal it asks before it removes several.

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
        gone = memory.forget(whole or None, **fields, missing_ok=missing_ok, receipt=receipt, chain=chain)
        if gone.holds_again:
            hint(f"{len(gone.holds_again):,} that they superseded hold again; --chain forgets them too")
        return gone


@prints(print_number("touched"), json=named("touched"), fails=nothing)
def touch(
    memory: Memory,
    ids: Annotated[list[str], argument("ID", "The id of a memory, or an unambiguous start or end.")],
    expires_at: Annotated[str | None, option("TIME", "When they expire now.")] = None,
    never: Annotated[bool, flag("They do not expire.", "--never")] = False,
) -> int:
    """Let memories live longer, or expire at another time.

    Those stored with --expires-after-days begin anew; with --expires-at or --never all of them expire then, or not.
    Nothing else about them changes.
    """
    if never and expires_at is not None:
        raise InvalidInput("--never and --expires-at are given: leave one out")
    whole = [whole_id(memory, id) for id in ids]
    if never or expires_at is not None:
        return memory.update(whole, expires_at=expires_at)
    return memory.update(whole, renew=True)


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
    memory: Memory,
    source: From,
    target: To,
    type: Annotated[
        str, typer.Option(help="similar, sequential, causal, contradicts, supports or elaborates.")
    ] = "similar",
    strength: Annotated[float, typer.Option(help="From 0 to 1.")] = 1.0,
) -> dict[str, Any]:
    """Link two memories, so that recall of one reaches the other."""
    source, target = whole_id(memory, source), whole_id(memory, target)
    memory.link(source, target, type=type, strength=strength)
    return {"source": source, "target": target, "type": type, "strength": strength}


@prints(print_number("removed"), json=named("links"), fails=nothing)
def unlink(
    memory: Memory,
    source: From,
    target: To,
    type: Annotated[str | None, option("TYPE", "Only the link of this type.")] = None,
) -> int:
    """Remove the links from one memory to another. Links in the other direction stay."""
    return memory.unlink(whole_id(memory, source), whole_id(memory, target), type)
