"""The commands that connect coding agents: connect, disconnect, and hook, which their hooks call."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated, Any

import click

from recallite.errors import InvalidInput, StoreUnavailable
from recallite_cli.command import Command, Group, Yes, argument, flag, open_memory, option, prints
from recallite_cli.output import hint, print_table
from recallite_server.commands.mcp import apply_change, folder_of, store_arguments
from recallite_server.hooks import connecting, running
from recallite_server.hooks.projects import project_of
from recallite_server.mcp.hosts import HOSTS, FileChange
from recallite_server.warm.quick import command

if TYPE_CHECKING:
    from recallite.memory import Memory

# How long a turn is tried to be stored; it is kept if that is not possible.
_LONGEST_SECONDS = running.WAIT_SECONDS - 20
_AGAIN_SECONDS = 0.25
Project = Annotated[str | None, option("FOLDER", "Only for this project.")]
DryRun = Annotated[bool, flag("Show the changes, and write nothing.", "--dry-run")]
Shared = Annotated[str | None, option("/A/B", "A scope that all projects share. Default: each has its own.", "--scope")]
Memories = Annotated[bool, flag("Read the host's own memory files too: CLAUDE.md and its notes.", "--memories")]


def _print_changes(changes: Sequence[FileChange]) -> None:
    for change in changes:
        hint(f"written: {change.path}" if change.after is not None else f"removed: {change.path}")
    hint("restart the host" if changes else "nothing was changed")


def _changes_json(changes: Sequence[FileChange]) -> dict[str, Any]:
    return {"paths": [str(change.path) for change in changes]}


def _apply(changes: Sequence[FileChange], *, yes: bool, dry_run: bool) -> list[FileChange]:
    if dry_run:
        for change in changes:
            click.echo(change.by_hand or change.diff, err=True)
        return []
    return [change for change in changes if apply_change(change, yes) is not None]


def _connector(name: str) -> Command:
    @prints(_print_changes, json=_changes_json)
    def command(
        context: click.Context, project: Project = None, scope: Shared = None, memories: Memories = False,
        dry_run: DryRun = False, yes: Yes = False,
    ) -> list[FileChange]:  # fmt: skip
        from recallite.model.checks import check_scope

        shared = None if scope is None else check_scope(scope)
        arguments = store_arguments(context)
        changes = connecting.connected(name, folder_of(project), arguments, shared, memories=memories)
        if trust := connecting.HOOKED[name].trust:
            hint(trust)
        if memories:
            hint(f"the memory files of {HOSTS[name].title} are read after each turn, and never written")
        return _apply(changes, yes=yes, dry_run=dry_run)

    command.help = f"Connect {HOSTS[name].title}: shows each change first."
    return command


@prints(print_table("what is", lambda row: row), json=dict)
def status() -> list[tuple[str, str]]:
    """Show the scope of this folder, and connected hosts."""
    here = project_of(str(Path.cwd()))
    rows = [("scope of this folder", here.scope), ("known by", here.known_by)]
    for name, hooked in connecting.HOOKED.items():
        for project in (None, Path.cwd()):
            file = hooked.file() if project is None else project / hooked.project
            try:
                commands = connecting.hook_commands(name, project)
            except InvalidInput as fault:
                rows.append((name, str(fault)))
                continue
            if commands or project is None:
                connection = f"connected by {file}{_dead(name, commands)}{hooked.trust and f'. {hooked.trust}'}"
                rows.append((name, connection if commands else "not connected"))
    return rows


def _dead(name: str, commands: Sequence[str]) -> str:
    """The advice for a host with hooks that run a missing program; empty if it is there."""
    programs = {*map(connecting.program_of, commands)} - {name}
    gone = [program for program in programs if which(program) is None]
    return f", but {gone[0]} is gone: run recallite connect {name}" if gone else ""


connect = Group(
    help="Give a coding agent a memory: its hooks and the server.",
    commands={**{name: _connector(name) for name in connecting.HOOKED}, "status": status},
)


@prints(_print_changes, json=_changes_json)
def disconnect(
    name: Annotated[str, argument("HOST", ", ".join(connecting.HOOKED))], project: Project = None,
    dry_run: DryRun = False, yes: Yes = False,
) -> list[FileChange]:  # fmt: skip
    """Remove the hooks and the server from a coding agent; each change is shown first."""
    if name not in connecting.HOOKED:
        raise InvalidInput(f"{name!r} is not a known host: use {', '.join(connecting.HOOKED)}")
    return _apply(connecting.disconnected(name, folder_of(project)), yes=yes, dry_run=dry_run)


@prints(lambda _: None)
def hook(
    context: click.Context,
    event: Annotated[str, argument("EVENT", "session-start, prompt, tool or turn.")],
    host: Annotated[str, option("NAME", "The host that calls.")] = "claude-code",
    scope: Shared = None,
    patience: Annotated[float, option("SECONDS", "How long the host waits.")] = running.PATIENCE_SECONDS,
    wait: Annotated[bool, flag("Store turns before it returns, not in the background.", "--wait")] = False,
    memories: Memories = False,
) -> None:
    """Answer a host's hook, whose JSON is on standard input. It always succeeds, and is silent if it fails."""
    from recallite.system.processes import start_detached
    from recallite_server.hooks.events import answer, output_of, payload_of
    from recallite_server.hooks.kept import KeptTurns

    stores = wait or event == "turn"

    def ask(tell: Callable[[bytes], None]) -> None:
        payload = payload_of(running.payload(), os.environ.get("CLAUDE_PROJECT_DIR", ""), os.getcwd())
        with _opened(context, _LONGEST_SECONDS if stores else 0.0) as memory:
            memory._engine.comparing.stop()  # it is left to processes that stay
            text = answer(memory, event, host, payload, scope, memories=memories, patience_seconds=_LONGEST_SECONDS)
            tell(output_of(text, payload, host))  # before the store is closed
            if event == "session-start" and KeptTurns(memory).names():
                shared = [] if scope is None else ["--scope", scope]
                words = [*store_arguments(context), "hook", "turn", "--host", host, *shared, "--wait"]
                start_detached(command(words), None, b"{}")

    _print_within(running.WAIT_SECONDS if stores else patience, ask)


@contextmanager
def _opened(context: click.Context, patience_seconds: float) -> Iterator[Memory]:
    """The store, as soon as no other process has it for itself."""
    deadline = time.monotonic() + patience_seconds
    with ExitStack() as stack:
        while True:
            try:
                memory = stack.enter_context(open_memory(context, create=True))
                break
            except StoreUnavailable:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_AGAIN_SECONDS)
        yield memory


def _print_within(seconds: float, ask: Callable[[Callable[[bytes], None]], None]) -> None:
    """Print what `ask` tells, unless it fails or takes longer."""
    answers: list[bytes] = []
    has_answered, deadline = threading.Event(), time.monotonic() + seconds

    def tell(answer: bytes) -> None:
        answers.append(answer)
        has_answered.set()

    def run() -> None:
        try:
            ask(tell)
        except Exception as fault:
            from recallite.system.telemetry import logger

            logger(__name__).debug("the hook failed", exc_info=fault)
        finally:
            has_answered.set()

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    has_answered.wait(seconds)
    with suppress(Exception):
        print("".join(map(bytes.decode, answers)), end="", flush=True)
    asking.join(max(0.0, deadline - time.monotonic()))
    if asking.is_alive():
        os._exit(0)  # whatever it waits for, the host does not
