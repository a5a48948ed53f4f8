"""A thread that calls something every few minutes until it is stopped, as stores remove what has expired."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from recallite.errors import StoreClosed
from recallite.system.logs import logger

_log = logger(__name__)


class Sweeper:
    """Calls `sweep` in a thread of its own; what it raises is logged, and the next call comes as planned.

    The thread ends when it is stopped, or when the store is closed.
    """

    def __init__(self, sweep: Callable[[], object]) -> None:
        self._sweep = sweep
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, minutes: float) -> Future[None]:
        """Begin anew; returns a future that ends with the thread, and ends it when it is cancelled."""
        self.stop()
        ended: Future[None] = Future()
        stop = self._stop = threading.Event()

        def run() -> None:
            while not stop.wait(minutes * 60):
                try:
                    self._sweep()
                except StoreClosed:
                    break
                except Exception as fault:
                    message = "a sweep of what has expired failed with %s; the next is in %g minutes"
                    _log.warning(message, type(fault).__name__, minutes)
            if ended.set_running_or_notify_cancel():
                ended.set_result(None)

        ended.add_done_callback(lambda _: stop.set())
        self._thread = threading.Thread(target=run, name="recallite-sweeper", daemon=True)
        self._thread.start()
        return ended

    def stop(self, timeout: float | None = None) -> bool:
        """End the thread, if there is one, waiting at most `timeout` seconds; returns whether it has ended."""
        self._stop.set()
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()
