"""A server of a real store at a port of this machine, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recallite import Memory
from recallite_server.http.app import MemoryApi
from recallite_server.http.connections import listen, server_of
from recallite_server.http.request_checks import LOOPBACK_NAMES
from tests.limits import LAST_RESORT_SECONDS, until


@contextmanager
def serving(memory: Memory, **options: Any) -> Iterator[str]:
    """The address of a server of `memory`, as `recallite serve` makes it, until the block ends."""
    api = MemoryApi(memory, **{"hosts": LOOPBACK_NAMES, **options})
    server = server_of(api.application, api.limits.max_connections)
    with listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
        thread.start()
        until(lambda: server.started or not thread.is_alive())
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(LAST_RESORT_SECONDS)
