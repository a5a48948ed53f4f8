"""Eight processes that write one file, with vacuum, rebuild, backup, verify and reembed in between.

Each knows what it wrote, changed and forgot. Failures: at the end a memory of one is not as it left it; a write that
had returned is not found by recall; `verify` or a backup is not clean; an error that is no RecalliteError. Locks that
last longer than the timeout are counted.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from recallite import Memory, Settings
from recallite.errors import RecalliteError
from tests.attacks import process
from tests.attacks.forking import Child
from tests.attacks.outcome import Outcome
from tests.attacks.workload import Embedder, snapshot

__all__ = ["attack"]

_WRITERS = 8
_MOST = 25
_LIMIT_S = 7_200.0
_WEIGHTS = {
    "remember": 30, "remember_many": 5, "update": 20, "forget": 10, "link": 8, "append": 8, "recall": 10,
    "vacuum": 0.4, "rebuild": 0.2, "backup": 0.4, "verify": 0.3, "reembed": 0.2, "reopen": 0.5,
}  # fmt: skip


_UPKEEP = ("vacuum", "rebuild", "backup", "verify", "reembed", "reopen")
_WORDS = ("alpha", "beta", "gamma", "delta")


def attack(tries: int, seed: int) -> Outcome:
    """Do `tries` operations, divided among eight processes."""
    return process.run(__name__, tries, seed)


def _attack(tries: int, seed: int, folder: Path) -> Outcome:
    outcome, path = Outcome("operations"), folder / "agent.db"
    writers = [
        Child(partial(_write, path, f"w{number}", seed * 100 + number, tries // _WRITERS)) for number in range(_WRITERS)
    ]
    ended = [writer.wait(_LIMIT_S) for writer in writers]
    texts: dict[str, str] = {}
    sessions: dict[str, list[str]] = {}
    figures: Counter[str] = Counter()
    for number, end in enumerate(ended):
        if end.value is None:
            kind = "hung" if end.hung else "crash" if end.signal else "untyped"
            outcome.fail(kind, f"writer {number}: {(end.error or f'signal {end.signal}')[-600:]}")
            continue
        for kind, what in end.value["failures"]:
            outcome.fail(kind, f"writer {number}, seed {seed}: {what}")
        outcome.tries += end.value["operations"]
        texts |= end.value["texts"]
        sessions |= end.value["sessions"]
        figures.update(end.value["figures"])
    with Memory(path, embedder=Embedder()) as memory:
        found = snapshot(memory)
        for problem in memory.store.verify().problems:
            outcome.fail("half done", f"verify at the end: {problem}")
    held = {key: each["versions"][-1] for key, each in found["texts"].items()}
    if all(end.value is not None for end in ended):
        for key in sorted({key for key in held.keys() | texts.keys() if held.get(key) != texts.get(key)}):
            outcome.fail("lost", f"{key} reads {held.get(key)!r:.80} and was left as {texts.get(key)!r:.80}")
        for name in sorted({name for name in sessions if found["sessions"].get(name) != sessions[name]}):
            outcome.fail("lost", f"session {name} is not what was said")
    outcome.figures = {name: float(count) for name, count in sorted(figures.items())}
    return outcome


def _write(path: Path, name: str, seed: int, operations: int) -> dict[str, Any]:
    writer = _Writer(path, name, seed)
    for number in range(operations):
        verb = writer.chance.choices([*_WEIGHTS], [*_WEIGHTS.values()])[0]
        writer.number = number
        try:
            getattr(writer, verb)()
            if verb in _UPKEEP:
                writer.figures[verb] += 1
        except RecalliteError as error:
            if error.reason == "locked":
                writer.figures["locked"] += 1
                continue
            writer.fail("wrong", f"{verb}: {type(error).__name__}: {error}")
        except Exception as error:
            writer.fail("untyped", f"{verb}: {type(error).__name__}: {error}")
    writer.memory.close()
    return {
        "failures": writer.failures, "operations": operations, "texts": writer.texts, "sessions": writer.sessions,
        "figures": writer.figures,
    }  # fmt: skip


class _Writer:
    """One process: what it has left in the file."""

    def __init__(self, path: Path, name: str, seed: int) -> None:
        self.path, self.name, self.chance, self.number = path, name, random.Random(seed), 0
        self.texts: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.sessions: dict[str, list[str]] = {}
        self.figures: Counter[str] = Counter()
        self.failures: list[tuple[str, str]] = []
        self.memory = self._open()

    def _open(self) -> Memory:
        durability = "full" if self.chance.random() < 0.5 else "normal"
        return Memory(self.path, embedder=Embedder(), settings=Settings(durability=durability, busy_timeout_ms=60_000))

    def fail(self, kind: str, what: str) -> None:
        self.failures.append((kind, f"operation {self.number}, {what}"))

    def _text(self, key: str) -> str:
        return f"{key} says number{self.number} {' '.join(self.chance.choices(_WORDS, k=9))}"

    def _one(self) -> str | None:
        return self.chance.choice(sorted(self.texts)) if self.texts else None

    def remember(self) -> None:
        key = f"{self.name}n{self.number}"
        text = self._text(key)
        self.ids[key] = self.memory.remember(text, metadata={"key": key}).id
        self.texts[key] = text
        if len(self.texts) > _MOST:
            self.forget()

    def remember_many(self) -> None:
        keys = [f"{self.name}n{self.number}i{place}" for place in range(6)]
        texts = [self._text(key) for key in keys]
        items = [{"text": text, "metadata": {"key": key}} for key, text in zip(keys, texts, strict=True)]
        self.ids |= zip(keys, self.memory.remember_many(items), strict=True)
        self.texts |= zip(keys, texts, strict=True)

    def update(self) -> None:
        if (key := self._one()) is not None:
            text = self._text(key)
            self.memory.update(self.ids[key], text=text)
            self.texts[key] = text

    def forget(self) -> None:
        if (key := self._one()) is not None:
            self.memory.forget(self.ids[key])
            del self.texts[key], self.ids[key]

    def link(self) -> None:
        first, second = self._one(), self._one()
        if first is not None and second is not None and first != second:
            self.memory.link(self.ids[first], self.ids[second])

    def append(self) -> None:
        name, message = f"{self.name}s{self.chance.randrange(3)}", f"message {self.number}"
        self.memory.sessions.open(name).append("user", message)
        self.sessions.setdefault(name, []).append(message)

    def recall(self) -> None:
        if (key := self._one()) is not None:
            hits = self.memory.recall(key, mode="keyword", limit=3)
            if self.texts[key] not in [hit.text for hit in hits]:
                self.fail("wrong", f"recall of {key} finds {[hit.text[:30] for hit in hits]}")

    def vacuum(self) -> None:
        self.memory.store.vacuum()

    def rebuild(self) -> None:
        self.verified(self.memory.store.rebuild().problems)

    def verify(self) -> None:
        self.verified(self.memory.store.verify().problems)

    def verified(self, problems: tuple[Any, ...]) -> None:
        for problem in problems:
            self.fail("half done", f"verify: {problem}")

    def backup(self) -> None:
        copy = Path(self.memory.store.backup(self.path.with_name(f"{self.name}-copy.db")))
        with Memory(copy, embedder=Embedder(), settings=Settings(index_snapshot=False)) as held:
            self.verified(held.store.verify().problems)
            texts = snapshot(held)["texts"]
            wrong = [
                key for key, text in self.texts.items() if texts.get(key, {"versions": [""]})["versions"][-1] != text
            ]
            if wrong:
                self.fail("lost", f"the backup lacks {wrong[:3]}")
        for path in copy.parent.glob(f"{copy.name}*"):
            path.unlink()

    def reembed(self) -> None:
        self.memory.store.reembed()

    def reopen(self) -> None:
        self.memory.close()
        self.memory = self._open()


if __name__ == "__main__":
    process.answer(_attack)
