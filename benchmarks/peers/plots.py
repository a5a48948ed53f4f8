"""peers.svg: latency over size, what is hybrid on the left and what asks by vector alone on the right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers.report import rows

__all__ = ["draw"]

_TITLES = {
    "hybrid": "Hybrid recall, query vector ready: p50 ms",
    "vector": "Vector search at our recall@10 or better: p50 ms",
}


def draw(saved: dict[str, Any], folder: Path) -> list[Path]:
    """Write the plot into a folder; ImportError without matplotlib."""
    from benchmarks.drawing import GREY, OURS, dress, label_ends, panels, save, told

    sizes = sorted(int(size) for size in saved.get("results", {}))
    if not sizes:
        return []
    figure, axes = panels(len(_TITLES), columns=2, width=5.0, height=3.8)
    for panel, (kind, title) in zip(axes, _TITLES.items(), strict=True):
        lines: dict[str, list[tuple[int, float]]] = {}
        for records, name, _, figures in rows(saved, kind):
            lines.setdefault(name, []).append((records, figures["p50_ms"]))
        for name, points in lines.items():
            ours = name == "recallite"
            panel.plot(
                *zip(*points, strict=True),
                color=OURS if ours else GREY,
                linewidth=2.4 if ours else 1.1,
                marker="o",
                markersize=5 if ours else 3.5,
                zorder=3 if ours else 2,
            )
        dress(panel, title, sizes)
        ends = [(name, *points[-1]) for name, points in lines.items()]
        label_ends(
            panel,
            [(x, y, _label(name, x, told(y), sizes[-1]), OURS if name == "recallite" else GREY) for name, x, y in ends],
        )
    return [save(figure, folder / "peers.svg")]


def _label(name: str, records: int, milliseconds: str, largest: int) -> str:
    """With the size where the line ends before the largest."""
    return f"{name}  {milliseconds}" if records == largest else f"{name}  {milliseconds} (ends at {records:,})"
