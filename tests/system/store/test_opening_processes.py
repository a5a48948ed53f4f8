"""Which files are opened, which are refused, and that a refused file is left as it was."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import apsw
import pytest

from recallite import Memory
from recallite.errors import (
    StoreError,
)
from tests.unit.core.memory.support import PLAIN, run, spawn


def contents(folder: Path) -> dict[str, bytes | None]:
    return {each.name: each.read_bytes() if each.is_file() else None for each in folder.iterdir()}


_AS_NOBODY = """
import os, sys
from recallite import Memory, Settings
settings = Settings(embedder="none")
with Memory(":memory:", settings=settings) as warm:
    warm.remember("x"); warm.recall("x")
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    Memory(sys.argv[1], settings=settings).remember("y")
except Exception as refused:
    print(type(refused).__name__, refused)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="permissions work otherwise there")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_file_is_refused_with_the_remedy(tmp_path_factory, what):
    """Permissions do not bind root, so root opens the file as nobody."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "agent.db")
        with Memory(path, settings=PLAIN) as memory:
            memory.remember("kept")
        os.chmod(path, 0o444 if what == "file" else 0o666)
        os.chmod(folder, 0o777 if what == "file" else 0o555)
        before = contents(Path(folder))
        said = run(_AS_NOBODY, path)
        os.chmod(folder, 0o700)
        assert said.startswith(StoreError.__name__), said
        assert path in said
        assert "permissions" in said
        assert contents(Path(folder)) == before


_OPEN = """
import os
import sys
from recallite import Memory, Settings
import recallite.memory
print("ready", flush=True)
sys.stdin.readline()
with Memory(sys.argv[1], settings=Settings(embedder="none", busy_timeout_ms=900_000)) as memory:
    print(memory.remember(f"hello from {os.getpid()}").id)
"""


def test_processes_that_create_one_file_at_once_all_succeed(path):
    processes = [spawn(_OPEN, path) for _ in range(6)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    ids = [process.communicate()[0].strip() for process in processes]
    with Memory(path, settings=PLAIN) as memory:
        assert sorted(record.id for record in memory.list()) == sorted(ids)


_CREATE = """
import sys
from recallite import Memory, Settings
try:
    Memory(sys.argv[1], settings=Settings(embedder="none", busy_timeout_ms=0)).close()
except Exception as refused:
    print(type(refused).__name__)
"""


def test_claiming_sees_one_commit(path, monkeypatch):
    """Another process that creates the schema between two reads of the claim made it look like a foreign file."""
    from recallite.store.sqlite import connection as opening

    said = []

    class Overtaken(apsw.Connection):
        def pragma(self, name, *rest, **named):
            value = super().pragma(name, *rest, **named)
            if name == "application_id" and not rest and not said:
                said.append("now")
                said.append(run(_CREATE, path).strip())
            return value

    monkeypatch.setattr(opening.apsw, "Connection", Overtaken)
    with Memory(path, settings=PLAIN) as memory:
        assert memory.count() == 0
    assert said in (["now", ""], ["now", "StoreUnavailable"])
