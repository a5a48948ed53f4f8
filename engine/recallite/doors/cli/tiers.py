"""Commands on the tiers: episodes, procedures, experience, consolidate, bootstrap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recallite.doors.cli.command import nothing, prints
from recallite.doors.cli.options import Agent, Importance, Limit, Pinned, Tag, argument, flag, option
from recallite.doors.cli.output import hint, print_pairs, print_rows, print_table, safe, stamp
from recallite.doors.cli.write import EventAt, print_id

if TYPE_CHECKING:
    from recallite.agents.bootstrap import Bootstrap
    from recallite.agents.consolidator import Cycle
    from recallite.agents.experience import Tip
    from recallite.agents.procedures import Procedure
    from recallite.agents.snapshots import Snapshot
    from recallite.memory import Memory
    from recallite.model.records import Record


episodes = typer.Typer(no_args_is_help=True, help="Episodes: what happened, and snapshots of sessions.")
procedures = typer.Typer(no_args_is_help=True, help="Procedures: how things are done, and how often it worked.")
experience = typer.Typer(no_args_is_help=True, help="Tools that worked for a task, and remedies for errors.")
ProcedureName = Annotated[str, argument("NAME", "Its name or id.")]


@episodes.command("log")
@prints(print_id, within=True, create=True)
def log_episode(
    memory: Memory,
    content: Annotated[str, argument("CONTENT")],
    type: Annotated[str, option("TYPE", "task-started, decision-made, tool-call, ...")] = "observation",
    agent: Agent = None,
    task: Annotated[str | None, option("ID", "The task it belongs to.")] = None,
    importance: Importance = 0.5,
    pinned: Pinned = False,
    tag: Tag = None,
    cost: Annotated[float | None, typer.Option(help="What it cost.")] = None,
    duration_ms: Annotated[float | None, typer.Option(help="How long it took, in milliseconds.")] = None,
    valid_from: EventAt = None,
) -> Record:
    """Store an episode; prints its id."""
    return memory.episodes.log(
        content, event_type=type, agent=agent, task_id=task, importance=importance, pinned=pinned, tags=tag or (),
        cost=cost, duration_ms=duration_ms, valid_from=valid_from,
    )  # fmt: skip


def _episode_row(episode: Record) -> tuple[object, ...]:
    when, type = stamp(episode.valid_from or episode.created_at), episode.metadata.get("event_type")
    return episode.id, when, type, f"{episode.importance:.2f}", episode.text


@episodes.command("list")
@prints(
    print_table("id at type importance text", _episode_row, under=("at", "type", "importance")),
    fails=nothing,
    within=True,
)
def list_episodes(
    memory: Memory,
    agent: Agent = None,
    task: Annotated[str | None, option("ID", "Only those of this task.")] = None,
    type: Annotated[str | None, option("TYPE", "Only those of this type.")] = None,
    on: Annotated[str | None, option("DAY", "Only those of this day of UTC.")] = None,
    since: Annotated[str | None, option("TIME", "Not older than this.")] = None,
    until: Annotated[str | None, option("TIME", "Not newer than this.")] = None,
    order: Annotated[str, option("ORDER", "oldest, newest or importance.")] = "newest",
    limit: Limit = 100,
) -> list[Record]:
    """Show episodes in order."""
    return memory.episodes.list(
        agent=agent, task_id=task, event_type=type, on=on, since=since, until=until, order=order, limit=limit
    )


def _snapshot_row(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.session_id or snapshot.id, stamp(snapshot.ended_at), len(snapshot.messages), snapshot.summary


@episodes.command("snapshots")
@prints(print_table("session ended messages summary", _snapshot_row), fails=nothing, within=True)
def list_snapshots(memory: Memory, agent: Agent = None, limit: Limit = 10) -> list[Snapshot]:
    """Show the snapshots of sessions that ended, the last first."""
    return memory.episodes.snapshots(limit, agent=agent)


@procedures.command("list")
@prints(print_table("name success:success_rate:.0% uses:use_count description"), fails=nothing, within=True)
def list_procedures(
    memory: Memory,
    agent: Agent = None,
    tag: Annotated[list[str] | None, option("TAG", "Any of these tags; repeat for more.")] = None,
    limit: Limit = 100,
) -> list[Procedure]:
    """Show procedures, those that succeed most first."""
    return memory.procedures.list(agent=agent, tags=tag or None, limit=limit)


@procedures.command("save")
@prints(print_id, within=True, create=True)
def save_procedure(
    memory: Memory,
    name: Annotated[str, argument("NAME")],
    description: Annotated[str, argument("DESCRIPTION")],
    pattern: Annotated[str, typer.Option(help="The steps, in any form.")] = "",
    tag: Tag = None,
    agent: Agent = None,
) -> Procedure:
    """Store a procedure, or change the one of this name; prints its id."""
    return memory.procedures.save(name, description, pattern=pattern, tags=tag or (), agent=agent)


def _print_outcome(counted: Procedure) -> None:
    print_pairs({"name": counted.name, "success rate": counted.success_rate, "uses": counted.use_count})


@procedures.command("outcome")
@prints(_print_outcome, within=True)
def record_outcome(
    memory: Memory,
    name: ProcedureName,
    success: Annotated[bool, flag("How it went.", "--success/--failure")],
    agent: Agent = None,
) -> Procedure:
    """Count a use of a procedure."""
    return memory.procedures.record_outcome(name, success, agent=agent)


def _tips_json(found: list[Tip]) -> object:
    from msgspec import structs

    return [{"text": str(tip), **structs.asdict(tip)} for tip in found]


def _print_recorded(done: dict[str, bool]) -> None:
    print_rows(("",), [(name,) for name in done])


@experience.command("tips")
@prints(print_table("tip", lambda tip: (str(tip),)), json=_tips_json, fails=nothing, within=True)
def tips(
    memory: Memory,
    task_type: Annotated[str | None, option("TYPE", "Only for this type of task.")] = None,
    tool: Annotated[str | None, option("NAME", "The tool that failed; with --error.")] = None,
    error: Annotated[str | None, option("TEXT", "Its error message; with --tool.")] = None,
    agent: Agent = None,
    limit: Limit = 10,
) -> list[Tip]:
    """Show what worked before, a sentence a line."""
    return memory.experience.tips(task_type, tool, error, agent=agent, limit=limit)


@experience.command("record")
@prints(_print_recorded, within=True, create=True)
def record(
    memory: Memory,
    task_type: Annotated[str, option("TYPE", "The type of the task.")],
    tool: Annotated[list[str], option("NAME", "A tool that was used; repeat in order.")],
    success: Annotated[bool, flag("How it went.", "--success/--failure")],
    steps: Annotated[int | None, typer.Option(help="How many steps it took.")] = None,
    tokens: Annotated[int | None, typer.Option(help="How many tokens it took.")] = None,
    agent: Agent = None,
) -> dict[str, bool]:
    """Note how a task went.

    Without --agent for all agents.
    """
    memory.experience.record(task_type=task_type, tools=tool, success=success, steps=steps, tokens=tokens, agent=agent)
    return {"recorded": True}


@experience.command("recovery")
@prints(_print_recorded, within=True, create=True)
def recovery(
    memory: Memory,
    tool: Annotated[str, option("NAME", "The tool that failed.")],
    error: Annotated[str, option("TEXT", "Its error message.")],
    helped: Annotated[str, option("TEXT", "What helped.")],
    agent: Agent = None,
) -> dict[str, bool]:
    """Note what helped when a tool failed.

    Without --agent for all agents.
    """
    memory.experience.record_recovery(tool=tool, error=error, recovery=helped, agent=agent)
    return {"recorded": True}


def _print_cycles(ran: Cycle | list[Cycle]) -> None:
    cycles = ran if isinstance(ran, list) else [ran]
    columns = ("at", "compressed", "pruned", "replayed", "promoted")
    rows = [
        (stamp(each.created_at) or "nothing to do", each.compressed, each.pruned, each.replayed, each.promoted)
        for each in cycles
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
    for each in listed:
        if each.error:
            hint(f"nothing was extracted: {each.error}")
    return listed if ran is None else ran


def _print_bootstrap(found: Bootstrap) -> None:
    typer.echo(safe(found.text))
    if found.tips:
        from recallite.agents.bootstrap import TIPS_FOUND

        hint(f"[experience] {len(found.tips)} {TIPS_FOUND}")
    if found.left_out:
        hint(f"{found.left_out:,} more did not fit the budget")


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
