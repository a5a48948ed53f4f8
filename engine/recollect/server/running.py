"""Running the server until the process is told to end."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence

import uvicorn

from recollect.errors import InvalidInput
from recollect.logs import logger
from recollect.memory import Memory
from recollect.server.app import MemoryApi
from recollect.server.limits import OWN_NAMES, Limits, is_own
from recollect.server.tokens import PREFIX, Grant, Tokens

_log = logger(__name__)
_BACKLOG = 256
_GRACE_SECONDS = 5


def serve(
    memory: Memory,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    names: Sequence[str] = (),
    tokens_required: bool = False,
    own_token: bool = False,
    open_page: bool = False,
    limits: Limits = Limits(),  # noqa: B008
    started: Callable[[str], None] = lambda _: None,
) -> None:
    """Answer at http://HOST:PORT until the process is told to end; port 0 is any that is free.

    Only this machine can reach 127.0.0.1, and needs no token unless `tokens_required`; any other address needs one.
    `names` are other names under which the server may be asked. With `own_token` a token is made for this run alone,
    and is in the address of the page. `started` is given that address.

    Raises InvalidInput if tokens are needed and there are none, and if the address cannot be bound.
    """
    own = is_own(host)
    secret = PREFIX + secrets.token_urlsafe(32) if own_token else None
    tokens = Tokens(memory, passing={} if secret is None else {secret: Grant()})
    needed = tokens_required or own_token or not own
    if needed and secret is None and not any(not each.expired for each in tokens.list()):
        why = "tokens are required" if own else f"{host} can be reached by others"
        raise InvalidInput(f"{why}, and the store has none: make one with `recollect token create`")
    hosts = {*OWN_NAMES, *(name.lower() for name in names)} if own or names else None
    api = MemoryApi(memory, tokens=tokens, tokens_required=needed, hosts=hosts, limits=limits)
    config = uvicorn.Config(
        api.application, log_level="warning", access_log=False, server_header=False, date_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )  # fmt: skip
    with listen(host, port) as listener:
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"
        _log.info("answering at %s", address)
        page = address if secret is None else f"{address}#token={secret}"
        started(page)
        if open_page:
            webbrowser.open(page)
        uvicorn.Server(config).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens: connections that come before the server does wait."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as fault:
        listener.close()
        raise InvalidInput(f"{host}:{port} cannot be used ({fault.strerror or fault}): give another port") from None
    return listener
