"""Work that nobody waits for: one daemon thread, started when there is something to do."""

from __future__ import annotations

import threading
from collections.abc import Callable

from recallite.system.logs import logger
from recallite.system.messages import fault_text
from recallite.system.turnstile import giving_way

Task = Callable[[Callable[[], bool]], object]
"""Takes a function that says whether to stop."""

_log = logger(__name__)
# A task that waits for the network is not waited for: what it has not written is done again another time.
_LONGEST_WAIT_SECONDS = 2.0


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
            if self._thread is None and not self._stopped:
                thread = threading.Thread(target=self._run, name="recallite", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    _log.debug("%s: no thread can be started; the next call tries again", self._what)
                    return
                self._thread = thread

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
        self.wait(_LONGEST_WAIT_SECONDS)

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._stopped or not self._waiting:
                    self._thread = None
                    return
                name = next(iter(self._waiting))
                task = self._waiting.pop(name)
            try:
                with giving_way():
                    task(lambda: self._stopped)
                self._failures.pop(name, None)
            except Exception as failure:  # of a model, which may raise anything, or of a store that was closed
                if name not in self._failures and not self._stopped:  # once, until it succeeds
                    _log.warning("%s failed with %s", self._what, type(failure).__name__)
                self._failures[name] = fault_text(failure)
