"""How much memory this process holds, in MB of 1,000,000 bytes, from /proc; None where there is no /proc."""

from __future__ import annotations

from pathlib import Path

__all__ = ["anonymous_mb", "peak_rss_mb"]


def anonymous_mb() -> float | None:
    """Resident memory that no file backs: what the process takes from the machine and cannot give back."""
    return _status("RssAnon")


def peak_rss_mb() -> float | None:
    """The most that was ever resident, pages of mapped files included."""
    return _status("VmHWM")


def _status(field: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    kibibytes = next((line.split()[1] for line in lines if line.startswith(f"{field}:")), None)
    return None if kibibytes is None else round(int(kibibytes) * 1024 / 1e6, 1)
