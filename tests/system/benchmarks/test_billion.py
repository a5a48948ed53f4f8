"""Figures of a billion records follow from what was measured."""

from __future__ import annotations

import pytest

from benchmarks import billion


def rate(queries_per_second):
    return {"hybrid": {"queries_per_second": queries_per_second}}


SCALING = {
    "cores": 2, "processor": "P", "commit": "abc",
    "results": {
        # Core seconds of a recall: 0.002 among 10,000, 0.003 among 100,000 and 0.012 among a million.
        "10000": rate(1000.0), "100000": rate(2 / 0.003),
        "1000000": {**rate(2 / 0.012), "disk_mb": 3000.0, "open": {"from the store": {"anonymous_mb_above": 640.0}}},
    },
}  # fmt: skip
TEXTS = {"chat turns": {"processor ms a text": 3.6}, "one query": {"processor ms a text": 7.2}}
MANY = {"without": {"records a second": 2000}, "with": {"records a second": 500}}
EMBEDDING = {"runs": {"20000": {"tables": [{"title": "texts", "rows": TEXTS}]}}}
WRITE_COST = {"runs": {"100": {"commit": "abc", "tables": [{"title": "many at once, detection", "rows": MANY}]}}}


def test_the_cost_of_a_recall_is_the_line_through_the_two_largest_stores():
    assert billion.recall_cost(SCALING) == pytest.approx((0.002, 1e-8))


def test_a_billion_follows_from_what_was_measured():
    lines = billion.markdown(SCALING, EMBEDDING, WRITE_COST).splitlines()
    assert lines[2:7] == [
        "| bytes on disk | 3,000 a record | 3.0 TB |",
        "| index in memory, without token codes | 640 a record | 640 GB: 5 machines of 128 GB |",
        "| embedding, texts of 33 tokens | 3.6 ms of a core | 1,000 core hours, 40 $ |",
        "| one writer of a SQLite file, compared afterwards | 500 a second | 23.1 days |",
        "| one writer of a SQLite file, never compared | 2,000 a second | 5.8 days |",
    ]
    assert lines[10:13] == [
        "| 10,000 | yes | 0.6 | 2.6 | 0.10 | 0.2 |",
        "| 1,000,000 | yes | 3.3 | 5.3 | 0.21 | 0.3 |",
        "| 10,000,000 | no | 28.3 | 30.3 | 1.21 | 1.9 |",
    ]
