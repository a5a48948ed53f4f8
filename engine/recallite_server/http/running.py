"""Running the server until the process is told to end."""

from __future__ import annotations

import os
import secrets
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.system.files import create_private
from recallite.system.messages import shown
from recallite.system.telemetry import logger
from recallite_server.http.access_tokens import PREFIX, Grant, Tokens
from recallite_server.http.app import MemoryApi
from recallite_server.http.connections import listen, server_of
from recallite_server.http.request_checks import LOOPBACK_NAMES, Limits, hostname, is_loopback

_log = logger(__name__)


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
    """Answer at http://HOST:PORT until the process is told to end; port 0 picks a free one.

    Only this machine can reach 127.0.0.1, and needs no token unless `tokens_required`. Any other address needs one, and
    so does a server with `names`, under which a proxy passes requests of others on. With `own_token` a token is made
    for this run alone, and is in the address of the page. `started` is given that address.

    Raises InvalidInput if tokens are needed and there are none, and if the address cannot be bound.
    """
    local, others = is_loopback(host), {_checked(name) for name in names}
    secret = PREFIX + secrets.token_urlsafe(32) if own_token else None
    tokens = Tokens(memory, temporary={} if secret is None else {secret: Grant()})
    needed = tokens_required or own_token or not local or bool(others)
    if needed and secret is None and not any(not token.expired for token in tokens.list()):
        why = "tokens are required" if local and not others else "others can reach this server"
        raise InvalidInput(f"{why}, and the store has none: make one with `recallite token create`")
    hosts = {*LOOPBACK_NAMES, host.lower(), *others} if local or others else None
    api = MemoryApi(memory, tokens=tokens, tokens_required=needed, hosts=hosts, limits=limits)
    with listen(host, port) as listener:
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"
        _log.info("listening at %s", address)
        page = address if secret is None else f"{address}#token={secret}"
        started(page)
        with _opened(page, memory.path) if open_page else nullcontext():
            server_of(api.application, api.limits.max_connections).run(sockets=[listener])


def _checked(name: str) -> str:
    """A name as the Host of requests has it, without its port."""
    hostname_ = hostname(name)
    if not hostname_ or "/" in name:
        raise InvalidInput(f"--allowed-host is {shown(name)}: give a host name, such as memory.example.org")
    return hostname_


@contextmanager
def _opened(page: str, store: str) -> Iterator[None]:
    """Open a page in a browser, while the server starts: a browser in the terminal waits for its answer.

    A file beside the store leads there: other users of the machine see the arguments of processes, not this file.
    """
    file = f"{os.path.abspath(store)}-page.html"
    try:
        with suppress(FileNotFoundError):
            os.unlink(file)
        with open(create_private(file), "w", encoding="utf-8") as written:
            written.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={page}">')
        page = Path(file).as_uri()
    except OSError:
        _log.warning("%s cannot be written: the browser is given the address itself", file)
    threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(file)
