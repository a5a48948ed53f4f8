"""Commands that do more than call their operation once. The docstring of each is its help."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from recallite.errors import InvalidInput, RecalliteError
from recallite.model.records import NewRecord, Record, Records
from recallite.system import plugins
from recallite_cli.command import (
    chosen_settings,
    confirm,
    open_memory,
    recall_fields,
    store_path,
    whole_id,
)
from recallite_cli.output import hint, one_line, progress, stdin_lines, stdin_text
from recallite_cli.printers import Answers, Ingestion, hint_of_replaced

if TYPE_CHECKING:
    from recallite.agents.bootstrap import Bootstrap
    from recallite.agents.consolidation import Cycle
    from recallite.memory import Memory
    from recallite.model.records import Explanation, Hits
    from recallite.model.reports import Forgotten, Remembered
    from recallite.store.store import Progress
    from recallite.transfer.memory_transfer import RestoreReport

# Memories.

_CLEARED: dict[str, Any] = {
    "context": None, "topic": None, "source": None, "position": None, "valid_from": None, "valid_until": None,
    "expires_at": None, "tags": (), "metadata": {},
}  # fmt: skip
_OF_FILES = ("text", "scope", "workers", "as_json")
_MOST_NAMED = 20


def remember(
    ctx: click.Context, text: list[str] | None = None, supersedes: list[str] | None = None, workers: int | None = None,
    **fields: Any,
) -> Record | list[Record] | Remembered:  # fmt: skip
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


def list_(memory: Memory, **fields: Any) -> Records:
    """Show memories in order, filtered as recall filters."""
    records = memory.list(**fields)
    hint_of_replaced(records.left_out, "--include-superseded shows them")
    limit, offset = fields.pop("limit"), fields.pop("offset")
    if len(records) == limit:
        del fields["order"]
        more = memory.count(**fields) - offset - limit
        if more > 0:
            hint(f"{more:,} more: --limit and --offset show them")
    return records


def count(memory: Memory, **fields: Any) -> int:
    """Count memories, filtered as recall filters."""
    hint_of_replaced(memory.list(limit=1, **fields).left_out, "--include-superseded counts them")
    return memory.count(**fields)


def update(memory: Memory, id: str, clear: Sequence[str] = (), **fields: Any) -> Record:
    """Change fields of a memory. `history` keeps its old texts."""
    if fields.get("text") == "-":
        fields["text"] = stdin_text("update --text -")
    for name in clear:
        field = name.replace("-", "_")
        if field not in _CLEARED:
            raise InvalidInput(f"--clear is {name!r}: use one of {', '.join(_CLEARED)}")
        if field in fields:
            raise InvalidInput(f"{field} is given and cleared at once: leave one out")
        fields[field] = _CLEARED[field]
    updated: Record = memory.update(id, **fields)
    return updated


def forget(
    memory: Memory, id: Sequence[str] = (), yes: bool = False, missing_ok: bool = False, receipt: bool = False,
    chain: bool = False, **fields: Any,
) -> Forgotten:  # fmt: skip
    """Purge memories by id or by filter. Unless --yes is given it asks before it removes several.

    With --receipt the exit status is 1 if any of their text is left in the files.
    """
    number = len(dict.fromkeys(id)) if id else memory.count(**fields) if fields else 0
    if number > 1 or (number and fields):
        confirm(f"Forget {number:,} {'memory' if number == 1 else 'memories'} for good?", yes)
    gone = memory.forget(id or None, missing_ok=missing_ok, receipt=receipt, chain=chain, **fields)
    if again := len(gone.holds_again):
        what = "superseded memory holds" if again == 1 else "superseded memories hold"
        hint(f"{again:,} {what} again; --chain forgets what was superseded too")
        for record in memory.get(gone.holds_again[:_MOST_NAMED]).values():
            hint(f"{record.id} holds again: {one_line(record.text)}")
    return gone


# Recall.


def recall(
    context: click.Context, query: str | None = None, file: str | None = None, explain: bool = False,
    whole: bool = False, overrides: Sequence[str] = (), **fields: Any,
) -> Answers:  # fmt: skip
    """Find the memories that answer a question, best first.

    With --json: the hits of one question, an array; with --relevant, --explain or many questions, an object a question,
    with its gaps.
    """
    fields = recall_fields({**fields, "purpose": "explain"} if explain else fields, overrides)
    if query is not None and file is not None:
        raise InvalidInput("give a query or --file, not both")
    with open_memory(context) as memory:
        if query is not None:
            hits = [memory.recall(query, **fields)]
        elif "vector" in fields:
            raise InvalidInput("--vector goes with one query as an argument")
        else:
            hits = memory.recall_many(stdin_lines(file), **fields)
        empty = not any(hits) and memory.count() == 0
        return Answers(hits, query is None, explain, empty, bool(fields.get("relevant")), whole)


def explain(memory: Memory, query: str, id: str, overrides: Sequence[str] = (), **fields: Any) -> Explanation:
    """Say why a memory is or is not among the hits."""
    return memory.review.explain(query, id, **recall_fields(fields, overrides))


def bootstrap(memory: Memory, agent: str | None = None, **fields: Any) -> Bootstrap:
    """Print a briefing for an agent's task, as Markdown."""
    return memory.bootstrap(agent, **fields)


# Changes and sessions.


def supersede(memory: Memory, old: str, new: Sequence[str], also: Sequence[str] = (), **options: Any) -> dict[str, Any]:
    """Put memories in the place of others.

    The old ones stay in history; restore undoes it.
    """
    memory.supersede([old, *also], new, **options)
    return {"old": [old, *also], "new": new, "reason": options.get("reason"), "strength": options["strength"],
            "at": options.get("at")}  # fmt: skip


def restore(
    context: click.Context, id: str, discard: bool = False, yes: bool = False, **fields: Any
) -> Record | RestoreReport:
    """Undo a supersession, restore an earlier text, or put a backup back.

    Without --to a superseded memory holds again; with it, an earlier text becomes its newest version. Nothing is lost.

    The file of a backup takes the place of the store, after it was verified; other processes go on with it. The file
    that it replaces stays beside it, unless --discard is given.
    """
    if fields or not _is_backup(context, id):
        if discard:
            raise InvalidInput(f"--discard goes with a backup, and there is no file {id}")
        with open_memory(context) as memory:
            return memory.restore(whole_id(memory, id), **fields)
    from recallite.transfer.memory_transfer import restore_store

    path = store_path(context)
    if discard:
        confirm(f"Remove what is in {path} and not in {id}?", yes)
    plugins.load("functions", "release")(path)
    with progress("copying", "pages") as report:
        return restore_store(id, path, discard_old=discard, settings=chosen_settings(context), on_progress=report)


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


def end_session(
    memory: Memory, id: str, agent: str | None = None, summary: str | None = None, key_decisions: Sequence[str] = (),
    yes: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Remove a session.

    With --summary or --decision a snapshot of it is kept.
    """
    session = memory.sessions.get(id, agent=agent)
    confirm(f"Remove the session {id}?", yes)
    keep = summary is not None or bool(key_decisions)
    return {"ended": id, "snapshot": session.end(snapshot=keep, summary=summary or "", key_decisions=key_decisions)}


# Documents.


def ingest(memory: Memory, report: Progress | None, sources: Sequence[str], **options: Any) -> Ingestion:
    """Read documents, and store what is new or has changed. What was left out is reported on standard error."""
    source: Any = sources[0] if len(sources) == 1 else sources
    if source == "-":
        if sys.stdin.isatty():
            raise InvalidInput("no document was given: pipe one in, or name a file, a folder or a URL")
        source = sys.stdin.buffer.read()
    elif "-" in sources:
        raise InvalidInput("- is standard input, and no source beside others")
    done = memory.knowledge.ingest(source, on_progress=report, **options)
    unread = {skipped.source for skipped in done.skipped if skipped.error is not None}
    return Ingestion(done, not done.documents or not unread.isdisjoint(sources))


def search(
    memory: Memory, query: str, limit: int = 5, overrides: Sequence[str] = (), budget: int | None = None, **fields: Any
) -> Hits | str:
    """Find passages, best first, with path:line or page."""
    fields = recall_fields(fields, overrides)
    if budget is not None:
        return memory.knowledge.context(query, budget, **fields)
    return memory.knowledge.search(query, limit, **fields)


# Agents and the store.


def consolidate(
    memory: Memory, agent: str | None = None, extract: bool = False, cycles: int | None = None
) -> Cycle | list[Cycle]:
    """Run one consolidation cycle on the episodes of an agent.

    It lowers the importance of episodes, prunes those that have become unimportant, and counts the new ones.
    """
    if cycles is None:
        ran: Cycle | list[Cycle] = memory.consolidator.run(agent, extract=extract)
    else:
        ran = memory.consolidator.cycles(agent, limit=cycles)
    for entry in ran if isinstance(ran, list) else [ran]:
        if entry.error:
            hint(f"nothing was extracted: {entry.error}")
    return ran


def rekey(context: click.Context, new_key_file: str | None = None, decrypt: bool = False) -> bool:
    """Encrypt the store with a new key.

    RECALLITE_KEY or RECALLITE_KEY_FILE gives the present key, if there is one. A key is never an argument: all users
    of the machine see the arguments of a process.
    """
    from recallite.model.environment import environment, key_in

    if new_key_file is not None and decrypt:
        raise InvalidInput("--decrypt removes the key: leave --new-key-file out")
    new = None if decrypt else environment("RECALLITE_NEW_KEY") if new_key_file is None else key_in(new_key_file)
    if not (new or decrypt):
        raise InvalidInput("there is no new key: set RECALLITE_NEW_KEY, or give --new-key-file or --decrypt")
    plugins.load("functions", "release")(store_path(context))
    with open_memory(context) as memory:
        memory.store.rekey(new)
    return new is not None


def reembed(context: click.Context, to: str | None = None) -> int:
    """Embed memories with the configured embedder, or with another.

    Moves the store to another embedder, or embeds memories that have no vector. Can be interrupted and resumed.
    """
    with open_memory(context, embedder=to) as memory, progress("embedding", "memories") as report:
        embedded = memory.store.reembed(on_progress=report)
    if to is not None:
        hint(f"open the store with this embedder from now on: RECALLITE_EMBEDDER={to}, or Settings(embedder={to!r})")
    return embedded


def warmup(memory: Memory, report: Progress | None) -> dict[str, Any]:
    """Compile the kernels, load the embedder and the index."""
    return {"seconds": memory.store.warmup(on_progress=report), "kernels": memory.store.stats().kernels}
