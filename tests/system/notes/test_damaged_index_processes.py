"""An index is replaced only where its damage is proven by reading it, and then it is moved aside."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recallite_notes.opening import moved_aside
from tests.unit.notes.test_damaged_index import folder, index_of, said  # noqa: F401

_WITHOUT_DESCRIPTORS = """
import os, resource, sys
from recallite import Workspace
from recallite.errors import RecalliteError
from tests.unit.notes.support import config

with Workspace(sys.argv[1], config(), embedder="none") as workspace:
    workspace.search("zebra", min_score=0.0)  # what is imported late is imported
with Workspace(sys.argv[1], embedder="none") as workspace:
    workspace.search("zebra", min_score=0.0)
faults = set()
for spare in range(24):
    workspace = Workspace(sys.argv[1], embedder="none")
    used = max(map(int, os.listdir("/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for verb in (lambda: workspace.search("zebra", min_score=0.0), workspace.status, workspace.index):
        try:
            verb()
        except RecalliteError as fault:
            faults.add(type(fault).__name__)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    workspace.close()
print(sorted(faults))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of descriptors")
def test_without_descriptors_no_index_is_lost(folder):
    before = said(folder)
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_DESCRIPTORS, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "StoreError" in done.stdout, done.stdout
    assert said(folder) == before
    assert moved_aside(index_of(folder)) == []
