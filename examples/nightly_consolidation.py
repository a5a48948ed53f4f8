"""A nightly job: fade old episodes, store lasting facts of new ones, purge expired memories, make a backup.

Run it from cron or a systemd timer while agents use the same file. A function extracts the facts, so the program runs
offline; with `Memory(path, language_model=...)` and `extract=True` a language model does it.

Output:

    night 1: 3 new episodes, 2 facts, 0 pruned, 0 expired
    night 2: 1 new episodes, 1 facts, 0 pruned, 1 expired
    What holds: Billing now runs on port 8085
    Known before: Billing runs on port 8080
    The backup answers: Billing now runs on port 8085
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from recallite import Memory
from recallite.agents.consolidation import Fact
from recallite.model.records import Record

MARK = "learned: "


def lasting_facts(episodes: Sequence[Record]) -> list[Fact]:
    """Return the lasting facts of the episodes: the texts after the mark."""
    return [
        Fact(content=text, episodes=(episode.id,))
        for episode in episodes
        for _, mark, text in [episode.text.partition(MARK)]
        if mark
    ]


def nightly(memory: Memory, backup: Path) -> str:
    """Run the job and return a line about it."""
    cycle = memory.consolidator.run("ada", extract=lasting_facts)
    expired = memory.store.purge_expired()
    memory.store.backup(backup)
    done = f"{cycle.replayed} new episodes, {cycle.promoted} facts, {cycle.pruned} pruned, {expired.records} expired"
    if cycle.error is not None:  # the next night reads these episodes again
        done += f"; no facts: {cycle.error}"
    return done


def main() -> None:
    """Run two days of an agent, with a night after each."""
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "agent.db") as memory:
        log = memory.episodes.log
        log(f"deployed billing; {MARK}Billing runs on port 8080", event_type="task-completed", agent="ada")
        log(f"read the runbook; {MARK}Deploys need two approvals", event_type="task-completed", agent="ada")
        log("lunch was late", event_type="observation", agent="ada")
        print("night 1:", nightly(memory, Path(folder) / "monday.db"))

        log(f"moved billing; {MARK}Billing now runs on port 8085", event_type="task-completed", agent="ada")
        memory.remember("Bo is at the dentist", expires_at=timedelta(microseconds=1))
        print("night 2:", nightly(memory, Path(folder) / "tuesday.db"))

        (now,) = memory.recall("Which port does billing use?", kinds=["memory"], limit=1)
        print("What holds:", now.text)
        print("Known before:", now.supersedes[0].text)
        with Memory(Path(folder) / "tuesday.db") as copy:
            (hit,) = copy.recall("Which port does billing use?", kinds=["memory"], limit=1)
            print("The backup answers:", hit.text)


if __name__ == "__main__":
    main()
