"""Ranges of a store that several threads read, and whose blocks one thread at a time appends in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from recallite.store.transaction import Reader
from recallite.system.parallel import run_tasks

Range = tuple[int, int]


class RangeQueue:
    """Ranges to read, and the use of their blocks.

    Any thread calls `read`; one at a time calls `append`, with the number of the range, in order, and `finish` at last.
    With `waits` nothing is appended until `open` is called; blocks are read all the same.
    """

    def __init__(
        self,
        ranges: Sequence[Range],
        read: Callable[[Reader, Range], Any],
        append: Callable[[Any, int], object],
        finish: Callable[[], object] = lambda: None,
        *,
        waits: bool = False,
    ) -> None:
        self._ranges, self._read, self._append, self._finish = ranges, read, append, finish
        self._waiting = deque(range(len(ranges)))
        self._blocks: dict[int, Any] = {}
        self._next = 0
        self._lock = threading.Lock()
        # One thread appends: another that has read a block meanwhile leaves it there and reads the next.
        self._closed = waits
        self._finished = False

    def open(self) -> None:
        """Append what has been read; from now on blocks are appended as they come."""
        self._closed = False
        self._append_ready()

    def drain(self, reader: Reader) -> None:
        """Read ranges until none is left."""
        self._append_ready()
        while True:
            try:
                place = self._waiting.popleft()
            except IndexError:
                return
            self._blocks[place] = self._read(reader, self._ranges[place])
            self._append_ready()

    def _append_ready(self) -> None:
        while True:
            with self._lock:
                place = self._next
                last = place == len(self._ranges)
                if self._closed or self._finished or not (last or place in self._blocks):
                    return
                self._closed, self._finished = True, last
            if last:
                self._finish()
            else:
                self._append(self._blocks.pop(place), place)
                self._next = place + 1
            self._closed = False


def drain(readers: Sequence[Reader], queues: Sequence[RangeQueue]) -> None:
    """Read all queues, one after the other, a thread for each reader."""

    def drain_all(reader: Reader) -> None:
        for queue in queues:
            queue.drain(reader)

    run_tasks([partial(drain_all, reader) for reader in readers])
