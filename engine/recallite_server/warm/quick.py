"""The start of a command without the packages of Python's environment, which a warm answer does not need.

Hosts run hooks at every prompt, and start a server each. Nothing is imported here that takes a while.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_START = (
    "import os, site, sys; package = sys.argv.pop(1); os.path.isdir(package) or site.main(); "
    "sys.path.append(os.path.dirname(package)); from recallite_server.warm.quick import main; main()"
)


def quick_start() -> list[str]:
    """The words that start a host's command so, and load no module in the folder of a project.

    If the package has moved to another folder since, as with a newer Python, they search the packages for it.
    """
    package = os.path.abspath(__file__)
    for _ in __name__.split(".")[1:]:
        package = os.path.dirname(package)
    return [sys.executable, "-I", "-S", "-c", _START, package]


def is_quick_start(words: Sequence[str]) -> bool:
    """Whether words begin with a quick start, of whatever Python and package."""
    start = quick_start()
    return len(words) >= len(start) and [*words[1 : len(start) - 1]] == start[1:-1]


def command(words: Sequence[str]) -> list[str]:
    """The words that run Recallite with these arguments: see `module`."""
    return [*module("recallite"), *words]


def module(name: str) -> list[str]:
    """The words that run a module, and load no other one from the folder that they are run in.

    They leave Python the packages of the user and of PYTHONPATH, in which Recallite may be: see `safe_environment`.
    """
    return [sys.executable, "-P", "-m", name]


def main() -> None:
    """Run the command of a host; what the resident process does not answer, the full command line does."""
    words = sys.argv[1:]
    if "hook" in words and "mcp" not in words:
        _run_hook(words)
    from recallite_server.warm.commands import answered

    if (code := answered(words)) is None:
        from recallite.system.processes import run_instead

        code = run_instead(command(words))
    sys.exit(code)


def _run_hook(words: Sequence[str]) -> None:
    """Run a hook and exit with 0 whatever comes of it: another code would stop the host."""
    try:
        from recallite_server.hooks.running import left_of, run

        if left := left_of(words):
            run(left)
    finally:
        os._exit(0)
