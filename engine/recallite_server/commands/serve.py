"""The commands around the HTTP server: serve and inspect."""

from __future__ import annotations

from typing import Annotated, Any

import click

from recallite.doors.cli.command import prints
from recallite.doors.cli.logs import server_log
from recallite.doors.cli.options import open_memory, packages_of
from recallite.doors.cli.output import hint
from recallite.doors.cli.parameters import argument, flag, number, option

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
