"""Work that nobody waits for: one daemon thread, started when there is something to do."""

from __future__ import annotations

import threading
from collections.abc import Callable

from recallite.system.logs import logger
from recallite.system.messages import fault_text

Task = Callable[[Callable[[], bool]], object]
"""Takes a function that says whether to stop."""

_log = logger(__name__)
# A task that waits for the network is not waited for: what it has not written is done again another time.
_LONGEST_WAIT_SECONDS = 2.0


class Background:
    """Runs a task in a thread. Asked for while it runs, it runs once more afterwards; a failure is kept as a text.

    `what` names the task in the log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._again = self._stopped = False
        self.failure: str | None = None

    def start(self, task: Task) -> None:
        """Run the task soon."""
        with self._lock:
            self._again = True
            if self._thread is None and not self._stopped:
                thread = threading.Thread(target=self._run, args=(task,), name="recallite", daemon=True)
                thread.start()  # RuntimeError where the system has no thread left
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

    def _run(self, task: Task) -> None:
        while True:
            with self._lock:
                if self._stopped or not self._again:
                    self._thread = None
                    return
                self._again = False
            try:
                task(lambda: self._stopped)
                self.failure = None
            except Exception as failure:  # of a model, which may raise anything, or of a store that was closed
                if self.failure is None and not self._stopped:  # once, until it succeeds
                    _log.warning("%s failed with %s", self._what, type(failure).__name__)
                self.failure = fault_text(failure)
