"""The command `recallite`: what the resident process does not answer goes to the command line of the core."""

from __future__ import annotations

__all__ = ["main"]

_ANSWERED_WARM = frozenset(("recall", "remember", "mcp", "hook"))
"""The commands that the resident process may answer."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` are those of the process unless given."""
    import sys

    words = sys.argv[1:] if arguments is None else arguments
    if "hook" in words:
        from recallite_server.hooks.running import left_of

        if not (words := left_of(words)):
            return 0
    if not _ANSWERED_WARM.isdisjoint(words):
        from recallite_server.warm import commands

        if (code := commands.answered(words)) is not None:
            return code
    from recallite.doors.cli.run import run

    code = run(words)
    if not _ANSWERED_WARM.isdisjoint(words):
        commands.prepare(words)
    return code
