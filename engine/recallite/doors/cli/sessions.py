"""Commands on sessions: list, show, search, pop, clear, end, clean."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recallite.doors.cli.command import nothing, prints
from recallite.doors.cli.options import Agent, Limit, Within, Yes, argument, flag, open_memory, option
from recallite.doors.cli.output import hint, named, print_number, print_rows, print_table
from recallite.errors import InvalidInput
from recallite.model.checks import check_finite

if TYPE_CHECKING:
    from recallite.agents.sessions import MessageHit, SessionInfo
    from recallite.memory import Memory


sessions = typer.Typer(no_args_is_help=True, help="Sessions: conversations, message by message.")
SessionId = Annotated[str, argument("ID", "The id of a session.")]


@sessions.command("list")
@prints(print_table("session:id agent provider messages used:updated_at"), fails=nothing, within=True)
def list_sessions(memory: Memory, agent: Agent = None, limit: Limit = 100) -> list[SessionInfo]:
    """Show sessions, last used first.

    Without --agent, those of all agents.
    """
    return memory.sessions.list(agent=agent, limit=limit)


def _message_row(message: dict[str, Any]) -> tuple[object, ...]:
    from recallite.agents.session_messages import plain_text

    return message.get("role"), plain_text(message.get("content"))


@sessions.command("show")
@prints(print_table("role content", _message_row), within=True)
def show_session(
    memory: Memory,
    id: SessionId,
    agent: Agent = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many messages, the last ones.")] = None,
    skip_damaged: Annotated[bool, flag("Leave out what cannot be read.", "--skip-damaged")] = False,
) -> list[dict[str, Any]]:
    """Show the messages of a session in order."""
    return memory.sessions.get(id, agent=agent).messages(limit=limit, skip_damaged=skip_damaged)


@sessions.command("search")
@prints(print_table("score session position role content"), fails=nothing, within=True)
def search_sessions(
    memory: Memory, query: Annotated[str, argument("QUERY")], agent: Agent = None, limit: Limit = 10
) -> list[MessageHit]:
    """Find messages by their words, best first."""
    return memory.sessions.search(query, agent=agent, limit=limit)


def _only(messages: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The one message; None where there is none."""
    return messages[0] if messages else None


def _print_message(messages: list[dict[str, Any]]) -> None:
    print_table("role content", _message_row)(messages)


@sessions.command("pop")
@prints(_print_message, json=_only, fails=nothing, within=True)
def pop_message(
    memory: Memory,
    id: SessionId,
    agent: Agent = None,
    skip_damaged: Annotated[bool, flag("Remove what cannot be read, too.", "--skip-damaged")] = False,
) -> list[dict[str, Any]]:
    """Remove the last message of a session, and show it."""
    popped = memory.sessions.get(id, agent=agent).pop(skip_damaged=skip_damaged)
    return [] if popped is None else [popped]


@sessions.command("clear")
@prints(print_number("removed"), json=named("messages"), within=True)
def clear_session(memory: Memory, id: SessionId, agent: Agent = None) -> int:
    """Remove every message of a session, which stays."""
    return memory.sessions.get(id, agent=agent).clear()


def _print_ended(done: dict[str, Any]) -> None:
    kept = done["snapshot"]
    print_rows(("session", ""), [(done["ended"], "ended" if kept is None else f"ended, kept as snapshot {kept.id}")])


@sessions.command("end")
@prints(_print_ended, within=True)
def end_session(
    memory: Memory,
    id: SessionId,
    agent: Agent = None,
    summary: Annotated[str | None, option("TEXT", "Keep a snapshot with this summary.")] = None,
    decision: Annotated[list[str] | None, option("TEXT", "A key decision for the snapshot; repeat for more.")] = None,
) -> dict[str, Any]:
    """Remove a session.

    With --summary or --decision a snapshot of it is kept.
    """
    keep = summary is not None or bool(decision)
    session = memory.sessions.get(id, agent=agent)
    return {
        "ended": id,
        "snapshot": session.end(snapshot=keep, summary=summary or "", key_decisions=decision or ()),
    }


@sessions.command("clean")
@prints(print_number("removed"), json=named("sessions"), fails=nothing)
def clean_sessions(
    context: typer.Context,
    days: Annotated[float, typer.Option(help="Remove what was not used for so many days.", show_default=False)],
    agent: Agent = None,
    yes: Yes = False,
    scope: Within = None,
) -> int:
    """Remove sessions that were not used for a time. On a terminal it asks first."""
    try:
        age = timedelta(days=check_finite(days, "--days", minimum=0.0))
    except OverflowError:
        raise InvalidInput(f"--days is {days:g}: that is longer than time can be counted") from None
    with open_memory(context, scope) as memory:
        if not yes and sys.stdin.isatty() and not typer.confirm(
            f"Remove every session that was not used for {days:g} days?", err=True
        ):  # fmt: skip
            hint("nothing was removed")
            raise typer.Exit(1)
        return memory.sessions.cleanup(age, agent=agent)
