"""The commands around servers: serve and inspect, the access tokens, and the resident process."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import click

from recallite.errors import InvalidInput
from recallite_cli.command import (
    SETTINGS,
    Group,
    argument,
    flag,
    nothing,
    number,
    open_memory,
    option,
    packages_of,
    prints,
)
from recallite_cli.output import echo, hint, print_rows, print_table, stamp
from recallite_cli.run import server_log
from recallite_server.warm import asking

if TYPE_CHECKING:
    from recallite_server.http.access_tokens import Token


_MIB = 2**20


@prints(lambda _: None)
def serve(
    context: click.Context,
    host: Annotated[str, option("HOST", "Where to listen; any address but loopback needs tokens.")] = "127.0.0.1",
    port: Annotated[int, option("PORT", "The port; 0 picks a free one.")] = 7333,
    allowed_host: Annotated[list[str] | None, option("NAME", "A name that clients use, such as a proxy's.")] = None,
    require_tokens: Annotated[bool, flag("Require a token from local clients too.", "--require-tokens")] = False,
    max_upload_mib: Annotated[int, number("The most MiB of a document or an import.")] = 64,
    open_page: Annotated[bool, flag("Open the page in a browser.", "--open")] = False,
) -> None:
    """Serve the store over HTTP: REST, MCP and a page.

    It ends with Ctrl-C. Install what it needs with the extra `server`.
    """
    _run(
        context, create=True, host=host, port=port, names=allowed_host or (), tokens_required=require_tokens,
        open_page=open_page, max_upload_mib=max_upload_mib,
    )  # fmt: skip


@prints(lambda _: None)
def inspect(
    context: click.Context,
    store: Annotated[str | None, argument("STORE", "The store. Default: that of --db.")] = None,
    port: Annotated[int, option("PORT", "The port; 0 picks a free one.")] = 0,
    no_browser: Annotated[bool, flag("Only print the address.", "--no-browser")] = False,
) -> None:
    """See the memories of a store in a browser.

    The page is for this run alone: its address holds a token. It ends with Ctrl-C.
    """
    if store is not None:
        context.obj = store
    _run(context, create=False, host="127.0.0.1", port=port, own_token=True, open_page=not no_browser)


def _run(context: click.Context, *, create: bool, port: int, max_upload_mib: int = 64, **options: Any) -> None:
    from recallite.model.checks import check_count

    with packages_of("server"):
        from recallite_server.http.request_checks import Limits
        from recallite_server.http.running import serve as run
    limits = Limits(max_upload_bytes=check_count(max_upload_mib, "--max-upload-mib", maximum=2_048) * _MIB)
    number = check_count(port, "--port", minimum=0, maximum=65_535)
    server_log()
    with open_memory(context, create=create, lasting=True) as memory:
        run(
            memory, port=number, limits=limits, **options,
            started=lambda address: hint(f"listening at {address} (Ctrl-C ends it)"),
        )  # fmt: skip


def print_secret(token: Token) -> None:
    """Print the secret of a token, which is shown once."""
    echo(token.secret)
    also = f", reading {', '.join(token.reads)}" if token.reads else ""
    hint(f"token {token.id} for {token.scope}{also}: it is shown this once, the store keeps its hash")


def print_tokens(tokens: Sequence[Token]) -> None:
    """Print tokens and what they allow."""
    print_rows(
        ("id", "name", "scope", "reads", "may", "as", "expires"),
        [
            (entry.id, entry.name or "", entry.scope, " ".join(entry.reads),
             "read" if entry.read_only else "read, write", entry.authority,
             "expired" if entry.expired else stamp(entry.expires_at) or "never")
            for entry in tokens
        ],
    )  # fmt: skip


_START_SECONDS, _END_SECONDS = 60.0, 10.0


def _states(what: str = "state") -> list[dict[str, Any]]:
    """The state of each process of this user, as it says itself."""
    states = []
    for socket in asking.sockets():
        try:
            states.append(json.loads(asking.Link(socket).ask(what)))
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
    from recallite.model.environment import default_path, environment

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
            try:
                link.ask("count", fields=asking.store_fields(path, settings))
            except asking.Unanswered as why:
                hint(f"it does not open {path}: {why}")
        return [json.loads(link.ask("state"))]
    except asking.Unanswered as fault:
        raise InvalidInput(f"the process did not start ({fault}): {asking.folder()} has its log") from None


@prints(_print_states, fails=nothing)
def stop() -> list[dict[str, Any]]:
    """End the resident processes of this user. Nothing that was written is lost."""
    import time

    states = _states("stop")
    deadline = time.monotonic() + _END_SECONDS
    while states and _states() and time.monotonic() < deadline:
        time.sleep(0.05)
    return states or _none()


warm = Group(
    help="The resident process that keeps stores loaded.", commands={"status": status, "start": start, "stop": stop}
)
