"""The commands that read memories and do more than one call: recall, explain, get, list, bootstrap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from recallite.doors.cli.command import (
    Id,
    Overrides,
    argument,
    flag,
    nothing,
    open_memory,
    option,
    prints,
    recall_fields,
    whole_id,
)
from recallite.doors.cli.output import attributes, hint, print_pairs, print_table, safe, stamp, stdin_lines
from recallite.doors.cli.printers import print_explanation, print_hits
from recallite.errors import InvalidInput

if TYPE_CHECKING:
    from recallite.agents.bootstrap import Bootstrap
    from recallite.memory import Memory
    from recallite.model.records import Explanation, Hits, Record


class Answers(NamedTuple):
    """Hits of each question, and whether the store has no memories."""

    hits: list[Hits]
    many: bool
    explained: bool
    empty: bool


def _answers_json(answers: Answers) -> object:
    """The hits of one question; with --explain, or of many questions, an object a question."""
    names = "evidence_gaps sub_queries scopes diversify_by left_out stages"
    shown = [{"query": hits.query, "hits": list(hits), **attributes(hits, names)} for hits in answers.hits]
    return shown if answers.many else shown[0] if answers.explained else answers.hits[0]


def _print_answers(answers: Answers) -> None:
    if answers.empty:
        hint("the store is empty")
        return
    for hits in answers.hits:
        print_hits(hits, many=answers.many, explained=answers.explained)


@prints(_print_answers, json=_answers_json, fails=lambda answers: not any(answers.hits), operation="recall")
def recall(
    context: click.Context,
    query: Annotated[
        str | None, argument("QUERY", "The question. Without it, each line of standard input or of --file is one.")
    ] = None,
    file: Annotated[str | None, option("FILE", "A file with a question on each line; - is standard input.")] = None,
    explain: Annotated[bool, flag("Show signals, and the time each stage took.", "--explain")] = False,
    overrides: Overrides = None,
    **fields: Any,
) -> Answers:
    """Find the memories that answer a question, best first.

    With --json: the hits of one question, an array; with --explain or many questions, an object a question.
    """
    if explain:
        fields["purpose"] = "explain"
    fields = recall_fields(fields, overrides)
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


@prints(print_explanation, operation="review.explain", without=("purpose",))
def explain(
    memory: Memory, query: Annotated[str, argument("QUERY")], id: Id, overrides: Overrides = None, **fields: Any
) -> Explanation:
    """Say why a memory is or is not among the hits."""
    return memory.review.explain(query, whole_id(memory, id), **recall_fields(fields, overrides))


def _print_records(records: Record | list[Record]) -> None:
    for place, record in enumerate(records if isinstance(records, list) else [records]):
        if place:
            click.echo()
        print_pairs({name: getattr(record, name) for name in record.__struct_fields__ if name != "outcome"})


@prints(_print_records)
def get(
    memory: Memory, ids: Annotated[list[str], argument("ID", "The id of a memory, or an unambiguous start or end.")]
) -> Record | list[Record]:
    """Show memories. With --json one is an object, several are an array."""
    answers = [memory.get(whole_id(memory, id)) for id in ids]
    return answers[0] if len(answers) == 1 else answers


def _listed_row(record: Record) -> tuple[object, ...]:
    return record.id, record.scope, record.kind, stamp(record.created_at), _holds(record), record.text


def _holds(record: Record) -> str:
    """Show the valid time of a memory, if known, and how often it was remembered."""
    since, until = (
        "" if moment is None else f"{moment:%Y-%m-%d}"
        for moment in (record.valid_from, record.held_until or record.valid_until)
    )
    span = f"{since}..{until}" if until else since
    times = f"said {record.occurrences:,} times" if record.occurrences > 1 else ""
    return ", ".join(part for part in (span, times, "superseded" if record.superseded_by else "") if part)


@prints(
    print_table("id scope kind created holds text", _listed_row, under=("scope", "kind", "created", "holds")),
    fails=nothing,
    operation="list",
)
def list_(memory: Memory, **fields: Any) -> list[Record]:
    """Show memories in order, filtered as recall filters."""
    records = memory.list(**fields)
    limit, offset = fields.pop("limit"), fields.pop("offset")
    if len(records) == limit:
        del fields["order"]
        more = memory.count(**fields) - offset - limit
        if more > 0:
            hint(f"{more:,} more: --limit and --offset show them")
    return records


def _print_bootstrap(briefing: Bootstrap) -> None:
    if briefing.text:
        click.echo(safe(briefing.text))
    if briefing.elsewhere:
        there = "1 memory is" if briefing.elsewhere == 1 else f"{briefing.elsewhere:,} memories are"
        hint(f"nothing is stored below /agents/AGENT; {there} elsewhere: without AGENT the briefing draws on all")
    if briefing.tips:
        from recallite.agents.bootstrap import TIPS_FOUND

        hint(f"[experience] {len(briefing.tips)} {TIPS_FOUND}")
    if briefing.left_out:
        hint(f"{briefing.left_out:,} more did not fit the budget")


@prints(_print_bootstrap, within=True, create=True)  # an agent's first start
def bootstrap(
    memory: Memory,
    task: Annotated[str, option("TEXT", "What is to be done.")],
    agent: Annotated[str | None, argument("AGENT", "The agent that the briefing is for. Default: no agent.")] = None,
    budget: Annotated[int, option("TOKENS", "The most tokens.")] = 2_000,
    task_type: Annotated[str | None, option("TYPE", "Tips for this type of task only.")] = None,
) -> Bootstrap:
    """Print a briefing for an agent's task, as Markdown."""
    return memory.bootstrap(agent, task, budget, task_type=task_type)
