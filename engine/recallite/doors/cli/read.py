"""Commands that read memories: recall, explain, get, list, count, scopes, tags, neighbors, links, history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Unpack, cast

import typer

from recallite.doors.cli.command import nothing, prints
from recallite.doors.cli.hits import print_explanation, print_hits
from recallite.doors.cli.ids import whole_id
from recallite.doors.cli.options import (
    Direction,
    FilterOptions,
    Id,
    Limit,
    LinkTypes,
    RecallOptions,
    argument,
    filter_fields,
    flag,
    open_memory,
    option,
    recall_fields,
)
from recallite.doors.cli.output import attributes, hint, named, print_pairs, print_table, stamp
from recallite.doors.cli.streams import stdin_lines
from recallite.errors import InvalidInput

if TYPE_CHECKING:
    from recallite.memory import Memory
    from recallite.model.records import Explanation, Hits, Link, Reached, Record
    from recallite.model.reports import ScopeCount, TagCount


class Answers(NamedTuple):
    """What recall found: the hits of each question, and whether the store has no memories."""

    hits: list[Hits]
    many: bool
    explained: bool
    empty: bool


def _answers_json(found: Answers) -> object:
    """The hits of one question; with --explain, or of many questions, an object a question."""
    names = "evidence_gaps sub_queries scopes diversify_by left_out stages"
    shown = [{"query": hits.query, "hits": list(hits), **attributes(hits, names)} for hits in found.hits]
    return shown if found.many else shown[0] if found.explained else found.hits[0]


def _print_answers(found: Answers) -> None:
    if found.empty:
        hint("the store is empty")
        return
    for hits in found.hits:
        print_hits(hits, many=found.many, explained=found.explained)


@prints(_print_answers, json=_answers_json, fails=lambda found: not any(found.hits))
def recall(
    context: typer.Context,
    query: Annotated[
        str | None, argument("QUERY", "The question. Without it, each line of standard input or of --file is one.")
    ] = None,
    file: Annotated[str | None, option("FILE", "A file with a question on each line; - is standard input.")] = None,
    explain: Annotated[bool, flag("Show signals, and the time each stage took.", "--explain")] = False,
    **options: Unpack[RecallOptions],
) -> Answers:
    """Find the memories that answer a question, best first.

    With --json: the hits of one question, an array; with --explain or many questions, an object a question.
    """
    fields = recall_fields(options, explain=explain)
    if query is not None and file is not None:
        raise InvalidInput("give a query or --file, not both")
    with open_memory(context) as memory:
        if query is not None:
            hits = [memory.recall(query, **fields)]
        elif "vector" in fields:
            raise InvalidInput("--vector goes with one query as an argument")
        else:
            hits = memory.recall_many(stdin_lines(file), **fields)
        return Answers(hits, query is None, explain, not any(hits) and memory.count() == 0)


@prints(print_explanation)
def explain(
    memory: Memory, query: Annotated[str, argument("QUERY")], id: Id, **options: Unpack[RecallOptions]
) -> Explanation:
    """Say why a memory is or is not among the hits."""
    return memory.review.explain(query, whole_id(memory, id), **recall_fields(options))


def _print_records(records: Record | list[Record]) -> None:
    for place, record in enumerate(records if isinstance(records, list) else [records]):
        if place:
            typer.echo()
        print_pairs({name: getattr(record, name) for name in record.__struct_fields__ if name != "outcome"})


@prints(_print_records)
def get(
    memory: Memory, ids: Annotated[list[str], argument("ID", "The id of a memory, or an unambiguous start or end.")]
) -> Record | list[Record]:
    """Show memories. With --json one is an object, several are an array."""
    found = [memory.get(whole_id(memory, id)) for id in ids]
    return found[0] if len(found) == 1 else found


def _listed_row(record: Record) -> tuple[object, ...]:
    return record.id, record.scope, record.kind, stamp(record.created_at), _holds(record), record.text


def _holds(record: Record) -> str:
    """When a memory holds, where that is known, and how often it was remembered."""
    since, until = (
        "" if moment is None else f"{moment:%Y-%m-%d}"
        for moment in (record.valid_from, record.held_until or record.valid_until)
    )
    span = f"{since}..{until}" if until else since
    said = f"said {record.occurrences:,} times" if record.occurrences > 1 else ""
    return ", ".join(each for each in (span, said, "superseded" if record.superseded_by else "") if each)


@prints(
    print_table("id scope kind created holds text", _listed_row, under=("scope", "kind", "created", "holds")),
    fails=nothing,
)
def list_(
    memory: Memory,
    order: Annotated[str, option("ORDER", "newest, oldest, created, updated or importance.")] = "newest",
    limit: Limit = 100,
    offset: Annotated[int, typer.Option(help="How many to leave out first.")] = 0,
    **options: Unpack[FilterOptions],
) -> list[Record]:
    """Show memories in order, filtered as recall filters."""
    fields = filter_fields(options)
    found = memory.list(**fields, order=order, limit=limit, offset=offset)
    if len(found) == limit and (more := memory.count(**fields) - offset - limit) > 0:
        hint(f"{more:,} more: --limit and --offset show them")
    return found


@prints(typer.echo, json=named("count"))
def count(memory: Memory, **options: Unpack[FilterOptions]) -> int:
    """Count memories, filtered as recall filters."""
    return memory.count(**filter_fields(options))


@prints(print_table("scope memories"), fails=nothing)
def scopes(
    memory: Memory,
    scope: Annotated[str, argument("/A/B", "This scope and those below it. Default: all.")] = "/",
    depth: Annotated[int | None, typer.Option(help="At most so many levels below; the rest counts above.")] = None,
) -> list[ScopeCount]:
    """Show the scopes that hold memories, and how many."""
    return memory.scopes(scope, depth=depth)


@prints(print_table("tag memories"), fails=nothing)
def tags(
    memory: Memory, scope: Annotated[str, argument("/A/B", "Of this scope and those below it. Default: all.")] = "/"
) -> list[TagCount]:
    """Show the tags of memories, and how many have each."""
    return memory.tags(scope)


@prints(print_table("from:source to:target type strength:strength:g"), fails=nothing)
def neighbors(memory: Memory, id: Id, type: LinkTypes = None, direction: Direction = "both") -> list[Link]:
    """Show the links of a memory, strongest first."""
    return memory.neighbors(whole_id(memory, id), types=type or (), direction=cast(Any, direction))


@prints(print_table("distance strength id:record.id text:record.text"), fails=nothing)
def links(
    memory: Memory,
    id: Id,
    depth: Annotated[int, typer.Option(help="The most links on the way.")] = 2,
    type: LinkTypes = None,
    direction: Direction = "both",
    limit: Limit = 100,
) -> list[Reached]:
    """Show the memories that links lead to, nearest first."""
    return memory.neighbors(
        whole_id(memory, id), depth=depth, types=type or (), direction=cast(Any, direction), limit=limit
    )


def _version_row(version: Record) -> tuple[object, ...]:
    since, until = version.held
    return version.id, stamp(since), stamp(until) or "now", version.text


@prints(print_table("id since until text", _version_row))
def history(
    memory: Memory,
    id: Id,
    own: Annotated[bool, flag("Only its own versions, whose places restore --to takes.", "--own")] = False,
) -> list[Record]:
    """Show what was said before and since, oldest first.

    These are the versions of the memory, of those that it supersedes and of those that supersede it.
    """
    return memory.history(whole_id(memory, id), chain=not own)
