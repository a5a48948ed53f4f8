"""What a missing framework is installed with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from recollect.extras import install_command


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around the imports of a framework: a missing module is told with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        missing.add_note(f"recollect.integrations needs it: {install_command(extra)}")
        raise
