"""The file as any SQLite tool sees it (seed 002): its SQL runs as it stands. SQLite is that of another process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from recallite import Memory
from recallite.errors import StoreCorrupt
from tests.unit.core.memory.support import PLAIN, raw

_QUERY = """
import json, sqlite3, sys
connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
connection.row_factory = sqlite3.Row
print(json.dumps([dict(row) for row in connection.execute(sys.argv[2])]))
"""


def query(path, sql):
    """Rows by Python's own SQLite, in a process of its own: two SQLites in one would drop each other's locks."""
    done = subprocess.run([sys.executable, "-c", _QUERY, path, sql], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("sql", "call"),
    [
        ("UPDATE session_snapshot SET messages = '[{'", lambda memory: memory.episodes.last_snapshot()),
        ("UPDATE session_snapshot SET task_ids = '[1]'", lambda memory: memory.episodes.snapshots()),
        ("UPDATE tool_pattern SET pattern = 'x'", lambda memory: memory.experience.tips("query")),
        ("UPDATE working_state SET items = x'ff'", lambda memory: memory.working.load()),
    ],
)
def test_what_another_program_broke_is_a_clear_error(path, sql, call):
    with Memory(path, settings=PLAIN) as memory:
        memory.episodes.snapshot(messages=[])
        for _ in range(2):
            memory.experience.record(task_type="query", tools=["x"], success=True)
        memory.working.add("x")
        memory.working.save()
    other = raw(path)
    other.execute(sql)
    other.close()
    with Memory(path, settings=PLAIN) as memory, pytest.raises(StoreCorrupt, match="another program changed it"):
        call(memory)
