"""Commands on sessions: list, show, search, end, clean."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Annotated, Any

import typer

from recollect.checks import check_finite
from recollect.cli.options import Agent, AsJson, Limit, Within, open_within
from recollect.cli.output import fail_quietly, hint, print_json, print_rows, stamp
from recollect.errors import InvalidInput

__all__ = ["sessions"]

sessions = typer.Typer(no_args_is_help=True, help="Conversations that are kept message by message.")
SessionId = Annotated[str, typer.Argument(metavar="ID", help="The id of a session.", show_default=False)]


@sessions.command("list")
def list_sessions(
    context: typer.Context, agent: Agent = None, limit: Limit = 100, scope: Within = None, as_json: AsJson = False
) -> None:
    """Show sessions, the one used last first; without --agent those of all agents."""
    with open_within(context, scope) as memory:
        found = memory.sessions.list(agent=agent, limit=limit)
    if as_json:
        print_json(found)
    else:
        rows = [(each.id, each.agent, each.provider, each.messages, stamp(each.updated_at)) for each in found]
        print_rows(("session", "agent", "provider", "messages", "used"), rows)
    fail_quietly(not found)


@sessions.command("show")
def show_session(
    context: typer.Context,
    id: SessionId,
    agent: Agent = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="Only the last so many messages.")] = None,
    skip_damaged: Annotated[bool, typer.Option("--skip-damaged", help="Leave out what cannot be read.")] = False,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Show the messages of a session in order."""
    with open_within(context, scope) as memory:
        messages = memory.sessions.get(id, agent=agent).messages(limit=limit, skip_damaged=skip_damaged)
    if as_json:
        print_json(messages)
    else:
        print_rows(("role", "content"), [(each["role"], _said(each)) for each in messages])


@sessions.command("search")
def search_sessions(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", show_default=False)],
    agent: Agent = None,
    limit: Limit = 10,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Find messages by their words, best first."""
    with open_within(context, scope) as memory:
        found = memory.sessions.search(query, agent=agent, limit=limit)
    if as_json:
        print_json(found)
    else:
        rows = [(f"{each.score:.2f}", each.session, each.position, each.role, each.content) for each in found]
        print_rows(("score", "session", "position", "role", "content"), rows)
    fail_quietly(not found)


@sessions.command("end")
def end_session(
    context: typer.Context,
    id: SessionId,
    agent: Agent = None,
    summary: Annotated[str | None, typer.Option(metavar="TEXT", help="Keep a snapshot with this summary.")] = None,
    decision: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A key decision, kept with the snapshot; repeat for more.")
    ] = None,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Remove a session; with --summary or --decision a snapshot of it is kept."""
    keep = summary is not None or bool(decision)
    with open_within(context, scope) as memory:
        session = memory.sessions.get(id, agent=agent)
        kept = session.end(snapshot=keep, summary=summary or "", key_decisions=decision or ())
    if as_json:
        print_json({"ended": id, "snapshot": kept})
    else:
        print_rows(("session", ""), [(id, "ended" if kept is None else f"ended, kept as snapshot {kept.id}")])


@sessions.command("clean")
def clean_sessions(
    context: typer.Context,
    days: Annotated[float, typer.Option(help="Remove what was not used for so many days.", show_default=False)],
    agent: Agent = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    scope: Within = None,
    as_json: AsJson = False,
) -> None:
    """Remove sessions that were not used for a time. On a terminal it asks before."""
    try:
        age = timedelta(days=check_finite(days, "--days", minimum=0.0))
    except OverflowError:
        raise InvalidInput(f"--days is {days:g}: that is longer than time can be counted") from None
    with open_within(context, scope) as memory:
        if not yes and sys.stdin.isatty() and not typer.confirm(
            f"Remove every session that was not used for {days:g} days?", err=True
        ):  # fmt: skip
            hint("nothing was removed")
            raise typer.Exit(1)
        removed = memory.sessions.cleanup(age, agent=agent)
    print_json({"sessions": removed}) if as_json else print_rows(("sessions", ""), [(removed, "removed")])
    fail_quietly(not removed)


def _said(message: dict[str, Any]) -> str:
    from recollect.tiers.messages import plain_text

    return plain_text(message.get("content"))
