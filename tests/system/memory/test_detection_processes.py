"""What a write finds out: a statement that is repeated, superseded or contradicted by the new one."""

from __future__ import annotations

from recallite import Memory
from tests.unit.core.memory.support import PLAIN, Other

OSLO, BERGEN, ROME = (f"Dana lives in {place} now" for place in ("Oslo", "Bergen", "Rome"))


# ── supersession ───────────────────────────────────────────────────────────────────────────────────────────────────


# ── contradictions ─────────────────────────────────────────────────────────────────────────────────────────────────


# ── duplicates ─────────────────────────────────────────────────────────────────────────────────────────────────────


# ── where it looks ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_another_process_has_written_is_superseded(path):
    with Other(path) as other:
        old = other(f'memory.remember("{OSLO}").id')
        with Memory(path, settings=PLAIN) as memory:
            assert memory.remember(BERGEN).supersedes == (old,)
            assert other(f'memory.remember("{BERGEN}").outcome') == "duplicate"
