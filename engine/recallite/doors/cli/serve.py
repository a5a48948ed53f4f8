"""The commands around the HTTP server: serve, inspect and token."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recallite.doors.cli.command import prints
from recallite.doors.cli.logs import server_log
from recallite.doors.cli.options import Yes, argument, flag, open_memory, option
from recallite.doors.cli.output import hint, print_rows, stamp
from recallite.errors import InvalidInput

if TYPE_CHECKING:
    from recallite.doors.http.access_tokens import Token
    from recallite.memory import Memory

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MIB = 2**20


@prints(lambda _: None)
def serve(
    context: typer.Context,
    host: Annotated[str, option("HOST", "Where to listen; any address but loopback needs tokens.")] = "127.0.0.1",
    port: Annotated[int, option("PORT", "The port; 0 picks a free one.")] = 7333,
    allowed_host: Annotated[list[str] | None, option("NAME", "A name that clients use, such as a proxy's.")] = None,
    require_tokens: Annotated[bool, flag("Require a token from local clients too.", "--require-tokens")] = False,
    max_upload_mib: Annotated[int, typer.Option(help="The most MiB of a document or an import.")] = 64,
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
    context: typer.Context,
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


def _run(context: typer.Context, *, create: bool, port: int, max_upload_mib: int = 64, **options: Any) -> None:
    from recallite.model.checks import check_count

    with _installed():
        from recallite.doors.http.request_checks import Limits
        from recallite.doors.http.running import serve as run
    limits = Limits(max_upload_bytes=check_count(max_upload_mib, "--max-upload-mib", maximum=2_048) * _MIB)
    chosen = check_count(port, "--port", minimum=0, maximum=65_535)
    server_log()
    with open_memory(context, create=create, lasting=True) as memory:
        run(
            memory, port=chosen, limits=limits, **options,
            started=lambda address: hint(f"listening at {address} (Ctrl-C ends it)"),
        )  # fmt: skip


@contextmanager
def _installed() -> Iterator[None]:
    """Say how to install what is missing."""
    try:
        yield
    except ModuleNotFoundError as fault:
        from recallite.system.extras import install_command

        raise InvalidInput(f"the server needs the package {fault.name}: {install_command('server')}") from None


# ── tokens ─────────────────────────────────────────────────────────────────────────────────────────────────────

token = typer.Typer(help="Access tokens of the server.", no_args_is_help=True)


def _print_secret(made: Token) -> None:
    typer.echo(made.secret)
    hint(f"token {made.id} for {made.scope}: it is shown this once, the store keeps its hash")


@token.command("create")
@prints(_print_secret, create=True)
def create(
    memory: Memory,
    scope: Annotated[str, option("/A/B", "It reaches this scope and those below it.")] = "/",
    read_only: Annotated[bool, flag("It can change nothing.", "--read-only")] = False,
    expires: Annotated[str | None, option("TIME", "How long it lasts: 12h, 30d, 8w. Default: until revoked.")] = None,
    name: Annotated[str | None, option("NAME", "Whose it is, for the list.")] = None,
) -> Token:
    """Make a token; it is printed once."""
    from recallite.doors.http.access_tokens import Tokens

    lasting = None if expires is None else _duration(expires)
    return Tokens(memory).create(scope=scope, read_only=read_only, expires_after=lasting, name=name)


def _print_tokens(found: Sequence[Token]) -> None:
    print_rows(
        ("id", "name", "scope", "may", "expires"),
        [
            (each.id, each.name or "", each.scope, "read" if each.read_only else "read, write",
             "expired" if each.expired else stamp(each.expires_at) or "never")
            for each in found
        ],
    )  # fmt: skip


@token.command("list")
@prints(_print_tokens)
def list_(memory: Memory) -> list[Token]:
    """Show the tokens of the store, without their secrets."""
    from recallite.doors.http.access_tokens import Tokens

    return Tokens(memory).list()


@token.command("revoke")
@prints(lambda id: hint(f"revoked {id}"))
def revoke(memory: Memory, id: Annotated[str, argument("ID", "As the list shows it.")], yes: Yes = False) -> str:
    """Remove a token: from now on it admits nobody."""
    from recallite.doors.http.access_tokens import Tokens

    if not yes and not typer.confirm(f"Revoke {id}?", err=True):
        raise typer.Exit(1)
    Tokens(memory).revoke(id)
    return id


def _duration(text: str) -> timedelta:
    """A time such as 30d."""
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    if found is None or int(found[1]) == 0:
        raise InvalidInput(f"--expires is {text!r}: give a number and m, h, d or w, such as 30d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
