"""Compiling in a process of its own, which fills the cache: this one then loads each kernel in milliseconds.

In a thread the compiler holds the interpreter's lock most of the time, and calls of LLVM up to a second long: meanwhile
a recall waited for both. The process ends with this one, whatever ends it: it reads a pipe that no one writes to.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from recallite_kernels import _system

_compiles = False
_MAIN = "from recallite_kernels.numba_backend._compile import main; main()"
_AS_HERE = ("dont_write_bytecode", "pycache_prefix")  # of `sys`


def compiles() -> bool:
    """Whether the kernels that are imported now are to be compiled in this process."""
    return _compiles


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Import the kernels so that they can be compiled."""
    global _compiles
    _compiles = True
    try:
        yield
    finally:
        _compiles = False


class CompilerProcess:
    """A process that compiles some kernels, one after another, into the cache of this user."""

    def __init__(self, interpreter: str, kernels: Sequence[str]) -> None:
        import subprocess  # 2 ms, and kernels are compiled once

        # Isolated, and with the paths of this process: the same numba, whatever the environment says. Numba takes
        # settings from the current folder, which may be a stranger's.
        same = "; ".join(f"sys.{name} = {getattr(sys, name)!r}" for name in _AS_HERE)
        paths = [os.path.abspath(path) for path in sys.path]
        environment = dict(os.environ)
        if folder := environment.get("RECALLITE_CACHE_DIR"):
            environment["RECALLITE_CACHE_DIR"] = os.path.abspath(folder)
        self._process = subprocess.Popen(
            [interpreter, "-I", "-c", f"import sys; {same}; sys.path = {paths!r}; {_MAIN}", *kernels],
            cwd=Path(interpreter).parent, env=environment, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, **_system.background_options(),
        )  # fmt: skip

    def compiled(self) -> Iterator[str]:
        """Each kernel as soon as it is in the cache; ends early if the process does."""
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                yield line.decode().strip()
        finally:
            self.end()

    def end(self) -> None:
        """End the process, if it still runs, and wait for that."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """Leave it to the parent, in a process that has forked."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.returncode = 0


def interpreter() -> str | None:
    """A Python interpreter to compile with; None in a frozen program or in one that embeds Python."""
    program = sys.executable
    if getattr(sys, "frozen", False) or not program or "python" not in Path(program).name.lower():
        return None
    return program
