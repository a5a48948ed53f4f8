"""What a write does besides storing: topics and merging, duplicates, recalled text, contradictions, links."""

from __future__ import annotations

from recallite import Memory
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from tests.unit.core.memory.support import PLAIN, Other

RECALLED = WritePolicy(recognise_recalled=True)
LINKS = WritePolicy(link_cosine=0.85)


# ── topics and merge strategies ────────────────────────────────────────────────────────────────────────────────────


# ── duplicates ─────────────────────────────────────────────────────────────────────────────────────────────────────


# ── recalled text ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_recalled_text_is_recognised_in_another_process(path):
    with Other(path) as other:
        other('memory.remember("Alice likes green tea.", context="Alice").id')
        with Memory(path, settings=PLAIN) as memory:
            assert memory.remember("- Alice likes green tea", policy=RECALLED).outcome == "duplicate"


# ── contradictions ─────────────────────────────────────────────────────────────────────────────────────────────────


# ── junk ───────────────────────────────────────────────────────────────────────────────────────────────────────────


# ── links ──────────────────────────────────────────────────────────────────────────────────────────────────────────


# ── how neighbours are found ───────────────────────────────────────────────────────────────────────────────────────


def test_neighbours_that_another_process_has_written_are_seen(path):
    with Memory(path, settings=PLAIN) as memory, Other(path) as other:
        memory.remember(NewRecord("mine", vector=[1.0, 0.0]), policy=LINKS)
        theirs = other('memory.remember(NewRecord("theirs", vector=[1.0, 0.1])).id')
        assert theirs in [
            link.target for link in memory.remember(NewRecord("new", vector=[1.0, 0.0]), policy=LINKS).links
        ]
        other(f'memory.forget("{theirs}").records')
        assert theirs not in [
            link.target for link in memory.remember(NewRecord("newer", vector=[1.0, 0.0]), policy=LINKS).links
        ]


def test_of_two_processes_that_write_a_text_at_once_one_stores_it(path):
    with Other(path) as one, Other(path) as other:
        for process in (one, other):
            process("exec('from recallite.model.settings import WritePolicy as P', globals())")
        for turn in range(5):
            call = f'memory.remember(NewRecord("text {turn}", vector=[1.0, {turn}.0]), policy=P()).outcome\n'
            for process in (one, other):
                process.process.stdin.write(call)
                process.process.stdin.flush()
            assert sorted(eval(each.process.stdout.readline()) for each in (one, other)) == ["created", "duplicate"]


# ── many at once ───────────────────────────────────────────────────────────────────────────────────────────────────
