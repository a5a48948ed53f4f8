"""Arguments that were raw errors, or nothing told of them: what a fuzz of every verb has found."""

from __future__ import annotations

import os

import pytest

from recallite.errors import StoreClosed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_working_memory_of_a_forked_process_is_refused(on_disk):
    on_disk.working.add("a")
    child = os.fork()
    if child == 0:
        refused = 0
        for call in (lambda: on_disk.working.add("b"), on_disk.working.evict, on_disk.working.clear):
            try:
                call()
            except StoreClosed as fault:
                refused += fault.reason == "forked"
        os._exit(0 if refused == 3 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
