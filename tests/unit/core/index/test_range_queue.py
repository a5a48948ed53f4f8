"""Several threads read ranges; blocks are appended in order, and what follows waits."""

from __future__ import annotations

import threading

import pytest

from recallite.index.loading import RangeQueue

RANGES = [(number, number + 1) for number in range(200)]


def test_blocks_are_appended_in_order_by_any_number_of_threads():
    appended, ends = [], []
    queue = RangeQueue(RANGES, lambda reader, bounds: bounds[0], lambda block, number: appended.append((block, number)),
                       lambda: ends.append(len(appended)))  # fmt: skip
    threads = [threading.Thread(target=queue.drain, args=(None,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert appended == [(number, number) for number in range(len(RANGES))]
    assert ends == [len(RANGES)]


def test_a_queue_that_waits_reads_and_appends_when_it_is_opened():
    read, appended = [], []
    queue = RangeQueue(RANGES[:3], lambda reader, bounds: read.append(bounds), lambda *_: appended.append(1),
                       lambda: appended.append("end"), waits=True)  # fmt: skip
    queue.drain(None)
    assert (len(read), appended) == (3, [])
    queue.open()
    assert appended == [1, 1, 1, "end"]


def test_a_queue_of_nothing_ends():
    ends = []
    queue = RangeQueue([], lambda reader, bounds: None, lambda *_: None, lambda: ends.append(1))
    queue.drain(None)
    queue.drain(None)
    assert ends == [1]


def test_an_error_of_a_reader_is_raised_and_nothing_follows():
    appended = []

    def read(reader, bounds):
        if bounds == RANGES[2]:
            raise OSError("unreadable")
        return bounds

    queue = RangeQueue(RANGES, read, lambda block, number: appended.append(block), lambda: appended.append("end"))
    with pytest.raises(OSError, match="unreadable"):
        queue.drain(None)
    assert appended == RANGES[:2]
