"""The tables of bulk work: what differs is said, and what is on paper follows from what was measured."""

from __future__ import annotations

import pytest

from benchmarks import batch, billion, saving

RUN = {
    "records": 1000, "questions": 100, "commit": "abc", "date": "2026-11-23", "cores": 2, "load_before": 0.1,
    "ways": {
        "one process": {"store_s": 2.0, "stored": "x", "recall_s": 1.0, "answered": "y"},
        "two workers": {"store_s": 1.0, "stored": "x", "recall_s": 0.5, "answered": "y"},
        "Ray, two nodes": {"store_s": 4.0, "stored": "x", "recall_s": 2.0, "answered": "z"},
    },
}  # fmt: skip


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
EMBEDDING = {"cases": {"chat turns": {"processor_ms_per_text": 3.6}, "one query": {"processor_ms_per_text": 7.2}}}
WRITE_COST = {"commit": "abc", "many": {"with": 500, "without": 2000}}


def test_a_way_with_other_results_than_the_first_is_said():
    lines = batch.markdown({"default": RUN}).splitlines()
    assert lines[2:5] == [
        "| one process | 2.0 | 500 | 1.0 | 100 | yes |",
        "| two workers | 1.0 | 1,000 | 0.5 | 200 | yes |",
        "| Ray, two nodes | 4.0 | 250 | 2.0 | 50 | no |",
    ]
    with pytest.raises(saving.NotMeasured):
        batch.markdown({})


def test_the_cost_of_a_recall_is_the_line_through_the_two_largest_stores():
    cost = billion.RecallCost.of(SCALING)
    assert (cost.fixed, cost.each) == pytest.approx((0.002, 1e-8))
    assert cost.seconds(10_000_000) == pytest.approx(0.102)


def test_a_billion_follows_from_what_was_measured():
    lines = billion.markdown(SCALING, EMBEDDING, WRITE_COST).splitlines()
    assert lines[2:7] == [
        "| bytes on disk | 3,000 a record | 3.0 TB |",
        "| index in memory, without token codes | 640 a record | 640 GB: 5 machines of 128 GB |",
        "| embedding, texts of 33 tokens | 3.6 ms of a core | 1,000 core hours, 40 $ |",
        "| one writer of a SQLite file, with detection | 500 a second | 23.1 days |",
        "| one writer of a SQLite file, without detection | 2,000 a second | 5.8 days |",
    ]
    assert lines[10:13] == [
        "| 10,000 | yes | 0.6 | 2.6 | 0.10 | 0.2 |",
        "| 1,000,000 | yes | 3.3 | 5.3 | 0.21 | 0.3 |",
        "| 10,000,000 | no | 28.3 | 30.3 | 1.21 | 1.9 |",
    ]
