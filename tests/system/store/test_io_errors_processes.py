"""What the system says when a disk fails, a quota is used up or descriptors run out, told with what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from os import environ

import pytest

from tests.attacks import process, shim

# Each of (what, error of the system, calls it hits) is done on a store of its own; prints the error it raises.
_PROGRAM = """
import json, sys
from pathlib import Path
from tests.attacks.shim import Shim
from recallite import Memory, Settings
folder = Path(sys.argv[1])
told, answers = Shim(folder), []
for number, (verb, error, kind) in enumerate(json.loads(sys.argv[2])):
    path = folder / str(number) / "agent.db"
    path.parent.mkdir()
    plain = Settings(embedder="none")
    held = Memory(path, settings=plain)
    held.remember_many(f"text number {place} " + "word " * 50 for place in range(40))
    if verb == "list the checkpointed":
        held.store.vacuum()
        held.close()
    calls = {
        "remember": lambda: held.remember("one more"),
        "list": lambda: Memory(path, settings=plain).list(),
        "list the checkpointed": lambda: Memory(path, settings=plain).list(),
        "open": lambda: Memory(path, settings=plain),
        "backup": lambda: held.store.backup(folder / f"{number}-copy.db"),
    }
    told.arm("fail", kinds=[kind], error=error, for_good=True)
    try:
        calls[verb]()
        answers.append(["nothing", ""])
    except Exception as fault:
        answers.append([getattr(fault, "reason", repr(fault)), str(fault)])
    told.disarm()
    with Memory(path, settings=plain) as after:
        assert after.count() == 40 and after.store.verify().ok
print(json.dumps(answers))
"""
_EXPECTED = {
    ("remember", "EDQUOT", "write"): ("full", "quota of the disk that holds", "have the quota raised"),
    ("remember", "EFBIG", "write"): ("full", "may not be larger", "ulimit -f"),
    ("remember", "ENOSPC", "write"): ("full", "is full; the write was rolled back", "Free some space"),
    ("remember", "ENOSPC", "sync"): ("full", "is full; the write was undone, but may be there", "Free some space"),
    ("remember", "EIO", "write"): ("io", "cannot be written", "Check the disk"),
    ("remember", "EIO", "sync"): ("io", "cannot be written", "Check the disk"),
    ("list", "EIO", "read"): ("io", "cannot be read", "the file may be intact"),
    ("list the checkpointed", "EIO", "read"): ("io", "cannot be read", "the file may be intact"),
    ("open", "EMFILE", "open"): ("io", "too many open files", "ulimit -n"),
    ("backup", "EDQUOT", "write"): ("full", "quota of the disk that holds", "nothing was left of the backup"),
    ("backup", "EFBIG", "write"): ("full", "may not be larger", "nothing was left of the backup"),
    ("backup", "EIO", "write"): ("io", "cannot be written", "nothing was left of the backup"),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    if (reason := shim.missing()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("io")
    library = shim.build(folder)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder), json.dumps([*_EXPECTED])],
        env={**environ, "LD_PRELOAD": str(library), "RECALLITE_KERNELS": "python"},
        stdout=subprocess.PIPE, text=True, check=True, cwd=process.ROOT,
    )  # fmt: skip
    return dict(zip(_EXPECTED, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("case", _EXPECTED, ids="-".join)
def test_an_error_of_the_system_is_told_with_what_to_do(answers, case):
    reason, message = answers[case]
    expected, *parts = _EXPECTED[case]
    assert reason == expected, message
    for part in parts:
        assert part in message
