"""Asks a store the same questions in a process of its own."""

from __future__ import annotations

import json
import sys

from benchmarks.agents.life import ask
from benchmarks.isolated_process import finish

if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    finish({"answers": ask(given["path"], given["questions"])})
