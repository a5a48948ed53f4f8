"""Numbers at their bounds end no process, and both backends take or refuse the same: see `boundaries`."""

from __future__ import annotations

import subprocess
import sys

from tests.limits import LAST_RESORT_SECONDS, examples

SEEDS = examples(1500)


def test_a_number_at_its_bound_is_refused_or_taken_alike_and_ends_no_process():
    ran = subprocess.run(
        [sys.executable, "-m", "tests.system.kernels.boundaries", str(SEEDS)], capture_output=True, encoding="utf-8",
        timeout=5 * LAST_RESORT_SECONDS,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2_000:]
    calls, taken = map(int, ran.stdout.split())
    assert calls > taken > calls // 3
