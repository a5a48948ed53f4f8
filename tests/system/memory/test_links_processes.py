"""Links: made and removed, listed from both ends, walked along."""

from __future__ import annotations

from recallite import Memory
from tests.unit.core.memory.support import PLAIN, Other, scored, unit


def test_a_recall_spreads_no_longer_along_a_removed_link(on_disk):
    """In the index of this process, and of another that had it loaded."""
    ids = on_disk.remember_many([{"text": f"text {n}", "vector": unit(n)} for n in range(8)])
    on_disk.link(ids[0], ids[7])
    before = on_disk.recall("text", vector=unit(0))
    with Other(on_disk.path) as other:
        other(f"memory.recall('text', vector={unit(0).tolist()}) and 1")
        other(f"memory.unlink('{ids[0]}', '{ids[7]}')")
        theirs = other(f"[(hit.id, round(hit.score, 5)) for hit in memory.recall('text', vector={unit(0).tolist()})]")
        after = on_disk.recall("text", vector=unit(0))
        assert "link" in next(hit for hit in before if hit.id == ids[7]).match_reasons
        assert "link" not in next(hit for hit in after if hit.id == ids[7]).match_reasons
        assert scored(after) != scored(before)
        with Memory(on_disk.path, settings=PLAIN) as fresh:
            assert scored(fresh.recall("text", vector=unit(0))) == scored(after) == theirs
