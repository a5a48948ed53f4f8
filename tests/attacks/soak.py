"""An agent's life in one process for hours: every verb in turn, some sixty calls a second.

The number of memories stays within bounds, so memory, descriptors, threads and the file must too. A model in a dict
knows every text that was acknowledged. Failures: a leak (anonymous memory grows by 1 MB an hour or more; descriptors,
threads, scratch files or the vacuumed file grow), a text that is lost or wrong, a `verify` that is not clean, an error.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks import isolated_process
from recallite import Memory, Settings, Workspace, tools
from recallite.model.settings import Consolidation
from tests.attacks.outcome import Outcome

__all__ = ["attack"]

MOST_MEMORIES = 1_500
_PAUSE_S = 0.01
_SAMPLE_EVERY_S = 10.0
# A shorter run has too few samples to tell growth from the allocator's steps.
_LEAST_S_FOR_SLOPE = 1_800
_WORDS = [
    f"{first}{last}" for first in ("ba", "ko", "mi", "ru", "te", "sa", "lo") for last in ("ren", "dal", "tis", "mok")
]
_AGENTS = tuple(f"agent-{number}" for number in range(6))


def attack(tries: int, seed: int) -> Outcome:
    """Live for `tries` seconds in a process of its own."""
    arguments = {"seconds": tries, "seed": seed}
    try:
        told = isolated_process.run("tests.attacks.soak", arguments, tries * 2 + 600)
    except isolated_process.DidNotFinish:
        outcome = Outcome("seconds", tries)
        outcome.fail("hung", f"the process did not end, seed {seed}")
        return outcome
    except isolated_process.Failed as failed:
        outcome = Outcome("seconds", tries)
        outcome.fail("crash", f"{failed}, seed {seed}")
        return outcome
    outcome = Outcome("seconds", tries, figures=told["figures"])
    for kind, what in told["failures"]:
        outcome.fail(kind, what)
    return outcome


class _Life:
    """One agent's file, its folder of notes, and what must be in them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.failures: list[tuple[str, str]] = []
        self.texts: dict[str, str] = {}
        self.notes: dict[str, str] = {}
        self.documents: list[str] = []
        self.calls = 0
        self.vacuumed_bytes: list[int] = []
        (folder / "notes").mkdir()
        self.settings = Settings(embedder="instant", consolidation=Consolidation())
        self.memory = self._open()
        self.workspace = Workspace(folder / "notes", embedder="instant")
        self.verbs: list[tuple[float, Callable[[], None]]] = [
            (25, self.remember), (2, self.remember_many), (28, self.recall), (8, self.recall_scoped), (6, self.update),
            (3, self.link), (6, self.session), (5, self.episode), (2, self.procedure), (2, self.experience),
            (1, self.document), (1, self.bootstrap), (3, self.tool), (1, self.explain), (3, self.read),
            (3, self.note), (1, self.working), (0.1, self.transfer), (0.05, self.backup), (0.03, self.vacuum),
            (0.05, self.check), (0.1, self.reopen), (0.02, self.rebuild), (0.1, self.forget_agent),
        ]  # fmt: skip

    def step(self) -> None:
        """One call, chosen by weight."""
        weights = [weight for weight, _ in self.verbs]
        verb = self.random.choices(self.verbs, weights)[0][1]
        try:
            verb()
        except Exception as fault:
            self.failures.append(
                ("untyped", f"{verb.__name__} after {self.calls} calls: {type(fault).__name__}: {fault}")
            )
        self.calls += 1

    def close(self) -> None:
        self.memory.close()
        self.workspace.close()

    def sentence(self) -> str:
        return f"{' '.join(self.random.choices(_WORDS, k=self.random.randrange(4, 30)))} {self.random.randrange(2_000)}"

    def one(self) -> str | None:
        return self.random.choice(list(self.texts)) if self.texts else None

    def remember(self) -> None:
        text = self.sentence()
        scope = f"/team/{self.random.randrange(8)}"
        self.texts[self.memory.remember(text, scope=scope, tags=[self.random.choice(_WORDS)]).id] = text
        self.trim()

    def remember_many(self) -> None:
        texts = [self.sentence() for _ in range(20)]
        for id, text in zip(self.memory.remember_many(texts), texts, strict=True):
            self.texts[id] = text
        self.trim()

    def trim(self) -> None:
        gone = list(self.texts)[: max(0, len(self.texts) - MOST_MEMORIES)]
        if gone:
            self.memory.forget(gone)
            for id in gone:
                del self.texts[id]

    def recall(self) -> None:
        self.of_ours(self.memory.recall(self.sentence(), limit=10, scope=self.random.choice((None, "/team/3"))))

    def recall_scoped(self) -> None:
        scoped = self.memory.scoped(f"/team/{self.random.randrange(8)}")
        for hits in scoped.recall_many([self.sentence() for _ in range(3)], profile={"min_confidence": 0.1}):
            self.of_ours(hits)

    def of_ours(self, hits: Any) -> None:
        for hit in hits:
            if hit.kind == "memory" and self.texts.get(hit.id) not in (None, hit.text):
                self.failures.append(("wrong", f"{hit.id} reads {hit.text!r}"))

    def update(self) -> None:
        if (id := self.one()) is not None:
            text = self.sentence()
            self.memory.update(id, text=text, importance=self.random.random())
            self.texts[id] = text
            if len(self.memory.history(id)) > 4:
                self.memory.forget(id)
                del self.texts[id]

    def link(self) -> None:
        first, second = self.one(), self.one()
        if first is not None and second is not None and first != second:
            self.memory.link(first, second, strength=self.random.random())
            self.memory.neighbors(first, depth=2)

    def session(self) -> None:
        agent = self.random.choice(_AGENTS)
        session = self.memory.sessions.open(f"s{self.random.randrange(20)}", agent=agent)
        session.append("user", self.sentence())
        self.memory.sessions.search(self.random.choice(_WORDS), agent=agent)
        if len(session.messages()) > 30:
            session.end()

    def episode(self) -> None:
        self.memory.episodes.log(self.sentence(), agent=self.random.choice(_AGENTS))

    def procedure(self) -> None:
        name, agent = f"way {self.random.randrange(5)}", self.random.choice(_AGENTS)
        if self.random.random() < 0.2:
            self.memory.forget(scope=f"/agents/{agent}", kinds=["procedure"])
        self.memory.procedures.save(name, self.sentence(), agent=agent)
        self.memory.procedures.record_outcome(name, self.random.random() < 0.7, agent=agent)

    def experience(self) -> None:
        agent = self.random.choice(_AGENTS)
        self.memory.experience.record(task_type="query", tools=[self.random.choice(_WORDS)], success=True, agent=agent)
        self.memory.experience.tips("query", agent=agent)

    def document(self) -> None:
        text = "\n\n".join(f"# {self.sentence()}\n\n{self.sentence()}" for _ in range(5))
        name = f"paper-{self.random.randrange(10)}.md"
        self.memory.knowledge.ingest(text.encode(), name=name)
        self.memory.knowledge.search(self.sentence())
        found = self.memory.knowledge.list()
        if len(found) > 6:
            self.memory.knowledge.delete(found[0].id)

    def bootstrap(self) -> None:
        self.memory.bootstrap(self.random.choice(_AGENTS), self.sentence(), 400)

    def tool(self) -> None:
        arguments = {"action": "recall", "query": self.sentence()}
        tools.call("memory", arguments, memory=self.memory, scope="/team/1")

    def explain(self) -> None:
        if (id := self.one()) is not None:
            self.memory.review.explain(self.sentence(), id)

    def read(self) -> None:
        if (id := self.one()) is not None and self.memory.get(id).text != self.texts[id]:
            self.failures.append(("wrong", f"get({id!r})"))
        self.memory.list(limit=20)
        self.memory.store.stats()

    def note(self) -> None:
        name = f"note-{self.random.randrange(40)}.md"
        self.notes[name] = f"# {self.sentence()}\n\n{self.sentence()}\n"
        (self.folder / "notes" / name).write_text(self.notes[name], encoding="utf-8")
        self.workspace.search(self.sentence())

    def working(self) -> None:
        agent = self.memory.working.agent(self.random.choice(_AGENTS))
        agent.add(self.sentence(), importance=self.random.random())
        agent.save()

    def transfer(self) -> None:
        file = self.folder / "all.jsonl"
        self.memory.transfer.export(file, scope="/team")
        with Memory(":memory:", settings=Settings(embedder="none")) as other:
            other.transfer.import_(file)
        file.unlink()

    def backup(self) -> None:
        copy = self.folder / "copy.db"
        self.memory.store.backup(copy)
        with Memory(copy, settings=self.settings) as other:
            if {each.id: each.text for each in other.list(kinds=["memory"], limit=None)} != self.texts:
                self.failures.append(("lost", f"a backup after {self.calls} calls differs"))
        for each in self.folder.glob("copy.db*"):
            each.unlink()

    def vacuum(self) -> None:
        self.memory.store.vacuum()
        self.vacuumed_bytes.append((self.folder / "life.db").stat().st_size)

    def check(self) -> None:
        checked = self.memory.store.verify()
        if not checked.ok:
            self.failures.append(("wrong", f"verify after {self.calls} calls: {checked.problems}"))
        if {each.id: each.text for each in self.memory.list(kinds=["memory"], limit=None)} != self.texts:
            self.failures.append(("lost", f"the list after {self.calls} calls is not what was written"))

    def reopen(self) -> None:
        self.memory.close()
        self.memory = self._open()

    def rebuild(self) -> None:
        self.memory.store.rebuild()

    def forget_agent(self) -> None:
        self.memory.forget(scope=f"/agents/{self.random.choice(_AGENTS)}")
        self.memory.sessions.cleanup(timedelta(days=1))

    def _open(self) -> Memory:
        return Memory(self.folder / "life.db", settings=self.settings)


def live(seconds: float, seed: int) -> dict[str, Any]:
    """The failures and figures of a life of so many seconds."""
    folder = Path(tempfile.mkdtemp(prefix="recallite-soak-"))
    try:
        return _live(folder, seconds, seed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _live(folder: Path, seconds: float, seed: int) -> dict[str, Any]:
    life = _Life(folder, seed)
    started = sampled = time.monotonic()
    resident: list[tuple[float, float]] = []
    held: list[tuple[int, int]] = []
    while (now := time.monotonic()) - started < seconds:
        life.step()
        time.sleep(_PAUSE_S)
        if now - sampled >= min(_SAMPLE_EVERY_S, seconds / 20):
            sampled = now
            gc.collect()
            resident.append(((now - started) / 3600, _anonymous_mb()))
            held.append(_held())
    life.vacuum()
    life.check()
    life.close()
    failures, left = life.failures, sorted(each.name for each in folder.iterdir())
    if unexpected := [name for name in left if name != "notes" and not name.startswith("life.db")]:
        failures.append(("leak", f"files left: {unexpected}"))
    settled = resident[len(resident) // 4 :]
    slope = _slope(settled)
    if seconds >= _LEAST_S_FOR_SLOPE:
        if slope >= 1:
            failures.append(("leak", f"memory grows by {slope:.2f} MB an hour"))
        begun = held[len(held) // 4 : len(held) // 2]
        for place, name in enumerate(("descriptors", "threads")):
            before, after = (max(each[place] for each in some) for some in (begun, held[-len(begun) :]))
            if after > before + 2:
                failures.append(("leak", f"{after} {name}, {before} before"))
        sizes = life.vacuumed_bytes
        if len(sizes) >= 8 and max(sizes[-2:]) > 1.25 * max(sizes[2 : len(sizes) // 2]):
            failures.append(("leak", f"the vacuumed file grows: {sizes}"))
    return {
        "failures": failures,
        "figures": {
            "calls": life.calls,
            "slope_mb_an_hour": round(slope, 2),
            "anonymous_mb": round(resident[-1][1], 1) if resident else 0.0,
        },
    }


def _slope(points: list[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs (Theil-Sen): steps of the allocator do not move it."""
    points = points[:: max(1, len(points) // 400)]
    slopes = [
        (second - first) / (end - begin)
        for place, (begin, first) in enumerate(points)
        for end, second in points[place + 1 :]
        if end > begin
    ]
    return statistics.median(slopes) if slopes else 0.0


def _anonymous_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return 0.0


def _held() -> tuple[int, int]:
    """Open descriptors and threads."""
    return len(os.listdir("/proc/self/fd")), threading.active_count()


if __name__ == "__main__":
    isolated_process.finish(live(**json.loads(sys.argv[1])))
