"""An audit hook for a process that handles foreign data. Native code could bypass it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

_FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile",
              "ftplib.")  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


def refusing(who: str) -> Callable[[str, tuple[Any, ...]], None]:
    """Return an audit hook that refuses network, processes and writing files by PermissionError, which names `who`."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(_FORBIDDEN):
            raise PermissionError(f"{who} may not: {event}")
        if event == "open":
            _, mode, flags = arguments
            if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & _WRITING):
                raise PermissionError(f"{who} may not write files")

    return refuse
