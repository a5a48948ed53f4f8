"""The asynchronous API shows its types: mypy reads typed_calls.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


def test_mypy_sees_the_types_of_the_async_api():
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "tests/unit/core/aio/typed_calls.py"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
