"""Recall with filters and options, on a store of two hundred lines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from benchmarks import corpus, dataset, ways
from recallite import Memory


@pytest.fixture
def data(tmp_path):
    lines, vectors = corpus.read_lines(None, 210), corpus.mixture(210, 384)
    return dataset.write(tmp_path / "data", lines[:200], vectors[:200], lines[200:], vectors[200:])


def test_filters_keep_their_share_by_scope_tag_time_and_metadata(data):
    until = datetime(2026, 1, 1, tzinfo=UTC)
    with Memory(":memory:") as memory:
        memory.remember_many(ways.items(data, until))
        kept = {name: memory.count(**fields) for name, fields in ways.filters(until).items()}
    for name, below in dataset.FILTERS.items():
        share = int((dataset.parts(200) < below).sum())
        assert {kept[f"{name} by {field}"] for field in ("scope", "tag", "metadata")} == {share}
    # A text that names a date is of that time.
    assert kept["10 % by time"] == pytest.approx(20, abs=3)


def test_every_way_is_timed_and_shown_at_every_size(data, tmp_path):
    found = ways.measure(data, tmp_path, questions=3)
    assert found["ways"]["plain"]["times_plain"] == 1.0
    saved = {"processor": "A processor", "cores": 2, "commit": "abc", "date": "2026-01-01"}
    text = ways.markdown({**saved, "results": {"1000": found, "200": found}})
    assert text.startswith("| single recall, vector ready | 200: p50 ms | p95 ms | times plain | 1,000: p50 ms |")
    assert all(f"| {name} |" in text for name in ways.ways(datetime.now(UTC)))
