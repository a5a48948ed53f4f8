"""A turnstile before a lock: whoever waits for the lock goes through before work in the background, and that work.

Other processes know of who waits by a file, which exists meanwhile and of which each has a shared lock. The system
drops the lock of a process that is killed; the file that it leaves is removed by the next one who finds it free. It
only orders those who want the other lock: where it cannot be made, or the file system has no locks, the background
only pauses. Work that nobody waits for has one daemon thread, started when there is something to do.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

from recallite.system.files import opened
from recallite.system.messages import fault_text
from recallite.system.processes import after_fork
from recallite.system.telemetry import logger

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Windows has exclusive locks only: each who waits locks another byte.
_BYTES = 2**20
_ATTEMPTS = 4
_POLL_SECONDS = 0.002
# Of the processor; beside it, a commit takes 1 to 5 ms. Of the clock it may be longer: another program interrupts a
# turn of any size, and a turn that is small for it costs no less.
_AIMED_SECONDS, _LONGEST_TURN_SECONDS = 0.01, 0.05
# The background still gets a turn a second if somebody always waits.
_LONGEST_WAIT_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 1.0
gives_way: ContextVar[bool] = ContextVar("gives_way", default=False)
"""Whether this thread works in the background."""
# Who waits for the interpreter's lock while another thread computes waits 5 ms, and a recall gives it up a dozen times.
# So the background gives it up each millisecond, and rests while another thread is in a transaction that is noted, for
# 5 ms at most: then it works for one. Who embeds a text or asks a server meanwhile is in none.
_WORKING_SECONDS, _RESTING_SECONDS, _PAUSE_SECONDS = 1e-3, 5e-3, 1e-5
_in_transactions: dict[int, int] = {}
_nobody_is = threading.Event()
_rests: ContextVar[bool] = ContextVar("rests", default=True)


@contextmanager
def giving_way(*, rests: bool = True) -> Iterator[None]:
    """Mark what this thread does inside as work in the background: whoever waits for the lock goes first.

    It pauses after each turn. Work that a user waits for does not rest: it goes on if nobody waits for the lock.
    """
    tokens = gives_way.set(True), _rests.set(rests)
    try:
        yield
    finally:
        gives_way.reset(tokens[0])
        _rests.reset(tokens[1])


def note_begin(*, locks: bool = False) -> int:
    """Note for the background that this thread is in a transaction; returns what `note_end` takes at its end.

    A thread of the background is noted only if its transaction `locks`, as others may then wait for it.
    """
    if gives_way.get() and not locks:
        return 0
    thread = threading.get_ident()
    _in_transactions[thread] = _in_transactions.get(thread, 0) + 1
    return thread


def note_end(thread: int) -> None:
    """Take back what `note_begin` has noted."""
    if thread:
        left = _in_transactions.pop(thread, 1) - 1
        if left:
            _in_transactions[thread] = left
        elif not _in_transactions and not _nobody_is.is_set():
            _nobody_is.set()


def _forget_threads() -> None:
    """Know of no thread, in a forked child: it has only the one that forked."""
    global _nobody_is
    _in_transactions.clear()
    _nobody_is = threading.Event()


after_fork(_forget_threads)


class _Pace(threading.local):
    """Until when a thread in the background works before it gives way, whoever else there is; and at most."""

    anyway = at_most = 0.0


_pace = _Pace()


def give_way() -> None:
    """Let other threads compute, if this one works in the background. Call it about every half millisecond of work."""
    now = time.perf_counter()
    if now < _pace.anyway or (now < _pace.at_most and not _in_transactions) or not gives_way.get():
        return
    if threading.get_ident() in _in_transactions:  # whoever holds the lock of the store is to be done soon
        return
    _nobody_is.clear()
    rested = True
    if _in_transactions:
        rested = _nobody_is.wait(_RESTING_SECONDS)
    else:
        time.sleep(_PAUSE_SECONDS)
    _pace.at_most = time.perf_counter() + _WORKING_SECONDS
    _pace.anyway = 0.0 if rested else _pace.at_most


T = TypeVar("T")


def paced(items: Iterable[T]) -> Iterable[T]:
    """The items; in the background it gives way before each."""
    return _paced(items) if gives_way.get() else items


def _paced(items: Iterable[T]) -> Iterator[T]:
    for item in items:
        give_way()
        yield item


@contextmanager
def present(path: str | None, beside: str, *, alone: bool = False) -> Iterator[bool]:
    """Let `is_present` of other processes know of this one, as far as the file system permits.

    The file at the path is there meanwhile, with the mode of the file `beside`. `alone`: only if nobody is present
    there; yields whether that is so.
    """
    descriptor = None if path is None else _entered(path, beside, alone=alone)
    try:
        yield not alone or descriptor is not None or not is_present(path)
    finally:
        if descriptor is not None and path is not None:
            try:  # drop the lock, and remove the file if nobody else has it
                if sys.platform != "win32":
                    with suppress(OSError):
                        # Not by closing alone: a process that was forked meanwhile has the same lock.
                        fcntl.flock(descriptor, fcntl.LOCK_UN)
                        _remove_if_free(descriptor, path)
            finally:
                os.close(descriptor)
            if sys.platform == "win32":
                is_present(path)


def is_present(path: str | None) -> bool:
    """Whether somebody is `present` at a path; the file that a killed process has left is removed."""
    if path is None or not os.path.lexists(path):
        return False
    try:
        descriptor = opened(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _remove_if_free(descriptor, path)
    except OSError:  # no locks here
        return False
    finally:
        os.close(descriptor)


class Turnstile:
    """The turnstile of a lock for this process's threads and, with a path, for other processes.

    A new file gets the mode of the file `beside`.
    """

    def __init__(self, path: str | None, beside: str = "") -> None:
        self._path, self._beside = path, beside
        self._counting = threading.Lock()
        self._waiting = 0
        self._rests_until = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Have the background of all processes know that somebody waits for the lock."""
        with self._counting:
            self._waiting += 1
        try:
            with present(self._path, self._beside):
                yield
        finally:
            with self._counting:
                self._waiting -= 1

    def is_free(self) -> bool:
        """Whether nobody waits, in this process or another."""
        return not self._waiting and not is_present(self._path)

    def wait_until_free(self) -> bool:
        """Wait until nobody waits or computes, and the last turn of the background is as long ago as it took.

        After a second it is the background's turn all the same, to wait for the lock as others do: returns False then.
        """
        time.sleep(max(0.0, self._rests_until - time.monotonic()))
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while (waits := not self.is_free()) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        give_way()
        return not waits

    def had_turn(self, seconds: float) -> None:
        """Note the end of a turn of the background, which held the lock so long."""
        if _rests.get():
            self._rests_until = time.monotonic() + min(seconds, _LONGEST_PAUSE_SECONDS)


class StepSize:
    """The amount of work for one turn of the background, which is to hold the lock for 10 to 20 ms of processor time.

    `size` is what the next turn should do; a turn that does less of it sets `count`. `rests`: see `giving_way`.
    """

    def __init__(self, first: int = 16, least: int = 1, most: int = 1024, *, rests: bool = True) -> None:
        self.size, self.count, self.rests = first, first, rests
        self._least, self._most = least, most

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The work of one turn, from when it has the lock. To end a transaction takes as long for one as for many."""
        self.count, began, worked = self.size, time.perf_counter(), time.thread_time()
        yield
        if self.count:
            worked, took = time.thread_time() - worked, time.perf_counter() - began
            fitting = int(self.count / max(worked / _AIMED_SECONDS, took / _LONGEST_TURN_SECONDS, 1e-4))
            # One turn may have been slow because of another program: the next ones are not much smaller.
            self.size = max(self._least, self.size // 4, min(fitting, 2 * self.size, self._most))


def _entered(path: str, beside: str, *, alone: bool) -> int | None:
    """A descriptor of the file with a lock that others may have too unless `alone`; None if there can be none."""
    for _ in range(_ATTEMPTS):
        try:
            descriptor = opened(path, os.O_RDWR | os.O_CREAT)
        except OSError:
            return None
        try:
            if sys.platform == "win32":
                import secrets  # loads a dozen modules

                os.lseek(descriptor, 0 if alone else secrets.randbelow(_BYTES), os.SEEK_SET)
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, _BYTES if alone else 1)
            else:
                with suppress(OSError):  # a file of another user has its mode already
                    os.fchmod(descriptor, os.stat(beside).st_mode & 0o666)
                fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:  # else it was removed before it was locked
                return descriptor
        except OSError:
            time.sleep(_POLL_SECONDS / _ATTEMPTS)  # somebody is looking whether it is free
        os.close(descriptor)
    return None


def _remove_if_free(descriptor: int, path: str) -> bool:
    """Whether nobody holds the file, which then is removed. Raises OSError where there are no locks."""
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, _BYTES)
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, _BYTES)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    with suppress(OSError):
        # Another may have removed it, and a third made a new one.
        if os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False)):
            os.unlink(path)
    return True


Task = Callable[[Callable[[], bool]], object]
"""Takes a function that says whether to stop."""

_log = logger(__name__)
# A task that waits for the network is not waited for: what it has not written is done again another time.
_CLOSING_SECONDS = 2.0


class Background:
    """Runs tasks in a thread. Asked for while it runs, a task runs once more afterwards; a failure is kept as a text.

    `what` names the tasks in the log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._waiting: dict[str, Task] = {}
        self._failures: dict[str, str] = {}
        self._relieved = 0
        self._stopped = False

    @property
    def failure(self) -> str | None:
        """The failure of a task that has not succeeded since."""
        return next(iter(self._failures.values()), None)

    @property
    def runs(self) -> bool:
        """Whether a task runs, or waits to."""
        return self._thread is not None

    def start(self, task: Task, name: str = "") -> None:
        """Run the task soon, in place of one of the same name that waits; it waits where no thread is left."""
        with self._lock:
            self._waiting[name] = task
            self._start_thread()

    def _start_thread(self) -> None:
        """Start the thread if there is something to do; with the lock."""
        if self._waiting and self._thread is None and not self._stopped and not self._relieved:
            thread = threading.Thread(target=self._run, name="recallite", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                _log.debug("%s: no thread can be started; the next call tries again", self._what)
                return
            self._thread = thread

    @contextmanager
    def relieved(self) -> Iterator[None]:
        """Have this thread do the work: a task stops after what it is at, and runs again afterwards for what is left.

        One that does not stop is not waited for.
        """
        with self._lock:
            self._relieved += 1
        try:
            self.wait(_CLOSING_SECONDS)
            yield
        finally:
            with self._lock:
                self._relieved -= 1
                self._start_thread()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing is left to do; returns whether that is so."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return self._thread is None

    def stop(self) -> None:
        """Have the task stop after what it is at, and start none any more."""
        with self._lock:
            self._stopped = True
        self.wait(_CLOSING_SECONDS)

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._stopped or self._relieved or not self._waiting:
                    self._thread = None
                    return
                name = next(iter(self._waiting))
                task = self._waiting.pop(name)
            told = False

            def stopped() -> bool:
                nonlocal told
                told = told or self._stopped or self._relieved > 0
                return told

            try:
                with giving_way():
                    task(stopped)
                self._failures.pop(name, None)
                if told:  # and so perhaps not done
                    self._waiting.setdefault(name, task)
            except Exception as failure:  # of a model, which may raise anything, or of a store that was closed
                if name not in self._failures and not self._stopped:  # once, until it succeeds
                    _log.warning("%s failed with %s", self._what, type(failure).__name__)
                self._failures[name] = fault_text(failure)
