"""What must hold of a folder that work was stopped in, wherever that was."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recallite import Memory, Settings
from tests.attacks.outcome import Outcome
from tests.attacks.workload import Embedder, Hands, State, snapshot

__all__ = ["Checked", "check_after", "check_folder", "difference"]

_KEPT = ("agent.db", "agent.db-wal", "agent.db-shm", "agent.db-index", "export.jsonl")


class Checked(NamedTuple):
    """Which of the states the store is in (None: none of them), and what is wrong: (kind of failure, what)."""

    at: int | None
    problems: list[tuple[str, str]]
    state: State


def check_folder(folder: Path, expected: Sequence[State], whole: Sequence[State]) -> Checked:
    """Open what work left in `folder` and check it: the store is in one of the states `expected`.

    Copies and exports, where they stand under their names, are in one of `whole`. What is left over goes with the
    next work of the same kind.
    """
    problems: list[tuple[str, str]] = []
    hands = Hands(folder)
    memory = hands.memory
    found = snapshot(memory)
    at = next((place for place, state in enumerate(expected) if state == found), None)
    if at is None:
        kind = "lost" if any(state == found for state in whole) else "half done"
        problems.append((kind, difference(found, expected)))
    checked = memory.store.verify()
    problems += [("half done", f"verify: {problem}") for problem in checked.problems]
    chance = random.Random(len(found["texts"]))
    current = sorted(found["texts"].keys() - {old for old, _ in found["superseded"]})
    for key in chance.sample(current, min(2, len(current))):
        text = found["texts"][key]["versions"][-1]
        if text not in [hit.text for hit in memory.recall(text.split()[0], mode="keyword", limit=5)]:
            problems.append(("wrong", f"recall does not find {text[:40]!r}"))
    problems += _of_copies(hands, whole)
    problems += _of_notes(hands)
    hands.close()
    problems += _of_debris(folder)
    return Checked(at, problems, found)


def check_after(
    outcome: Outcome, hands: Hands, state: State, after: Sequence[State], raised: BaseException | None, where: str
) -> State:
    """Check what an operation from `state` over the states `after` has left, which raised or not; the state it is in.

    All of it is done, or nothing, or the first batches of it where it raised; and `hands` work.
    """
    if hands.memory._engine.store.closed:
        hands.reopen()
    try:
        found = snapshot(hands.memory)
    except Exception as error:
        outcome.fail("wrong", f"the handle does not work: {type(error).__name__}: {error}, after {where}")
        hands.reopen()
        found = snapshot(hands.memory)
    if found not in ([after[-1]] if raised is None else [state, *after]):
        outcome.fail("half done", f"{difference(found, [state, *after])}: {where}")
    elif raised is not None and found == after[-1] and found != state:
        outcome.fail("wrong", f"done, though it raised: {where}")
    return found


def difference(found: State, expected: Sequence[State]) -> str:
    """In which parts a state differs from the nearest of those expected."""

    def parts(state: State) -> list[str]:
        return [
            f"{part} {key}: {json.dumps(value)[:120]}"
            for part, held in state.items()
            for key, value in (held.items() if isinstance(held, dict) else ((str(each), "") for each in held))
        ]

    mine = set(parts(found))
    near = min((set(parts(state)) for state in expected), key=lambda other: len(mine ^ other))
    return f"more: {sorted(mine - near)[:3]}, less: {sorted(near - mine)[:3]}"


def _of_copies(hands: Hands, whole: Sequence[State]) -> list[tuple[str, str]]:
    problems = []
    for path in sorted(hands.copies.glob("backup-*.db")):
        with Memory(path, embedder=Embedder(), settings=Settings(index_snapshot=False)) as copy:
            if snapshot(copy) not in whole or copy.store.verify().problems:
                problems.append(("half done", f"the backup {path.name} is not a state of the store"))
        for each in hands.copies.glob(path.name + "*"):
            each.unlink()
    exported = hands.copies / "export.jsonl"
    if exported.exists():
        # Sessions are not exported.
        known = [{**state, "sessions": {}} for state in whole]
        with Memory(":memory:", settings=Settings(embedder="none")) as empty:
            if snapshot(empty, exported.read_text()) not in known:
                problems.append(("half done", "the export is not a state of the store"))
    return problems


def _of_notes(hands: Hands) -> list[tuple[str, str]]:
    """The index of a workspace says what the files say, however the last run ended."""
    files = {path.name: path.read_text() for path in (hands.notes / "memory").iterdir()}
    if not files:
        return []
    hands.workspace.index()
    problems = []
    indexed = sorted(Path(info.path).name for info in hands.workspace.files())
    if indexed != sorted(files):
        problems.append(("lost", f"{sorted(files)} are there, {indexed} are indexed"))
    for name, text in files.items():
        mark = text.split()[1] if text.startswith("# ") else ""
        results = hands.workspace.search(mark, strategy="keyword", min_score=0.0)
        if mark and name not in [Path(result.path).name for result in results]:
            problems.append(("lost", f"{mark} of {name} is not found"))
    if results := hands.workspace.folder.joinpath(".recallite").glob("index.db.damaged*"):
        problems += [("wrong", f"a healthy index was taken for damaged: {path.name}") for path in results]
    return problems


def _of_debris(folder: Path) -> list[tuple[str, str]]:
    """Files that are left over, though the same work was done again long after."""
    if not _left_over(folder):
        return []
    long_ago = time.time() - 86_400
    for path in _left_over(folder):
        os.utime(path, (long_ago, long_ago))
    hands = Hands(folder)
    for name in {path.name.lstrip(".").partition(".db")[0] for path in _left_over(hands.copies)}:
        if name.startswith("backup-"):
            hands.memory.store.backup(hands.copies / f"{name}.db")
    hands.memory.transfer.export(hands.copies / "export.jsonl")
    hands.memory.transfer.export_folder(hands.copies / "markdown")
    # A purge removes what was being written of a snapshot.
    hands.memory.forget(hands.memory.remember("one more", metadata={"key": "more"}).id)
    hands.close()
    problems = [("leak", f"{path.name} stays for good") for path in _left_over(folder)]
    for path in hands.copies.glob("*backup-*"):
        path.unlink()
    return problems


def _left_over(folder: Path) -> list[Path]:
    """What is not known by name, but for the files of the folder export and of the workspace, which have owners."""
    found = [*folder.glob("*"), *folder.glob("copies/*"), *folder.glob("copies/markdown/**/*.part")]
    return [
        path for path in found
        if path.is_file() and path.name not in _KEPT and not (path.name.startswith("backup-") and path.suffix == ".db")
    ]  # fmt: skip
