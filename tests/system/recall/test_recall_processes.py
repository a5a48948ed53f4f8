"""What recall returns: order, limits, grouping, budgets, thresholds, modes, and what it refuses."""

from __future__ import annotations

import pytest

from recallite import Memory
from tests.unit.core.memory.support import PLAIN, run, unit

_ANSWERS = """
import sys
import numpy as np
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none")) as memory:
    assert memory.store.stats().kernels == sys.argv[2], memory.store.stats()
    for seed in range(3):
        vector = np.random.default_rng(seed).normal(size=16)
        for options in (
            {}, {"profile": {"fusion": "rrf"}}, {"profile": {"mmr_lambda": 0.5}}, {"diversify_by": "one_per_source"},
            {"mode": "keyword"},
        ):
            hits = memory.recall("apple berry", vector=vector, limit=30, as_of="2026-06-01T00:00:00Z", **options)
            print([(hit.id, hit.score, hit.confidence) for hit in hits])
"""


def test_both_kernel_backends_give_the_same_hits(path):
    pytest.importorskip("numba")
    words = ["apple", "berry", "cherry", "date"]
    with Memory(path, settings=PLAIN) as memory:
        memory.remember_many(
            {
                "text": " ".join(words[(number * step) % 4] for step in (1, 2, 3)) + f" number{number}",
                "vector": unit(number),
                "source": f"s{number % 50}",
                "position": number,
                "created_at": f"2026-0{1 + number % 5}-01T00:00:00Z",
                "importance": (number % 11) / 10,
            }
            for number in range(4500)
        )
    jit = "from recallite_kernels import warmup; warmup()\n" + _ANSWERS
    compiled = run(jit, path, "numba", RECALLITE_KERNELS="numba").splitlines()
    plain = run(_ANSWERS, path, "python", RECALLITE_KERNELS="python").splitlines()
    assert len(compiled) == len(plain) == 15
    for ours, theirs in zip(map(eval, compiled), map(eval, plain), strict=True):
        assert [score for _, score, _ in ours] == pytest.approx([score for _, score, _ in theirs], abs=1e-5)
        assert [sure for *_, sure in ours] == pytest.approx([sure for *_, sure in theirs], abs=1e-4)
        for place in range(len(ours) - 1):
            before = 1.0 if place == 0 else ours[place - 1][1] - ours[place][1]
            after = ours[place][1] - ours[place + 1][1]
            if before > 1e-5 and after > 1e-5:
                assert ours[place][0] == theirs[place][0]
