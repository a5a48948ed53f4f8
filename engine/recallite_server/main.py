"""The command `recallite`: what the resident process does not answer goes to the command line."""

__all__ = ["main"]

_ANSWERED_WARM = frozenset(("recall", "remember", "mcp", "hook"))
"""The commands that the resident process may answer."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` are those of the process unless given."""
    import sys

    words = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(words)
    except KeyboardInterrupt as stop:  # while it loads, above all: a command that runs says itself what it has left
        loaded = sys.modules.get("recallite_cli.run")
        if loaded is not None:
            code: int = loaded.ended(stop, [*words])
            return code
        if sys.stderr is not None:
            sys.stderr.write("recallite: Interrupted: stopped before it began\n")
        return 130


def _run(words: list[str]) -> int:
    if "hook" in words:
        from recallite_server.hooks.running import left_of

        if not (words := left_of(words)):
            return 0
    if not _ANSWERED_WARM.isdisjoint(words):
        from recallite_server.warm import commands

        if (code := commands.answered(words)) is not None:
            return code
    from recallite_cli.run import run

    code = run(words)
    if not _ANSWERED_WARM.isdisjoint(words):
        commands.prepare(words)
    return code
