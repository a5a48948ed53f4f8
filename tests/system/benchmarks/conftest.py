from __future__ import annotations

import pytest

from recallite import Memory
from tests.system.benchmarks.letters import Letters


@pytest.fixture
def open_memory():
    return lambda: Memory(":memory:", embedder=Letters())
