"""Commands on experience: tips, record, recovery."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.options import Agent, AsJson, Limit, Within, open_within
from recollect.cli.output import fail_quietly, print_json, print_rows

__all__ = ["experience"]

experience = typer.Typer(no_args_is_help=True, help="Which tools worked for which tasks, and what helped when not.")
TaskType = Annotated[str, typer.Option(metavar="TYPE", help="The type of the task.", show_default=False)]


@experience.command("tips")
def tips(
    context: typer.Context,
    task_type: Annotated[str | None, typer.Option(metavar="TYPE", help="Only for this type of task.")] = None,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="The tool that failed; with --error.")] = None,
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="What it said; with --tool.")] = None,
    agent: Agent = None,
    limit: Limit = 10,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Show what worked before, a sentence a line."""
    with open_within(context, scope) as memory:
        found = memory.experience.tips(task_type, tool, error, agent=agent, limit=limit)
    if as_json:
        from msgspec import structs

        print_json([{"text": str(tip), **structs.asdict(tip)} for tip in found])
    else:
        print_rows(("tip",), [(str(tip),) for tip in found])
    fail_quietly(not found)


@experience.command("record")
def record(
    context: typer.Context,
    task_type: TaskType,
    tool: Annotated[
        list[str], typer.Option(metavar="NAME", help="A tool that was used; repeat in order.", show_default=False)
    ],
    success: Annotated[bool, typer.Option("--success/--failure", help="How it went.", show_default=False)],
    steps: Annotated[int | None, typer.Option(help="How many steps it took.")] = None,
    tokens: Annotated[int | None, typer.Option(help="How many tokens it took.")] = None,
    agent: Agent = None,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Note how a task went; without --agent for all agents."""
    with open_within(context, scope) as memory:
        memory.experience.record(
            task_type=task_type, tools=tool, success=success, steps=steps, tokens=tokens, agent=agent
        )
    print_json({"recorded": True}) if as_json else print_rows(("",), [("recorded",)])


@experience.command("recovery")
def recovery(
    context: typer.Context,
    tool: Annotated[str, typer.Option(metavar="NAME", help="The tool that failed.", show_default=False)],
    error: Annotated[str, typer.Option(metavar="TEXT", help="What it said.", show_default=False)],
    helped: Annotated[str, typer.Option(metavar="TEXT", help="What helped.", show_default=False)],
    agent: Agent = None,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Note what helped when a tool failed; without --agent for all agents."""
    with open_within(context, scope) as memory:
        memory.experience.record_recovery(tool=tool, error=error, recovery=helped, agent=agent)
    print_json({"recorded": True}) if as_json else print_rows(("",), [("recorded",)])
