"""Run as a script: one contender, either `build` or open and `ask`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.dataset import Dataset
from benchmarks.isolated_process import anonymous_mb, finish, peak_rss_mb
from benchmarks.peers.contenders import CONTENDERS

__all__ = ["bytes_on_disk"]


def bytes_on_disk(folder: Path) -> int:
    """Sum the sizes of all files in a folder and below."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _build(name: str, data: Dataset, store: Path) -> dict[str, Any]:
    contender = CONTENDERS[name].load()
    # The data is read before the clock runs.
    data.vectors.sum()
    len(data.lines)
    began = time.perf_counter()
    contender.build(data, store)
    seconds = time.perf_counter() - began
    return {
        "build_s": round(seconds, 2),
        "build_peak_rss_mb": peak_rss_mb(),
        "disk_mb": round(bytes_on_disk(store) / 1e6, 1),
    }


def _ask(name: str, data: Dataset, store: Path, target: float) -> dict[str, Any]:
    text, vector = data.questions[0], data.asked[0]
    contender = CONTENDERS[name].load()
    modes = contender.open(store)
    next(iter(modes.values())).ask(text, vector)
    answered_at = time.time()

    from benchmarks.peers.asking import measure

    contender.warm()
    # A hybrid is searched as widely as its vector stage turns out to need.
    order = sorted(modes, key=lambda mode: modes[mode].effort is None)
    figures = {mode: measure(mode, modes[mode], data, target) for mode in order}
    return {
        "answered_at": answered_at,
        "anonymous_mb": anonymous_mb(),
        "peak_rss_mb": peak_rss_mb(),
        "modes": {mode: figures[mode] for mode in modes},
    }


if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    what = task["contender"], Dataset(Path(task["data"])), Path(task["store"])
    finish(_build(*what) if task["task"] == "build" else _ask(*what, task["target"]))
