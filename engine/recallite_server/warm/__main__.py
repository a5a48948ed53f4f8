"""`python -m recallite_server.warm`: the resident process, which runs until it has nothing to do."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

from recallite.system.files import FolderLock
from recallite.system.local_socket import is_private, listen, lock_of
from recallite.system.processes import raise_file_limit, when_terminated
from recallite_server.warm.asking import KEYS, address, needs_keys

_LOG_BYTES = 2**20
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main() -> None:
    """Answer until idle, or end at once if another process does so already."""
    path = Path(address())
    forget_keys()
    if not is_private(str(path.parent)):
        sys.exit(f"{path.parent} is not a folder that only this user may enter")
    with FolderLock(Path(lock_of(str(path)))).held(0) as is_first:
        if is_first:
            # A full disk loses lines of the log and nothing else.
            handler = RotatingFileHandler(
                path.with_suffix(".log"), maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8", delay=True
            )
            logging.basicConfig(level=logging.WARNING, format=_FORMAT, handlers=[handler])
            logging.raiseExceptions = False
            try:
                asyncio.run(serve(path))
            except Exception:
                logging.getLogger("recallite").exception("the resident process ends")
            logging.shutdown()
            os._exit(0)  # a thread that compiles kernels or waits for the network is not waited for


def forget_keys() -> None:
    """Forget the keys of the caller that started this process, unless its environment says what they are for."""
    if not needs_keys():
        for name in [name for name in os.environ if name.startswith(KEYS)]:
            del os.environ[name]


async def serve(path: Path) -> None:
    """Answer at a socket until it has nothing to do, or is told to end."""
    from recallite_server.warm.service import Service

    raise_file_limit()
    listener, token = listen(str(path))
    service = Service(token)
    server = await asyncio.start_server(service.connected, sock=listener)
    when_terminated(service.ended.set)
    await service.run()
    server.close()
    path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
