"""Runs a server for as long as its standard input is open: `python supervisor.py USER GROUP FOLDER POSTGRES ...`.

The input ends when the tests end, however they do. Then the server is stopped, and its folder is removed unless a line
"keep" came before.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1
_PATIENCE_SECONDS = 30


def main() -> None:
    user, group, folder, *command = sys.argv[1:]
    others: dict[str, Any] = {} if os.geteuid() else {"user": int(user), "group": int(group), "extra_groups": []}
    with open(os.path.join(folder, "log"), "ab") as log:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", preexec_fn=_end_with_parent, **others
        )
    print(server.pid, flush=True)
    keeps = sys.stdin.read().strip() == "keep"
    # A fast shutdown, then an immediate one, then none.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.send_signal(number)
            server.wait(_PATIENCE_SECONDS)
            break
    if not keeps:
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_parent() -> None:
    """On Linux the server ends with this process too, even if that is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


if __name__ == "__main__":
    main()
