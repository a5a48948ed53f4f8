"""How much of Python a warm recall runs: what grows here costs every agent at every step."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from recallite import Memory
from tests.conftest import PLAIN

MOST_CALLS, MOST_FILES = 175, 45


def test_a_warm_recall_makes_few_calls(tmp_path):
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((60, 16)).astype(np.float32)
    with Memory(tmp_path / "agent.db", settings=PLAIN) as memory:
        memory.remember_many([{"text": f"note {n} of many words", "vector": each} for n, each in enumerate(vectors)])
        for _ in range(3):
            assert len(memory.recall("which note has many words", vector=vectors[3])) == 10
        calls = Counter()

        def count(frame, event, _):
            if event == "call" and "recallite" in frame.f_code.co_filename:
                calls[frame.f_code.co_filename] += 1

        sys.setprofile(count)
        try:
            memory.recall("which note has many words", vector=vectors[3])
        finally:
            sys.setprofile(None)
    # The stages of the Python kernels are many calls; the compiled kernel is one.
    engine = {file: number for file, number in calls.items() if "recallite_kernels" not in file}
    assert sum(engine.values()) <= MOST_CALLS, calls.most_common(20)
    assert len(engine) <= MOST_FILES, sorted(engine)
