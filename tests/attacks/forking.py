"""Functions that run in a forked child: they may be killed, and what they open is none of the parent's."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Child", "Ended", "in_child"]


class Ended(NamedTuple):
    """How a child ended: with a value, a traceback, a signal, or not within its limit."""

    value: Any = None
    error: str | None = None
    signal: int = 0
    hung: bool = False


class Child:
    """A function that runs in a forked process."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reader)
            try:
                result: Any = (work(), None)
            except BaseException:
                result = (None, traceback.format_exc())
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(result, stream)
            os._exit(0)
        os.close(writer)

    def kill(self) -> None:
        """As `kill -9` does; nothing where it has ended."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self, limit_s: float) -> Ended:
        """How it ends; it is killed at the limit."""
        deadline, data, hung = time.monotonic() + limit_s, b"", False
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                hung = True
                self.kill()
                left = 60.0
            if select.select([self._reader], [], [], left)[0]:
                block = os.read(self._reader, 1 << 20)
                if not block:
                    break
                data += block
        os.close(self._reader)
        _, status = os.waitpid(self.pid, 0)
        if hung:
            return Ended(hung=True)
        if os.WIFSIGNALED(status):
            return Ended(signal=os.WTERMSIG(status))
        value, error = pickle.loads(data)
        return Ended(value, error)


def in_child(work: Callable[[], Any], limit_s: float = 120.0) -> Ended:
    """Run a function in a child and wait for it."""
    return Child(work).wait(limit_s)
