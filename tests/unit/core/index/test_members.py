"""Members of sources are in the same order, whether their runs are sorted or each of them."""

from __future__ import annotations

import numpy as np
import pytest

from recallite.index.table import _by_chain


@pytest.mark.parametrize("shuffled", ["nothing", "sources", "members"])
def test_members_are_ordered_by_chain_position_and_id(shuffled):
    generator = np.random.default_rng(5)
    names = generator.permutation(30) if shuffled == "sources" else np.arange(30)
    sources = np.repeat(names, generator.integers(1, 9, 30)).astype(np.int64)
    positions = generator.integers(0, 3, len(sources)) if shuffled == "members" else np.full(len(sources), 4)
    ids = np.arange(1, len(sources) + 1)
    if shuffled == "members":
        generator.shuffle(sources)
    order = _by_chain(sources, positions, ids)
    wanted = sorted(range(len(sources)), key=lambda place: (sources[place], positions[place], ids[place]))
    assert order.tolist() == wanted


def test_no_members_have_no_order():
    nothing = np.empty(0, dtype=np.int64)
    assert not len(_by_chain(nothing, nothing, nothing))
