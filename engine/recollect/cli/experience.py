"""Commands on experience: tips, record, recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.command import nothing, prints
from recollect.cli.options import Agent, Limit, Within, open_within
from recollect.cli.output import print_rows, print_table

if TYPE_CHECKING:
    from recollect.tiers.experience import Tip

__all__ = ["experience"]

experience = typer.Typer(no_args_is_help=True, help="Which tools worked for which tasks, and what helped when not.")


def _tip_row(tip: Tip) -> tuple[object, ...]:
    return (str(tip),)


def _tips_json(found: list[Tip]) -> object:
    from msgspec import structs

    return [{"text": str(tip), **structs.asdict(tip)} for tip in found]


def _print_recorded(done: dict[str, bool]) -> None:
    print_rows(("",), [(name,) for name in done])


@experience.command("tips")
@prints(print_table("tip", _tip_row), json=_tips_json, fails=nothing)
def tips(
    context: typer.Context,
    task_type: Annotated[str | None, typer.Option(metavar="TYPE", help="Only for this type of task.")] = None,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="The tool that failed; with --error.")] = None,
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="Its error message; with --tool.")] = None,
    agent: Agent = None,
    limit: Limit = 10,
    scope: Within = None,
) -> list[Tip]:
    """Show what worked before, a sentence a line."""
    with open_within(context, scope) as memory:
        return memory.experience.tips(task_type, tool, error, agent=agent, limit=limit)


@experience.command("record")
@prints(_print_recorded)
def record(
    context: typer.Context,
    task_type: Annotated[str, typer.Option(metavar="TYPE", help="The type of the task.", show_default=False)],
    tool: Annotated[
        list[str], typer.Option(metavar="NAME", help="A tool that was used; repeat in order.", show_default=False)
    ],
    success: Annotated[bool, typer.Option("--success/--failure", help="How it went.", show_default=False)],
    steps: Annotated[int | None, typer.Option(help="How many steps it took.")] = None,
    tokens: Annotated[int | None, typer.Option(help="How many tokens it took.")] = None,
    agent: Agent = None,
    scope: Within = None,
) -> dict[str, bool]:
    """Note how a task went; without --agent for all agents."""
    with open_within(context, scope) as memory:
        memory.experience.record(
            task_type=task_type, tools=tool, success=success, steps=steps, tokens=tokens, agent=agent
        )
    return {"recorded": True}


@experience.command("recovery")
@prints(_print_recorded)
def recovery(
    context: typer.Context,
    tool: Annotated[str, typer.Option(metavar="NAME", help="The tool that failed.", show_default=False)],
    error: Annotated[str, typer.Option(metavar="TEXT", help="Its error message.", show_default=False)],
    helped: Annotated[str, typer.Option(metavar="TEXT", help="What helped.", show_default=False)],
    agent: Agent = None,
    scope: Within = None,
) -> dict[str, bool]:
    """Note what helped when a tool failed; without --agent for all agents."""
    with open_within(context, scope) as memory:
        memory.experience.record_recovery(tool=tool, error=error, recovery=helped, agent=agent)
    return {"recorded": True}
