"""Runs a module as a script in a Python process of its own (one JSON argument in, one JSON line out), and weighs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["QUIET", "DidNotFinish", "Failed", "anonymous_mb", "finish", "peak_rss_mb", "run"]

_ROOT = Path(__file__).resolve().parents[1]
# Measured libraries get no network, telemetry or progress bars.
QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",
}


class DidNotFinish(Exception):
    """The process was ended at its limit."""


class Failed(Exception):
    """The process failed; the message is the last line it wrote, without the folders of this machine."""


def run(module: str, arguments: Mapping[str, Any], limit_s: float, python: str = sys.executable) -> dict[str, Any]:
    """Return what the module hands to `finish`; `open_s` is from the process's start to its `answered_at`."""
    command = [python, "-m", module, json.dumps(arguments, default=str)]
    started = time.time()
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **QUIET},
            cwd=_ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=max(limit_s, 0.001),
        )
    except subprocess.TimeoutExpired:
        raise DidNotFinish(module) from None
    if done.returncode:
        last = (done.stderr.strip() or f"{module} ended with {done.returncode}").splitlines()[-1]
        raise Failed(re.sub(r"\(?/[^\s)]+\)?", "", last)[:200].strip())
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if (answered := result.pop("answered_at", None)) is not None:
        result = {"open_s": round(answered - started, 3), **result}
    return result


def finish(outcome: Mapping[str, Any]) -> NoReturn:
    """End this process with its result. What is still open is not closed: that can take long and is not measured."""
    print("\n" + json.dumps(outcome))
    sys.stdout.flush()
    os._exit(0)


def anonymous_mb() -> float | None:
    """Resident megabytes that no file backs: memory that the machine cannot take back; None without /proc."""
    return _status("RssAnon")


def peak_rss_mb() -> float | None:
    """Most megabytes that were ever resident, pages of mapped files included; None without /proc."""
    return _status("VmHWM")


def _status(field: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    kibibytes = next((line.split()[1] for line in lines if line.startswith(f"{field}:")), None)
    return None if kibibytes is None else round(int(kibibytes) * 1024 / 1e6, 1)
