"""Work done in a Python of its own, timed from inside and from its start.

`run(task)` starts the process; `python -m benchmarks.latency.newprocess` is that process. Arguments and results are
JSON; the process says when it began with the clock that the parent reads too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["run"]

_ROOT = Path(__file__).resolve().parents[2]


def run(task: str, arguments: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None) -> Any:
    """The result of a task in a new process, with `process_ms` from its start to the task's last step."""
    command = [sys.executable, str(Path(__file__).resolve()), task, json.dumps(arguments or {})]
    started = time.time()
    done = subprocess.run(
        command, env={**os.environ, **(environment or {})}, cwd=_ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{task} failed in its own process:\n{done.stderr}")
    result = json.loads(done.stdout.splitlines()[-1])
    result["process_ms"] = (result.pop("ended") - started) * 1e3
    return result


def _nothing() -> dict[str, Any]:
    return {}


def _import() -> dict[str, Any]:
    began = time.perf_counter()
    import recallite

    milliseconds = (time.perf_counter() - began) * 1e3
    return {"import_ms": milliseconds, "version": recallite.__version__, "numpy_loaded": "numpy" in sys.modules}


def _recall(path: str, query: str, vector: list[float] | None = None, options: Any = None) -> dict[str, Any]:
    """Import, open and answer one query."""
    began = time.perf_counter()
    from recallite import Memory

    imported = time.perf_counter()
    memory = Memory(path)
    opened = time.perf_counter()
    hits = memory.recall(query, vector=vector, **(options or {}))
    answered = time.perf_counter()
    return {
        "import_ms": (imported - began) * 1e3,
        "open_ms": (opened - imported) * 1e3,
        "recall_ms": (answered - opened) * 1e3,
        "stages": hits.stages,
        "hits": len(hits),
    }


def _answers(path: str, questions: str, limit: int) -> dict[str, Any]:
    """Ids, scores and times of questions; `questions` is a JSON file with their texts and where their vectors are."""
    import numpy as np

    from recallite import Memory

    asked = json.loads(Path(questions).read_text(encoding="utf-8"))
    vectors = np.load(asked["vectors"])
    found, milliseconds = [], []
    with Memory(path) as memory:
        memory.warmup()
        for text, vector in zip(asked["texts"], vectors, strict=True):
            began = time.perf_counter()
            hits = memory.recall(text, vector=vector, limit=limit)
            milliseconds.append((time.perf_counter() - began) * 1e3)
            found.append([(hit.id, hit.score) for hit in hits])
        backend = memory.stats().kernels
    return {"hits": found, "milliseconds": milliseconds, "kernels": backend}


_TASKS: dict[str, Any] = {"nothing": _nothing, "import": _import, "recall": _recall, "answers": _answers}


if __name__ == "__main__":
    outcome = _TASKS[sys.argv[1]](**json.loads(sys.argv[2]))
    # The clock is read where the task has ended, before anything is closed.
    print(json.dumps({**outcome, "ended": time.time()}))
    sys.stdout.flush()
    os._exit(0)
