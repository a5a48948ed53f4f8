"""How much of Python a warm recall runs: what grows here costs every agent at every step."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from recallite import Memory
from recallite.model.records import NewRecord
from tests.conftest import PLAIN

MOST_CALLS, MOST_FILES = 175, 45
# The view of the index is made again; nothing is read of what was written.
MOST_CALLS_AFTER_A_WRITE = 250


def calls_of(memory, vector):
    """The calls of a recall by file, without the stages of the Python kernels: the compiled kernel is one call."""
    calls = Counter()

    def count(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and "recallite" in file and "recallite_kernels" not in file:
            calls[file] += 1

    sys.setprofile(count)
    try:
        memory.recall("which note has many words", vector=vector)
    finally:
        sys.setprofile(None)
    return calls


def test_a_warm_recall_makes_few_calls(tmp_path):
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((62, 16)).astype(np.float32)
    with Memory(tmp_path / "agent.db", settings=PLAIN) as memory:
        memory.remember_many(
            [{"text": f"note {n} of many words", "vector": each} for n, each in enumerate(vectors[:60])]
        )
        for _ in range(3):
            assert len(memory.recall("which note has many words", vector=vectors[3])) == 10
        plain = calls_of(memory, vectors[3])
        assert sum(plain.values()) <= MOST_CALLS, plain.most_common(20)
        assert len(plain) <= MOST_FILES, sorted(plain)
        for number in (60, 61):
            memory.remember(NewRecord(f"note {number} of many words", vector=vectors[number]))
            after = calls_of(memory, vectors[number])
        assert sum(after.values()) <= MOST_CALLS_AFTER_A_WRITE, after.most_common(20)
