"""Ctrl-C, forks and limits of this process; how others are started and confined, and their exit codes."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from types import FrameType


if sys.platform == "win32":
    import ctypes
else:
    import resource


_SECONDS_ASLEEP = 3600.0
_MOST_FILES = 10_240  # as many as macOS takes


def ignore_interrupts() -> None:
    """Have this process go on when Ctrl-C is pressed, which is for the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def heed_interrupts() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, also if a script's `&` has started this process with it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def noted_interrupts() -> threading.Event:
    """Have Ctrl-C set the event returned before it does what it did until now, such as cancel the task of a loop."""
    noted, before = threading.Event(), signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        noted.set()
        if callable(before):
            before(number, frame)

    if callable(before):
        signal.signal(signal.SIGINT, note)
    return noted


def when_terminated(call: Callable[[], object]) -> None:
    """Have the running loop of asyncio call this on SIGTERM, where there is one, in the main thread."""
    import asyncio

    with suppress(RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, call)


def wait_for_interrupt() -> None:
    """Wait until Ctrl-C raises KeyboardInterrupt, which on Windows ends no wait without a limit."""
    while True:
        time.sleep(_SECONDS_ASLEEP)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C from this thread, and from processes that it starts: until they call `ignore_interrupts`.

    Windows drops it for the whole process meanwhile, and never gives it to those that are started.
    """
    if sys.platform == "win32":
        set_handler = ctypes.WinDLL("kernel32").SetConsoleCtrlHandler
        set_handler(None, True)
        try:
            yield
        finally:
            set_handler(None, False)
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def safe_environment() -> dict[str, str]:
    """The variables of this process for a Python that it starts, without what names the current folder for modules.

    An empty entry of PYTHONPATH, as of `$PYTHONPATH:/more`, is that folder: of a project, where others put files.
    """
    variables = dict(os.environ)
    if "PYTHONPATH" in variables:
        entries = [entry for entry in variables["PYTHONPATH"].split(os.pathsep) if os.path.isabs(entry)]
        variables["PYTHONPATH"] = os.pathsep.join(entries)
        if not entries:
            del variables["PYTHONPATH"]
    return variables


@contextmanager
def safe_start() -> Iterator[None]:
    """Keep processes that multiprocessing starts here from loading modules of the current folder.

    It runs `python -c`, which looks there first, before it is told where this process looks.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def start_detached(command: Sequence[str], folder: str | None, text: bytes = b"") -> subprocess.Popen[bytes]:
    """Start a process that goes on when this one and its terminal end, with this standard input. Raises OSError."""
    import subprocess
    import tempfile

    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP}
    nowhere = subprocess.DEVNULL
    with tempfile.TemporaryFile() as stdin:  # a pipe would keep this process until the other has read it
        stdin.write(text)
        stdin.seek(0)
        process = subprocess.Popen(
            command, cwd=folder, stdin=stdin, stdout=nowhere, stderr=nowhere, env=safe_environment(), **apart
        )  # fmt: skip
    threading.Thread(target=process.wait, daemon=True).start()  # else it stays a zombie for as long as this one runs
    return process


def run_instead(command: Sequence[str]) -> int:
    """Run a command in the place of this process; on Windows, which cannot, below it. Returns its exit code."""
    if sys.platform != "win32":
        os.execve(command[0], [*command], safe_environment())
    import subprocess

    return subprocess.run(command, check=False, env=safe_environment()).returncode


def after_fork(call: Callable[[], object]) -> None:
    """Have every forked child call this first. Windows does not fork."""
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=call)


def limit_processor_time(seconds: float) -> None:
    """Have the system end this process after this much processor time from now: see `out_of_time`.

    Windows has no such limit for a process by itself: whoever started it has to watch the clock.
    """
    if sys.platform != "win32":
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds) + 1)


def limit_memory_and_files(memory_bytes: int) -> None:
    """Let this process take `memory_bytes` beyond what it has, and write no file; as far as the system can.

    macOS cannot limit memory, and Windows neither.
    """
    if sys.platform != "win32":
        used = 0  # where the system does not say
        with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as status:
            used = int(status.read().split()[0]) * resource.getpagesize()
        _limit(resource.RLIMIT_AS, used + memory_bytes)
        _limit(resource.RLIMIT_FSIZE, 0)
        _limit(resource.RLIMIT_CORE, 0)


def raise_file_limit() -> int:
    """Let this process open as many files as the system lets it; returns how many."""
    if sys.platform == "win32":
        return _MOST_FILES
    if 0 <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _MOST_FILES:  # -1: as many as one wants
        _limit(resource.RLIMIT_NOFILE, _MOST_FILES)
    limit: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit if limit >= 0 else _MOST_FILES


def out_of_time(code: int) -> bool:
    """Whether a process with this exit code was ended by `limit_processor_time`."""
    return sys.platform != "win32" and code == -signal.SIGXCPU


def ending(code: int) -> str:
    """An exit code in words: "signal 9" or "code 1"."""
    return f"signal {-code}" if code < 0 else f"code {code}"


if sys.platform != "win32":

    def _limit(kind: int, value: int) -> None:
        hard = resource.getrlimit(kind)[1]
        with suppress(ValueError, OSError):  # macOS cannot limit address space
            resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


# An audit hook for a process that handles foreign data. Native code could bypass it.
_FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile",
              "ftplib.")  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


def refusing(who: str) -> Callable[[str, tuple[Any, ...]], None]:
    """Return an audit hook that refuses network, processes and writing files by PermissionError, which names `who`."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(_FORBIDDEN):
            raise PermissionError(f"{who} may not: {event}")
        if event == "open":
            _, mode, flags = arguments
            if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & _WRITING):
                raise PermissionError(f"{who} may not write files")

    return refuse
