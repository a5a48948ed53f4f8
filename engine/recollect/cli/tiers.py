"""Commands on the tiers: episodes, procedures, consolidate, bootstrap."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.options import Agent, AsJson, Limit, Since, Until, Within, open_within
from recollect.cli.output import fail_quietly, hint, print_json, print_pairs, print_rows, safe, stamp

__all__ = ["bootstrap", "consolidate", "episodes", "procedures"]

episodes = typer.Typer(no_args_is_help=True, help="What happened: log it, list it, see the snapshots of sessions.")
procedures = typer.Typer(no_args_is_help=True, help="How things are done, and how well it went.")
Tag = Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag; repeat for more.")]


@episodes.command("log")
def log_episode(
    context: typer.Context,
    content: Annotated[str, typer.Argument(metavar="CONTENT", show_default=False)],
    type: Annotated[
        str, typer.Option(metavar="TYPE", help="task-started, decision-made, error-encountered, tool-call, ...")
    ] = "observation",
    agent: Agent = None,
    task: Annotated[str | None, typer.Option(metavar="ID", help="The task it belongs to.")] = None,
    importance: Annotated[float, typer.Option(help="From 0 to 1.")] = 0.5,
    pinned: Annotated[bool, typer.Option("--pinned", help="Keep it out of every pruning.")] = False,
    tag: Tag = None,
    cost: Annotated[float | None, typer.Option(help="What it cost.")] = None,
    duration_ms: Annotated[float | None, typer.Option(help="How long it took, in milliseconds.")] = None,
    event_at: Annotated[str | None, typer.Option(metavar="TIME", help="When it happened; else now.")] = None,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Store an episode; prints its id."""
    with open_within(context, scope) as memory:
        record = memory.episodes.log(
            content, event_type=type, agent=agent, task_id=task, importance=importance, pinned=pinned, tags=tag or (),
            cost=cost, duration_ms=duration_ms, event_at=event_at,
        )  # fmt: skip
    print_json(record) if as_json else print_rows(("id",), [(record.id,)])


@episodes.command("list")
def list_episodes(
    context: typer.Context,
    agent: Agent = None,
    task: Annotated[str | None, typer.Option(metavar="ID", help="Only those of this task.")] = None,
    type: Annotated[str | None, typer.Option(metavar="TYPE", help="Only those of this type.")] = None,
    on: Annotated[str | None, typer.Option(metavar="DAY", help="Only those of this day of UTC.")] = None,
    since: Since = None,
    until: Until = None,
    order: Annotated[str, typer.Option(metavar="ORDER", help="oldest, newest or importance.")] = "newest",
    limit: Limit = 100,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Show episodes in order."""
    with open_within(context, scope) as memory:
        found = memory.episodes.list(
            agent=agent, task_id=task, event_type=type, on=on, since=since, until=until, order=order, limit=limit
        )
    if as_json:
        print_json(found)
    else:
        rows = [
            (each.id, stamp(each.event_at or each.created_at), each.metadata.get("event_type"),
             f"{each.importance:.2f}", each.text)
            for each in found
        ]  # fmt: skip
        print_rows(("id", "at", "type", "importance", "text"), rows, under=("at", "type", "importance"))
    fail_quietly(not found)


@episodes.command("snapshots")
def list_snapshots(
    context: typer.Context, agent: Agent = None, limit: Limit = 10, scope: Within = None, as_json: AsJson = False
) -> None:
    """Show what is kept of sessions that ended, the last first."""
    with open_within(context, scope) as memory:
        found = memory.episodes.snapshots(limit, agent=agent)
    if as_json:
        print_json(found)
    else:
        rows = [(each.session_id or each.id, stamp(each.ended_at), len(each.messages), each.summary) for each in found]
        print_rows(("session", "ended", "messages", "summary"), rows)
    fail_quietly(not found)


@procedures.command("list")
def list_procedures(
    context: typer.Context,
    agent: Agent = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Any of these tags; repeat for more.")] = None,
    limit: Limit = 100,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Show procedures, those that succeed most first."""
    with open_within(context, scope) as memory:
        found = memory.procedures.list(agent=agent, tags=tag or None, limit=limit)
    if as_json:
        print_json(found)
    else:
        rows = [(each.name, f"{each.success_rate:.0%}", each.use_count, each.description) for each in found]
        print_rows(("name", "success", "uses", "description"), rows)
    fail_quietly(not found)


@procedures.command("save")
def save_procedure(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    description: Annotated[str, typer.Argument(metavar="DESCRIPTION", show_default=False)],
    pattern: Annotated[str, typer.Option(help="The steps, in any form.")] = "",
    tag: Tag = None,
    agent: Agent = None,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Store a procedure, or change the one of this name; prints its id."""
    with open_within(context, scope) as memory:
        saved = memory.procedures.save(name, description, pattern=pattern, tags=tag or (), agent=agent)
    print_json(saved) if as_json else print_rows(("id",), [(saved.id,)])


@procedures.command("outcome")
def record_outcome(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name or id.", show_default=False)],
    success: Annotated[bool, typer.Option("--success/--failure", help="How it went.", show_default=False)],
    agent: Agent = None,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Count a use of a procedure."""
    with open_within(context, scope) as memory:
        counted = memory.procedures.record_outcome(name, success, agent=agent)
    if as_json:
        print_json(counted)
    else:
        print_pairs({"name": counted.name, "success rate": counted.success_rate, "uses": counted.use_count})


def consolidate(
    context: typer.Context,
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="Whose episodes; else those of no agent.")
    ] = None,
    extract: Annotated[
        bool, typer.Option("--extract", help="Have the language model find lasting facts in new episodes.")
    ] = False,
    cycles: Annotated[int | None, typer.Option(metavar="N", help="Show the last N cycles, and run none.")] = None,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Run one cycle on the episodes of an agent: fade them, delete what has faded away, and count the new ones."""
    with open_within(context, scope) as memory:
        ran = [memory.consolidator.run(agent, extract=extract)] if cycles is None else (
            memory.consolidator.cycles(agent, limit=cycles)
        )  # fmt: skip
    if as_json:
        print_json(ran[0] if cycles is None else ran)
    else:
        columns = ("at", "compressed", "pruned", "replayed", "promoted")
        rows = [
            (stamp(each.created_at) or "nothing to do", each.compressed, each.pruned, each.replayed, each.promoted)
            for each in ran
        ]
        print_pairs(dict(zip(columns, rows[0], strict=True))) if cycles is None else print_rows(columns, rows)
    for each in ran:
        if each.error:
            hint(f"nothing was extracted: {each.error}")


def bootstrap(
    context: typer.Context,
    task: Annotated[str, typer.Option(metavar="TEXT", help="What is to be done.", show_default=False)],
    agent: Annotated[str | None, typer.Argument(metavar="[AGENT]", help="Who it is for; else no agent.")] = None,
    budget: Annotated[int, typer.Option(metavar="TOKENS", help="At most so many tokens.")] = 2_000,
    task_type: Annotated[str | None, typer.Option(metavar="TYPE", help="Tips for this type of task only.")] = None,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Print what an agent should have in mind for a task, as Markdown."""
    with open_within(context, scope) as memory:
        found = memory.bootstrap(agent, task, budget, task_type=task_type)
    print_json(found) if as_json else typer.echo(safe(found.text))
    if found.tips and not as_json:
        from recollect.tiers.bootstrap import TIPS_FOUND

        hint(f"[experience] {len(found.tips)} {TIPS_FOUND}")
    if found.left_out and not as_json:
        hint(f"{found.left_out:,} more did not fit the budget")
