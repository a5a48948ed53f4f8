"""peers.svg: time over recall@10 of the vector search, a line a contender."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers.contenders import OURS

__all__ = ["draw"]

_LEAST_RECALL = 0.85


def draw(saved: dict[str, Any], folder: Path) -> list[Path]:
    """Write the plot of each contender's curve at the largest size into a folder; ImportError without matplotlib."""
    from benchmarks.drawing import GREY, dress, label_ends, panels, save, told
    from benchmarks.drawing import OURS as BLUE

    results = saved.get("results", {})
    if not results:
        return []
    records = max(results, key=int)
    figure, (panel,) = panels(1, columns=1, width=7.0, height=4.4)
    ends = []
    for name, result in results[records]["contenders"].items():
        curve = frontier(result.get("curve", []))
        if not curve or name == f"{OURS}, plain":
            continue
        colour = BLUE if name == OURS else GREY
        recalls, times = zip(*curve, strict=True)
        panel.plot(
            recalls, times, color=colour, linewidth=2.4 if name == OURS else 1.1, marker="o",
            markersize=4 if name == OURS else 3, zorder=3 if name == OURS else 2,
        )  # fmt: skip
        ends.append((recalls[-1], times[-1], f"{name} {told(times[-1])}", colour))
    dress(panel, f"{int(records):,} records, vectors alone: p50 ms by recall@10 (right and low is better)")
    panel.set_xlim(_LEAST_RECALL, 1.002)
    label_ends(panel, ends)
    return [save(figure, folder / "peers.svg")]


def frontier(curve: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """(recall, p50) of the efforts that no other beats in both, by recall."""
    points = sorted((point["recall"], point["p50_ms"]) for point in curve if point["recall"] >= _LEAST_RECALL)
    return [(recall, p50) for recall, p50 in points if not any(r >= recall and t < p50 for r, t in points)]
