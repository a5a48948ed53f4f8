"""The commands that write and do more than one call: remember, update, supersede, restore, forget, consolidate; and
rekey and warmup, which look after the store.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import click

from recallite.doors.cli.command import (
    Agent,
    Id,
    Ids,
    Yes,
    argument,
    chosen_settings,
    confirm,
    flag,
    new_key,
    number,
    open_memory,
    option,
    prints,
    whole_id,
)
from recallite.doors.cli.output import (
    hint,
    named,
    print_counts,
    print_pairs,
    print_rows,
    print_table,
    progress,
    stamp,
    stdin_text,
)
from recallite.doors.cli.printers import print_id, print_stored
from recallite.errors import InvalidInput, RecalliteError
from recallite.model.records import NewRecord, Record
from recallite.model.reports import Remembered
from recallite.system import plugins

if TYPE_CHECKING:
    from recallite.agents.consolidation import Cycle
    from recallite.memory import Memory
    from recallite.model.reports import ErasureReceipt, Forgotten
    from recallite.transfer.memory_transfer import RestoreReport


_CLEARED: dict[str, Any] = {
    "context": None, "topic": None, "source": None, "position": None, "valid_from": None, "valid_until": None,
    "expires_at": None, "tags": (), "metadata": {},
}  # fmt: skip
_OF_FILES = ("text", "scope", "workers", "as_json")
# What a receipt calls the rows of a table; the rows of other tables are derived from these.
_NOUNS = {
    "record": "memories and versions", "vector": "vectors", "term": "words", "tag": "tags", "source": "sources",
    "scope": "scopes", "link": "links", "supersession": "supersessions", "occurrence": "repeated statements",
    "document": "documents", "session": "sessions",
    "session_message": "messages", "session_snapshot": "session snapshots", "tool_pattern": "tool patterns",
    "error_recovery": "error recoveries", "procedure_use": "uses of procedures", "working_state": "working memories",
    "consolidation": "consolidation cycles", "embedding_cache": "cached vectors",
}  # fmt: skip


def _print_stored(stored: Record | list[Record] | Remembered) -> None:
    if isinstance(stored, Remembered):
        print_counts("stored:records; already in the store:known; left out as junk:junk")(stored)
        return
    for record in stored if isinstance(stored, list) else [stored]:
        print_stored(record)


@prints(_print_stored, operation="remember")
def remember(
    ctx: click.Context,
    text: Annotated[
        list[str] | None,
        argument("TEXT", "The text of a memory; repeat for more. Without it, standard input is read as one memory."),
    ] = None,
    supersedes: Annotated[list[str] | None, option("ID", "A memory that it supersedes; repeat for more.")] = None,
    workers: Annotated[
        int | None, option("N", "The arguments are files, embedded by this number of processes: see below.")
    ] = None,
    **fields: Any,
) -> Record | list[Record] | Remembered:
    """Store memories, and print their ids.

    What a memory supersedes, repeats or may contradict is said on standard error.

    With --workers the arguments are files of JSON lines, CSV, plain text or Parquet. A memory whose id is in the store
    is passed over, and one without an id gets one derived from its content: a run that was stopped is finished by the
    same command.
    """
    if workers is not None:
        return _remember_files(ctx, text or [], fields.get("scope", "/"), workers)
    texts = [stdin_text("remember")] if not text or text == ["-"] else text
    on_existing = fields.pop("on_existing")
    if "id" in fields and len(texts) > 1:
        raise InvalidInput("--id goes with one text: each memory has an id of its own")
    if supersedes and len(texts) > 1:
        raise InvalidInput("--supersedes goes with one text: several take the place of one by supersede OLD NEW NEW")
    with open_memory(ctx, create=True) as memory:
        if supersedes:
            fields["supersedes"] = [whole_id(memory, id) for id in supersedes]
        if len(texts) == 1:
            return memory.remember(NewRecord(texts[0], **fields), on_existing=on_existing)
        return [memory.get(id) for id in memory.remember_many([{"text": text, **fields} for text in texts]) if id]


def _remember_files(context: click.Context, files: list[str], scope: str, workers: int) -> Remembered:
    if not files:
        raise InvalidInput("--workers goes with files: recallite remember --workers 8 big.jsonl")
    for entry in context.command.params:
        source = context.get_parameter_source(entry.name or "")
        if entry.name not in _OF_FILES and source is not None and source.name == "COMMANDLINE":
            raise InvalidInput(f"{entry.opts[0]} does not go with --workers: a file has the fields of its memories")
    with open_memory(context, scope, create=True) as memory, progress("remembering", "memories") as report:
        remembered: Remembered = plugins.load("functions", "remember_files")(
            memory, files, workers=workers, on_progress=report
        )
        return remembered


@prints(print_id, operation="update")
def update(
    ctx: click.Context,
    id: Id,
    clear: Annotated[list[str] | None, option("FIELD", f"Empty a field: {', '.join(_CLEARED)}.")] = None,
    **fields: Any,
) -> Record:
    """Change fields of a memory. `history` keeps its old texts."""
    if fields.get("text") == "-":
        fields["text"] = stdin_text("update --text -")
    for name in clear or ():
        field = name.replace("-", "_")
        if field not in _CLEARED:
            raise InvalidInput(f"--clear is {name!r}: use one of {', '.join(_CLEARED)}")
        if field in fields:
            raise InvalidInput(f"{field} is given and cleared at once: leave one out")
        fields[field] = _CLEARED[field]
    with open_memory(ctx) as memory:
        updated: Record = memory.update(whole_id(memory, id), **fields)
        return updated


def _print_superseded(done: dict[str, Any]) -> None:
    print_rows(("old", "new"), [(old, new) for old in done["old"] for new in done["new"]])


@prints(_print_superseded)
def supersede(
    memory: Memory,
    old: Annotated[str, argument("OLD", "The memory that no longer holds.")],
    new: Annotated[list[str], argument("NEW", "The memory that holds in its place; repeat for more.")],
    also: Annotated[list[str] | None, option("ID", "Another that no longer holds; repeat for more.")] = None,
    reason: Annotated[str | None, option("TEXT", "Why.")] = None,
    strength: Annotated[float, number("From 0 to 1: how sure it is.")] = 1.0,
    at: Annotated[str | None, option("TIME", "When the new one began to hold. Default: its own time.")] = None,
) -> dict[str, Any]:
    """Put memories in the place of others.

    The old ones stay in history; restore undoes it.
    """
    olds, news = ([whole_id(memory, id) for id in ids] for ids in ([old, *(also or ())], new))
    memory.supersede(olds, news, reason=reason, strength=strength, at=at)
    return {"old": olds, "new": news, "reason": reason, "strength": strength, "at": at}


def _print_restored(done: Record | RestoreReport) -> None:
    if isinstance(done, Record):
        print_table("id text")(done)
        return
    print_rows(("", ""), [(f"{done.records:,}", f"memories, with their versions and chunks, are in {done.path}")])
    if done.replaced is not None:
        hint(f"the file that was there is {done.replaced}: restore it to undo this, or remove it")
    for problem in done.problems:
        hint(f"{problem.name}: {problem.count:,}. {problem.remedy}")


@prints(_print_restored, operation="restore", without=("id",))
def restore(
    context: click.Context,
    what: Annotated[str, argument("ID|BACKUP", "A memory that was superseded or changed, or the file of a backup.")],
    discard: Annotated[bool, flag("Of a backup: remove the file that it replaces.", "--discard")] = False,
    yes: Yes = False,
    **fields: Any,
) -> Record | RestoreReport:
    """Undo a supersession, restore an earlier text, or put a backup back.

    Without --to a superseded memory holds again; with it, an earlier text becomes its newest version. Nothing is lost.

    The file of a backup takes the place of the store, after it was verified; other processes go on with it. The file
    that it replaces stays beside it, unless --discard is given.
    """
    if fields or not _is_backup(context, what):
        if discard:
            raise InvalidInput(f"--discard goes with a backup, and there is no file {what}")
        with open_memory(context) as memory:
            return memory.restore(whole_id(memory, what), **fields)
    from recallite.model.environment import default_path
    from recallite.transfer.memory_transfer import restore_store

    path = default_path() if context.obj is None else context.obj
    if discard:
        confirm(f"Remove what is in {path} and not in {what}?", yes)
    plugins.load("functions", "release")(path)
    with progress("copying", "pages") as report:
        return restore_store(
            what, path, discard_old=discard, settings=chosen_settings(context), on_progress=report
        )  # fmt: skip


def _is_backup(context: click.Context, what: str) -> bool:
    """Whether an argument is a file rather than the id of a memory. Raises InvalidInput where it could be either."""
    is_path = os.path.basename(what) != what
    if is_path or not os.path.isfile(what):
        return is_path
    is_id = False
    with suppress(RecalliteError), open_memory(context) as memory:  # the store may be damaged
        is_id = memory.get(what).id == what
    if is_id:
        raise InvalidInput(f"{what} is a memory and a file: give ./{what} for the file, or --to with the memory")
    return True


def _print_forgotten(gone: Forgotten) -> None:
    print_counts("forgotten:records")(gone)
    if gone.receipt is not None:
        _print_receipt(gone.receipt)


def _forgot_too_little(gone: Forgotten) -> bool:
    return not (gone.records or gone.services) or (gone.receipt is not None and not gone.receipt.complete)


@prints(_print_forgotten, fails=_forgot_too_little, operation="forget")
def forget(
    ctx: click.Context,
    id: Ids = None,
    yes: Yes = False,
    missing_ok: Annotated[bool, flag("Pass over ids that are not there.", "--missing-ok")] = False,
    receipt: Annotated[bool, flag("Compact the file, search it for the removed text, report.", "--receipt")] = False,
    chain: Annotated[bool, flag("Forget what they superseded too; else it holds again.", "--chain")] = False,
    **fields: Any,
) -> Forgotten:
    """Purge memories by id or by filter. Unless --yes is given it asks before it removes several.

    With --receipt the exit status is 1 if any of their text is left in the files.
    """
    with open_memory(ctx) as memory:
        whole = [whole_id(memory, entry) for entry in id or ()]
        number = len(dict.fromkeys(whole)) if whole else memory.count(**fields) if fields else 0
        if number > 1 or (number and fields):
            confirm(f"Forget {number:,} {'memory' if number == 1 else 'memories'} for good?", yes)
        gone = memory.forget(whole or None, **fields, missing_ok=missing_ok, receipt=receipt, chain=chain)
        if gone.holds_again:
            hint(f"{len(gone.holds_again):,} that they superseded hold again; --chain forgets them too")
        return gone


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
    for table, count in rows.items():
        counts[_NOUNS.get(table.partition(".")[0], "index entries")] += count
    return counts


def _print_ended(ended: dict[str, Any]) -> None:
    snapshot = ended["snapshot"]
    outcome = "ended" if snapshot is None else f"ended, kept as snapshot {snapshot.id}"
    print_rows(("session", ""), [(ended["ended"], outcome)])


@prints(_print_ended, within=True)
def end_session(
    memory: Memory,
    id: Annotated[str, argument("ID", "The id of a session.")],
    agent: Agent = None,
    summary: Annotated[str | None, option("TEXT", "Keep a snapshot with this summary.")] = None,
    decision: Annotated[list[str] | None, option("TEXT", "A key decision for the snapshot; repeat for more.")] = None,
    yes: Yes = False,
) -> dict[str, Any]:
    """Remove a session.

    With --summary or --decision a snapshot of it is kept.
    """
    keep = summary is not None or bool(decision)
    session = memory.sessions.get(id, agent=agent)
    confirm(f"Remove the session {id}?", yes)
    return {
        "ended": id,
        "snapshot": session.end(snapshot=keep, summary=summary or "", key_decisions=decision or ()),
    }


def _print_cycles(ran: Cycle | list[Cycle]) -> None:
    cycles = ran if isinstance(ran, list) else [ran]
    columns = ("at", "compressed", "pruned", "replayed", "promoted")
    rows = [
        (stamp(entry.created_at) or "nothing to do", entry.compressed, entry.pruned, entry.replayed, entry.promoted)
        for entry in cycles
    ]
    print_rows(columns, rows) if isinstance(ran, list) else print_pairs(dict(zip(columns, rows[0], strict=True)))


@prints(_print_cycles, within=True)
def consolidate(
    memory: Memory,
    agent: Annotated[
        str | None, argument("AGENT", "The agent whose episodes are consolidated. Default: episodes without an agent.")
    ] = None,
    extract: Annotated[bool, flag("Have the language model find lasting facts in new episodes.", "--extract")] = False,
    cycles: Annotated[int | None, option("N", "Show the last N cycles, and run none.")] = None,
) -> Any:
    """Run one consolidation cycle on the episodes of an agent.

    It lowers the importance of episodes, prunes those that have become unimportant, and counts the new ones.
    """
    ran = None if cycles is not None else memory.consolidator.run(agent, extract=extract)
    listed = [ran] if ran is not None else memory.consolidator.cycles(agent, limit=cycles or 0)
    for entry in listed:
        if entry.error:
            hint(f"nothing was extracted: {entry.error}")
    return listed if ran is None else ran


def _print_encrypted(encrypted: bool) -> None:
    hint(f"the store is {'encrypted' if encrypted else 'not encrypted'} now")


@prints(_print_encrypted, json=named("encrypted"))
def rekey(
    context: click.Context,
    new_key_file: Annotated[str | None, option("FILE", "A file with the new key. Default: RECALLITE_NEW_KEY.")] = None,
    decrypt: Annotated[bool, flag("Write the store without encryption instead.", "--decrypt")] = False,
) -> bool:
    """Encrypt the store with a new key.

    RECALLITE_KEY or RECALLITE_KEY_FILE gives the present key, if there is one. A key is never an argument: all users
    of the machine see the arguments of a process.
    """
    from recallite.model.environment import default_path

    new = new_key(new_key_file, decrypt=decrypt)
    plugins.load("functions", "release")(default_path() if context.obj is None else context.obj)
    with open_memory(context) as memory:
        memory.store.rekey(new)
    return new is not None


def _print_warmup(done: dict[str, Any]) -> None:
    print_rows(("seconds", ""), [(f"{value:.3f}", name) for name, value in done["seconds"].items()])
    hint(f"kernels: {done['kernels']}")


@prints(_print_warmup, create=True)
def warmup(memory: Memory) -> dict[str, Any]:
    """Compile the kernels, load the embedder and the index."""
    with progress("loading", "kernels") as report:
        seconds = memory.store.warmup(on_progress=report)
    return {"seconds": seconds, "kernels": memory.store.stats().kernels}
