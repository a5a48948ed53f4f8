"""Forgetting with a receipt: what is gone is gone from every byte of the files, and the receipt says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

HELD = """
import fcntl, os, sys
try:  # the bytes that SQLite locks for readers
    fcntl.lockf(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
except OSError:
    print("held")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_reading_the_files_leaves_their_locks(on_disk):
    on_disk.forget(on_disk.remember("A text of some length").id, receipt=True)
    done = subprocess.run([sys.executable, "-c", HELD, on_disk.path], capture_output=True, text=True, check=True)
    assert done.stdout == "held\n"
