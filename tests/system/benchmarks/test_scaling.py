"""Bytes of the plots, and the tasks on a small store."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import corpus, dataset, saving
from benchmarks.isolated_process import run
from benchmarks.scaling import large
from recallite import Memory
from tests.limits import LAST_RESORT_SECONDS


def test_plots_are_small_and_the_same_every_time(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.peers import plots as peers
    from benchmarks.scaling import plots as scaling

    curve = [{"effort": 1, "p50_ms": 0.5, "recall": 0.9}, {"effort": 2, "p50_ms": 1.0, "recall": 1.0}]
    contenders = {name: {"curve": curve} for name in ("recallite", "zvec")}
    runs = {
        "scaling": saving.read(saving.RESULTS / "scaling.json"),
        "peers": {"results": {"9": {"contenders": contenders}}},
    }
    for name, plots in (("scaling", scaling), ("peers", peers)):
        saved = runs[name]
        written = []
        for folder in (tmp_path / "one", tmp_path / "other"):
            folder.mkdir(exist_ok=True)
            assert plots.draw(saved, folder) == [folder / f"{name}.svg"]
            written.append((folder / f"{name}.svg").read_bytes())
        assert written[0] == written[1]
        assert len(written[0]) < 100_000


@pytest.mark.slow
def test_a_large_store_is_asked_what_its_records_were_made_of(tmp_path, monkeypatch):
    monkeypatch.setattr(large, "BLOCK", 400)
    large.build(tmp_path, 1000)
    data = large.prepare(tmp_path)
    rows = np.concatenate([large.vectors(block) for block in range(3)])[:1000]
    nearest = np.argsort(-(data.asked[0] @ rows.T))[:10].tolist()
    assert data.recall(0, nearest) == 1.0
    assert data.recall(0, [*nearest[:4], 1001]) == 0.4
    with Memory(tmp_path / "store" / "memory.db") as memory:
        assert memory.store.stats().records == 1000
        hits = memory.recall("", vector=data.asked[0], mode="vector", limit=10)
    assert data.recall(0, [int(hit.source.id.split()[1]) * 20 + hit.source.position for hit in hits]) == 1.0


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
