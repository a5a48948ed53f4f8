"""The memory of a recall's kernel, which is used again while records are added."""

from __future__ import annotations

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.index.vectors import ALIKE, shortlist_size
from recallite.model.records import NewRecord
from recallite.recall import plan as planning
from recallite.system.numerics import kernels
from tests.unit.core.memory.support import ONLY_STORES


@pytest.fixture
def called(monkeypatch):
    """The views, plans and memory that the kernel was called with."""
    calls = []
    plain = kernels.recall

    def recall(view, plan, asking, work, hits, **options):
        calls.append((view, plan, asking, work, hits))
        return plain(view, plan, asking, work, hits, **options)

    monkeypatch.setattr(planning, "_memories", type(planning._memories)())
    monkeypatch.setattr(kernels, "recall", recall)
    return calls


def shapes(work):
    return {name: array.shape for name, array in work._asdict().items()}


@pytest.mark.parametrize("before", [30, 4094, 5000])
@pytest.mark.parametrize("profile", ["default", "hermes"])
def test_the_memory_of_a_kernel_grows_with_the_records(tmp_path, called, before, profile):
    """A wrong shape would let the compiled kernel write past an end."""
    vectors = np.random.default_rng(0).standard_normal((before + 4, 16)).astype(np.float32)
    chosen = Settings(embedder="none", durability="normal", profile=profile, write=ONLY_STORES)
    with Memory(tmp_path / "agent.db", settings=chosen) as memory:
        memory.remember_many([{"text": f"note {n}", "vector": each} for n, each in enumerate(vectors[:before])])
        for number in range(4):
            memory.recall("which note", vector=vectors[0])
            memory.remember(NewRecord(f"another note of {number}", vector=vectors[before + number]))
        memory.recall("which note", vector=vectors[0], scope="/nowhere")
        memory.recall("which note", vector=vectors[0])
    for view, plan, asking, work, hits in called:
        questions, words, tokens = len(asking.counting), len(work.word_order), len(work.token_weights)
        fresh = kernels.workspace(view, plan, questions, words, tokens, work.beside.shape[1])
        assert shapes(work) == shapes(fresh)
        assert shapes(hits) == shapes(kernels.hits(plan, work, questions, len(hits.idf), hits.contained.shape[2]))
    first_of_view = {len(call[0].terms.lengths): id(call[3].table) for call in reversed(called)}
    if before > kernels.SCAN_ALL + 800:  # the first write adds a segment of words
        assert len({first_of_view[before + number] for number in (1, 2, 3)}) == 1


def test_the_shortlist_is_alike_up_to_a_size():
    for wanted in (1, 50, 500):
        assert shortlist_size(ALIKE, wanted) == shortlist_size(1, wanted) == shortlist_size(ALIKE - 1, wanted)
    assert shortlist_size(2 * ALIKE, 1) > shortlist_size(ALIKE, 1)
