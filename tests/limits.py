"""How long a test may wait for something that should come: a last resort against a hang, never a measure."""

from __future__ import annotations

import time
from collections.abc import Callable

# On a machine with eight times as much to do as it has cores, ten compiling kernels passed 120 s.
LAST_RESORT_SECONDS = 900


def until(condition: Callable[[], bool]) -> None:
    """Wait for what cannot tell by itself that it has come, such as a file of another process."""
    deadline = time.monotonic() + LAST_RESORT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)
