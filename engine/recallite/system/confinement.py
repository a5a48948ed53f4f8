"""What a process that handles foreign data must not do: an audit hook refuses it. Native code could bypass it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile",
              "ftplib.")  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


def refusing(
    who: str, *, may_write: Callable[[int | str | bytes], bool] | None = None
) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that refuses network, processes, and writing files, but for those that `may_write` lets through.

    It raises PermissionError, which calls this process `who`.
    """

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(_FORBIDDEN):
            raise PermissionError(f"{who} may not: {event}")
        if event == "open":
            path, mode, flags = arguments
            writes = isinstance(mode, str) and set(mode) & set("wax+")
            if not (writes or (isinstance(flags, int) and flags & _WRITING)):
                return
            if may_write is None:
                raise PermissionError(f"{who} may not write files")
            if not may_write(path):
                raise PermissionError(f"{who} may not write {Path(os.fsdecode(path)).name}")

    return refuse
