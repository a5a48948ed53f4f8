"""Commands on experience: tips, record, recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.command import nothing, prints
from recollect.cli.options import Agent, Limit, flag, option
from recollect.cli.output import print_rows, print_table

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.tiers.experience import Tip

__all__ = ["experience"]

experience = typer.Typer(no_args_is_help=True, help="Tools that worked for a task, and remedies for errors.")


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
@prints(_print_recorded, within=True)
def record(
    memory: Memory,
    task_type: Annotated[str, option("TYPE", "The type of the task.")],
    tool: Annotated[list[str], option("NAME", "A tool that was used; repeat in order.")],
    success: Annotated[bool, flag("How it went.", "--success/--failure")],
    steps: Annotated[int | None, typer.Option(help="How many steps it took.")] = None,
    tokens: Annotated[int | None, typer.Option(help="How many tokens it took.")] = None,
    agent: Agent = None,
) -> dict[str, bool]:
    """Note how a task went; without --agent for all agents."""
    memory.experience.record(task_type=task_type, tools=tool, success=success, steps=steps, tokens=tokens, agent=agent)
    return {"recorded": True}


@experience.command("recovery")
@prints(_print_recorded, within=True)
def recovery(
    memory: Memory,
    tool: Annotated[str, option("NAME", "The tool that failed.")],
    error: Annotated[str, option("TEXT", "Its error message.")],
    helped: Annotated[str, option("TEXT", "What helped.")],
    agent: Agent = None,
) -> dict[str, bool]:
    """Note what helped when a tool failed; without --agent for all agents."""
    memory.experience.record_recovery(tool=tool, error=error, recovery=helped, agent=agent)
    return {"recorded": True}
