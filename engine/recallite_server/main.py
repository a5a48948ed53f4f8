"""The command `recallite`: what the resident process does not answer goes to the command line."""

__all__ = ["main", "process"]

_ANSWERED_WARM = frozenset(("recall", "remember", "mcp", "hook"))
"""The commands that the resident process may answer."""
_OBJECTS_OF_A_COMMAND = 200_000
"""New objects after which a command collects cycles: a recall makes 115,000, most of them as modules load, and ends."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` are those of the process unless given."""
    import sys

    return _run_until_interrupted(sys.argv[1:] if arguments is None else arguments)


def process() -> None:
    """Run the command of this process and exit. Do what suits a process that ends after it, unless another asks."""
    import atexit
    import gc
    import os
    import sys

    codes: list[int] = []
    # A program that runs this module, as runpy does, goes on. What was registered before would be left out.
    if sys._getframe(1).f_globals is vars(sys.modules["__main__"]) and not atexit._ncallbacks():
        atexit.register(_end, codes)
        gc.set_threshold(_OBJECTS_OF_A_COMMAND)
        # NumPy's BLAS starts a thread per processor, each of which spins for 2^26 cycles before it sleeps unless told.
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    codes.append(main())
    sys.exit(codes[0])


def _end(codes: list[int]) -> None:
    """End the process with the exit code of its command, last of all at exit: Python would free each object first."""
    import os
    import sys

    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return  # Python says so
    if codes:
        os._exit(codes[0])


def _run_until_interrupted(words: list[str]) -> int:
    import sys

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
