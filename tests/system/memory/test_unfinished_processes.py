"""What a killed export left unfinished goes with the next one; what a running one writes stays, and is private."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and modes are otherwise there")

_EXPORT_KILLED = """
import os, signal, sys
from recallite import Memory, Settings
from recallite_notes.editable import safe_folder
with Memory(sys.argv[1], settings=Settings(embedder="none")) as memory:
    if sys.argv[3] == "file":
        memory.transfer.export(sys.argv[2], on_progress=lambda done, total: os.kill(os.getpid(), signal.SIGKILL))
    else:
        safe_folder.os.link = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
        memory.transfer.export_folder(sys.argv[2])
"""


def parts(folder):
    return sorted(path for path in folder.rglob("*.part"))


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_export_left_goes_with_the_next(on_disk, tmp_path, kind):
    on_disk.remember("one", scope="/a")
    target = tmp_path / "out" / ("all.jsonl" if kind == "file" else "notes")
    target.parent.mkdir()
    subprocess.run([sys.executable, "-c", _EXPORT_KILLED, on_disk.path, str(target), kind], check=False, timeout=120)
    (part,) = parts(target.parent)
    assert stat.S_IMODE(part.stat().st_mode) == 0o600
    mine = target.parent / "draft.part"
    mine.write_text("my own")
    if kind == "file":
        assert on_disk.transfer.export(target) == 1
    else:
        on_disk.forget([record.id for record in on_disk.list()])  # another file is written, or none
        on_disk.transfer.export_folder(target)
    assert parts(target.parent) == [mine]
