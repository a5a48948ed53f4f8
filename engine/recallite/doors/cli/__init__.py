"""The command `recallite`: parses arguments, calls `Memory`, prints. What it can do, `Memory` can do."""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` are those of the process unless given."""
    from recallite.doors.cli.run import run

    return run(arguments)
