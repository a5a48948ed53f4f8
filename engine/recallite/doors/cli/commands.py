"""The commands that do more than one call of an operation, or print what no other command prints."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from recallite.doors.cli.command import (
    Agent,
    Id,
    Ids,
    Limit,
    Overrides,
    Yes,
    argument,
    chosen_settings,
    confirm,
    flag,
    nothing,
    number,
    open_memory,
    option,
    parse_json,
    prints,
    recall_fields,
    store_path,
    whole_id,
)
from recallite.doors.cli.output import (
    attributes,
    hint,
    named,
    one_line,
    print_counts,
    print_pairs,
    print_rows,
    print_table,
    progress,
    stamp,
    stdin_lines,
    stdin_text,
)
from recallite.doors.cli.printers import (
    hint_of_replaced,
    print_hits,
    print_id,
    print_stored,
)
from recallite.errors import InvalidInput, RecalliteError
from recallite.model.records import NewRecord, Record, Records
from recallite.model.reports import Remembered
from recallite.system import plugins

if TYPE_CHECKING:
    from recallite.agents.consolidation import Cycle
    from recallite.documents.document import Ingested
    from recallite.memory import Memory
    from recallite.model.records import Hit, Hits
    from recallite.model.reports import Forgotten
    from recallite.store.store import Progress
    from recallite.transfer.memory_transfer import RestoreReport

# Memories.

_CLEARED: dict[str, Any] = {
    "context": None, "topic": None, "source": None, "position": None, "valid_from": None, "valid_until": None,
    "expires_at": None, "tags": (), "metadata": {},
}  # fmt: skip
_OF_FILES = ("text", "scope", "workers", "as_json")


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


def list_(memory: Memory, **fields: Any) -> Records:
    """The memories, with a hint at those that are left out and those that follow."""
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
    """The number of memories, with a hint at those that are left out."""
    hint_of_replaced(memory.list(limit=1, **fields).left_out, "--include-superseded counts them")
    return memory.count(**fields)


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


_MOST_NAMED = 20
_NOUNS = {
    "record": "memories and versions", "vector": "vectors", "term": "words", "tag": "tags", "source": "sources",
    "scope": "scopes", "link": "links", "supersession": "supersessions", "occurrence": "repeated statements",
    "document": "documents", "session": "sessions",
    "session_message": "messages", "session_snapshot": "session snapshots", "tool_pattern": "tool patterns",
    "error_recovery": "error recoveries", "procedure_use": "uses of procedures", "working_state": "working memories",
    "consolidation": "consolidation cycles", "embedding_cache": "cached vectors",
}  # fmt: skip


def _print_forgotten(gone: Forgotten) -> None:
    print_counts("forgotten:records")(gone)
    if (receipt := gone.receipt) is None:
        return
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


@prints(
    _print_forgotten,
    fails=lambda gone: not (gone.records or gone.services) or not (gone.receipt is None or gone.receipt.complete),
    operation="forget", without=("ids",),
)  # fmt: skip
def forget(
    ctx: click.Context,
    id: Ids = None,
    yes: Yes = False,
    **fields: Any,
) -> Forgotten:
    """Purge memories by id or by filter. Unless --yes is given it asks before it removes several.

    With --receipt the exit status is 1 if any of their text is left in the files.
    """
    how = {name: fields.pop(name) for name in ("missing_ok", "receipt", "chain")}
    with open_memory(ctx) as memory:
        whole = [whole_id(memory, entry) for entry in id or ()]
        number = len(dict.fromkeys(whole)) if whole else memory.count(**fields) if fields else 0
        if number > 1 or (number and fields):
            confirm(f"Forget {number:,} {'memory' if number == 1 else 'memories'} for good?", yes)
        gone = memory.forget(whole or None, **fields, **how)
        if gone.holds_again:
            again = len(gone.holds_again)
            what = "superseded memory holds" if again == 1 else "superseded memories hold"
            hint(f"{again:,} {what} again; --chain forgets what was superseded too")
            for record in memory.get(gone.holds_again[:_MOST_NAMED]).values():
                hint(f"{record.id} holds again: {one_line(record.text)}")
        return gone


# Recall.


class Answers(NamedTuple):
    """Hits of each question, and whether the store has no memories."""

    hits: list[Hits]
    many: bool
    explained: bool
    empty: bool
    relevant: bool
    whole: bool


def _answers_json(answers: Answers) -> object:
    """The hits of one question; an object a question where there are many, or more than hits is asked for."""
    objects = [hits.fields() for hits in answers.hits]
    return objects if answers.many else objects[0] if answers.explained or answers.relevant else answers.hits[0]


def _print_answers(answers: Answers) -> None:
    if answers.empty:
        hint("the store is empty")
        return
    for hits in answers.hits:
        print_hits(hits, many=answers.many, explained=answers.explained, whole=answers.whole)


@prints(_print_answers, json=_answers_json, fails=lambda answers: not any(answers.hits), operation="recall")
def recall(
    context: click.Context,
    query: Annotated[
        str | None, argument("QUERY", "The question. Without it, each line of standard input or of --file is one.")
    ] = None,
    file: Annotated[str | None, option("FILE", "A file with a question on each line; - is standard input.")] = None,
    explain: Annotated[bool, flag("Show signals, and the time each stage took.", "--explain")] = False,
    whole: Annotated[bool, flag("Show the weaker hits on a terminal too, and whole texts.", "--all")] = False,
    overrides: Overrides = None,
    **fields: Any,
) -> Answers:
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


# Changes and sessions.


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
    from recallite.transfer.memory_transfer import restore_store

    path = store_path(context)
    if discard:
        confirm(f"Remove what is in {path} and not in {what}?", yes)
    plugins.load("functions", "release")(path)
    with progress("copying", "pages") as report:
        return restore_store(what, path, discard_old=discard, settings=chosen_settings(context), on_progress=report)


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
    snapshot = session.end(snapshot=keep, summary=summary or "", key_decisions=decision or ())
    return {"ended": id, "snapshot": snapshot}


# Documents.


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


def _passage_row(hit: Hit) -> tuple[object, ...]:
    """The cells of a passage; its place is as an editor opens it: path:line, or the page of what has no lines."""
    place = ""
    if hit.source is not None:
        place = hit.source.path or hit.source.id
        if hit.source.lines is not None:
            place += f":{hit.source.lines[0]}"
        elif "page" in hit.metadata:
            place += f" p. {hit.metadata['page']}"
    line = " ".join(hit.text.split())
    snippet = line if len(line) <= _SNIPPET_CHARS else line[: _SNIPPET_CHARS - 1] + "…"
    return f"{hit.score:.2f}", f"{hit.confidence:.2f}", place, hit.context, snippet


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


# Agents and the store.


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
    if cycles is None:
        ran: Cycle | list[Cycle] = memory.consolidator.run(agent, extract=extract)
    else:
        ran = memory.consolidator.cycles(agent, limit=cycles)
    for entry in ran if isinstance(ran, list) else [ran]:
        if entry.error:
            hint(f"nothing was extracted: {entry.error}")
    return ran


@prints(
    lambda encrypted: hint(f"the store is {'encrypted' if encrypted else 'not encrypted'} now"), json=named("encrypted")
)
def rekey(
    context: click.Context,
    new_key_file: Annotated[str | None, option("FILE", "A file with the new key. Default: RECALLITE_NEW_KEY.")] = None,
    decrypt: Annotated[bool, flag("Write the store without encryption instead.", "--decrypt")] = False,
) -> bool:
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


@prints(lambda embedded: click.echo(f"{embedded} embedded"), json=named("embedded"))
def reembed(
    context: click.Context,
    to: Annotated[str | None, option("MODEL", "The embedder to move to. Default: the configured one.")] = None,
) -> int:
    """Embed memories with the configured embedder, or with another.

    Moves the store to another embedder, or embeds memories that have no vector. Can be interrupted and resumed.
    """
    with open_memory(context, embedder=to) as memory, progress("embedding", "memories") as report:
        embedded = memory.store.reembed(on_progress=report)
    if to is not None:
        hint(f"open the store with this embedder from now on: RECALLITE_EMBEDDER={to}, or Settings(embedder={to!r})")
    return embedded


def _print_warmup(done: dict[str, Any]) -> None:
    print_rows(("seconds", ""), [(f"{value:.3f}", name) for name, value in done["seconds"].items()])
    hint(f"kernels: {done['kernels']}")


@prints(_print_warmup, create=True)
def warmup(memory: Memory) -> dict[str, Any]:
    """Compile the kernels, load the embedder and the index."""
    with progress("loading", "kernels") as report:
        seconds = memory.store.warmup(on_progress=report)
    return {"seconds": seconds, "kernels": memory.store.stats().kernels}
