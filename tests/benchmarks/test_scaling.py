"""The table over sizes, the plots' bytes, and the tasks on a small store."""

from __future__ import annotations

import pytest

from benchmarks import corpus, dataset
from benchmarks.isolated_process import run
from tests.limits import LAST_RESORT_SECONDS

RECALL = {
    "p50_ms": 0.5,
    "p95_ms": 0.9,
    "p99_ms": 1.2,
    "queries_per_second": 5000.4,
    "recall@10": 0.9981,
    "filters": {name: {"p50_ms": 0.4, "calls": 200, "recall@10": 1.0} for name in dataset.FILTERS},
}
OPENED = {"open_s": 1.234, "open_and_recall_s": 0.25, "anonymous_mb_above": 12.3}
FIGURES = {
    "build_s": 3.21,
    "disk_mb": 24.0,
    "hybrid": RECALL,
    "vector": RECALL,
    "open": {"from the store": OPENED},
    "remember": {"p50_ms": 3.0},
    "recall_after_it": {"p50_ms": 1.0},
}
SAVED = {
    "processor": "A processor",
    "cores": 2,
    "python": "3.11",
    "commit": "abc",
    "date": "2026-01-01",
    "results": {
        "10000": {**FIGURES, "open": {"from the store": OPENED, "from a file": {**OPENED, "open_s": 0.5}}},
        "1000": FIGURES,
    },
}


def test_plots_are_small_and_the_same_every_time(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.peers import plots as peers
    from benchmarks.scaling import plots as scaling

    compared = {
        "results": {
            size: {
                "recallite": {"modes": {"hybrid": RECALL, "vector": RECALL}},
                "lancedb": {"modes": {"hybrid": {**RECALL, "p50_ms": 20.0}, "vector": RECALL}},
            }
            for size in ("10000", "100000")
        }
    }
    for name, draw, saved in (("scaling.svg", scaling.draw, SAVED), ("peers.svg", peers.draw, compared)):
        written = []
        for folder in (tmp_path / "one", tmp_path / "other"):
            folder.mkdir(exist_ok=True)
            assert draw(saved, folder) == [folder / name]
            written.append((folder / name).read_bytes())
        assert written[0] == written[1]
        assert len(written[0]) < 100_000
        assert b"recall" in written[0]


@pytest.mark.slow
def test_a_store_is_opened_weighed_and_written_to_in_processes_of_its_own(tmp_path):
    lines, vectors = corpus.read_lines(None, 400), corpus.mixture(400, 384)
    data = dataset.write(tmp_path / "data", lines[:200], vectors[:200], lines[200:], vectors[200:])
    where = {"data": data.folder, "store": tmp_path}
    run("benchmarks.peers.process", {"task": "build", "contender": "recallite", **where}, limit_s=LAST_RESORT_SECONDS)
    opened = run("benchmarks.scaling.process", {"task": "open", "settings": {}, **where}, limit_s=LAST_RESORT_SECONDS)
    assert opened["open_s"] > opened["open_and_recall_s"] > 0
    weighed = run("benchmarks.scaling.process", {"task": "weigh", "settings": {}, **where}, limit_s=LAST_RESORT_SECONDS)
    assert list(weighed) == ["anonymous_mb_above"]
    written = run("benchmarks.scaling.process", {"task": "write", **where}, limit_s=LAST_RESORT_SECONDS)
    assert written["remember"]["calls"] == written["recall_after_it"]["calls"] == 100
