"""A lock for many readers or one writer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadWriteLock:
    """Readers share; a writer waits for them, and new readers wait for a waiting writer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._readers = 0
        self._writing = False
        self._waiting = 0

    def acquire_reading(self) -> None:
        """Hold the lock with other readers, until `release_reading`."""
        with self._lock:
            while self._writing or self._waiting:
                self._changed.wait()
            self._readers += 1

    def release_reading(self) -> None:
        """Let the lock go."""
        with self._lock:
            self._readers -= 1
            if self._waiting and not self._readers:
                self._changed.notify_all()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock with other readers."""
        self.acquire_reading()
        try:
            yield
        finally:
            self.release_reading()

    def try_writing(self) -> bool:
        """Hold the lock alone, until `release_writing`, if nobody holds it or waits for it."""
        with self._lock:
            if self._writing or self._readers or self._waiting:
                return False
            self._writing = True
            return True

    def release_writing(self) -> None:
        """Let the lock go."""
        with self._lock:
            self._writing = False
            self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone."""
        with self._changed:
            self._waiting += 1
            while self._writing or self._readers:
                self._changed.wait()
            self._waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            self.release_writing()
