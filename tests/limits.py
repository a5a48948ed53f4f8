"""How long a test may wait, and how many examples it draws."""

from __future__ import annotations

import time
from collections.abc import Callable

import hypothesis

# A last resort against a hang, never a measure. On a machine with eight times as much to do as it has cores, ten
# compiling kernels passed 120 s.
LAST_RESORT_SECONDS = 900


def until(condition: Callable[[], bool]) -> None:
    """Wait for what cannot tell by itself that it has come, such as a file of another process."""
    deadline = time.monotonic() + LAST_RESORT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def examples(most: int) -> int:
    """The number of examples of a property: `most` under the Hypothesis profile `ci`, a fifth of it otherwise."""
    return max(1, most * hypothesis.settings.default.max_examples // 100)
