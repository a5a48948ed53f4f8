"""The machine and versions that a figure was measured with, so that it can be measured again."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import recallite

__all__ = ["describe", "embed_each_question"]

_ROOT = Path(__file__).resolve().parents[1]


def embed_each_question() -> None:
    """Turn the cache of query embeddings off, in this process and those that it starts."""
    os.environ["RECALLITE_QUERY_CACHE_SIZE"] = "0"


def describe() -> dict[str, object]:
    """Date, commit, versions and processor of this run."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "recallite": recallite.__version__,
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def _commit() -> str:
    """The commit's short hash, with a plus sign where the checkout differs from it."""
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        return f"{commit}+" if _git("status", "--porcelain", "--untracked-files=no") else commit
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
