"""The commands around the resident process: its state, its start and its end."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from recallite.doors.cli.command import nothing, prints
from recallite.doors.cli.options import SETTINGS
from recallite.doors.cli.output import hint, print_table
from recallite.doors.cli.parameters import Group
from recallite.errors import InvalidInput
from recallite_server.warm import asking

_START_SECONDS, _END_SECONDS = 60.0, 10.0


def _states(path: str = "/warm", method: str = "GET") -> list[dict[str, Any]]:
    """The state of each process of this user, as it says itself."""
    states = []
    for socket in asking.sockets():
        try:
            states.append(json.loads(asking.Link(socket).ask(method, path)[1]))
        except asking.Unanswered:
            continue
    return states


def _row(state: dict[str, Any]) -> tuple[object, ...]:
    stores = ", ".join(f"{store['path']} (used {store['idle_seconds']:,} s ago)" for store in state["stores"])
    return state["pid"], state["version"], f"{state['seconds']:,} s", stores or "none"


_print_states = print_table("process version running stores", _row)


@prints(_print_states, fails=nothing)
def status() -> list[dict[str, Any]]:
    """Show the resident processes and their stores."""
    return _states() or _none()


def _none() -> list[dict[str, Any]]:
    hint("no resident process is running: recallite warm start starts one")
    return []


@prints(_print_states)
def start(context: click.Context) -> list[dict[str, Any]]:
    """Start the process, and have it load the store.

    It closes a store that nobody has used for warm.idle_minutes, and ends when it has none.
    """
    from importlib.util import find_spec

    from recallite.model.environment import default_path, environment
    from recallite.system.extras import install_command

    if missing := [name for name in asking.NEEDED if find_spec(name) is None]:
        raise InvalidInput(f"the process needs the package {missing[0]}: {install_command('server')}")
    if not asking.allowed():
        raise InvalidInput("RECALLITE_WARM is 0, or a key is set: a process of its own has to open this store")
    try:
        try:
            link = asking.Link()
        except asking.Unanswered:
            link = asking.start(_START_SECONDS)
        path = default_path() if context.obj is None else context.obj
        if os.path.exists(path):
            settings = context.meta.get(SETTINGS) or environment("RECALLITE_SETTINGS")
            if link.ask("GET", "/v1/count", headers=asking.store_headers(path, settings))[0] != 200:
                hint(f"it does not open {path}: its settings say so, or {asking.folder()} has the log that says why")
        return [json.loads(link.ask("GET", "/warm")[1])]
    except asking.Unanswered as fault:
        raise InvalidInput(f"the process did not start ({fault}): {asking.folder()} has its log") from None


@prints(_print_states, fails=nothing)
def stop() -> list[dict[str, Any]]:
    """End the resident processes of this user. Nothing that was written is lost."""
    import time

    states = _states("/warm/stop", "POST")
    deadline = time.monotonic() + _END_SECONDS
    while states and _states() and time.monotonic() < deadline:
        time.sleep(0.05)
    return states or _none()


warm = Group(
    help="The resident process that keeps stores loaded.", commands={"status": status, "start": start, "stop": stop}
)
