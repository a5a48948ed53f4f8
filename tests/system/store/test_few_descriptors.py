"""With no descriptor left for what a first call loads: an error that says so, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

_CODE = """
import os, resource, sys
from recallite import Memory
from recallite.errors import StoreError

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
used = max(map(int, os.listdir("/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd"))) + 1
path, memory = sys.argv[1], None
holes = [os.dup(0)]
while holes[-1] < used:
    holes.append(os.dup(0))
refused = []
for spare in range(1, 12):
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, hard))
    try:
        memory = memory or Memory(path, embedder="none")
        memory.recall("Where does Ada live?")
        memory.remember("Ada moved to Bergen.")
    except StoreError as fault:
        assert (fault.reason, "ulimit -n" in str(fault)) == ("io", True), fault
        refused.append(str(fault))
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
found = [hit.text for hit in memory.recall("Where does Ada live?")]
assert found[0] == "Ada moved to Bergen.", found
assert memory.store.verify().problems == ()
print(len(refused), any("vocabulary" in text or ".py" in text for text in refused))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of descriptors")
def test_a_first_call_without_descriptors_says_what_to_do(tmp_path):
    from recallite import Memory

    with Memory(tmp_path / "a.db", embedder="none") as memory:
        memory.remember("Ada lives in Oslo.", id="ada")
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(tmp_path / "a.db")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "True", done.stdout
