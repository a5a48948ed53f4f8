"""Large pieces of memory go back to the system, and what was in them is the same."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

import pytest

from recallite.system import files


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux holds freed memory back")
def test_what_was_freed_is_given_back():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    blocks = [bytes(2_000) for _ in range(40_000)]
    last = blocks[::400]  # between what is freed, so that nothing goes back by itself
    del blocks
    before = resident()
    files.return_freed()
    assert before - resident() > 40_000_000
    assert len(last) == 100


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="its pages stay elsewhere")
def test_an_unloaded_copy_is_read_again(tmp_path):
    content = os.urandom(64 * mmap.PAGESIZE)
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb") as file:
        mapped = files.private_copy(file.fileno(), len(content))
    assert mapped[:] == content
    files.unload(mapped)
    assert mapped[:] == content
    mapped[:3] = b"new"
    assert mapped[:] == b"new" + content[3:]
    assert (tmp_path / "file").read_bytes() == content
