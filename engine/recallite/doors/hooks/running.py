"""The command `recallite hook` as hosts run it: the resident process answers, or else the full command line does.

A host waits for it at every prompt. Nothing is imported here that takes a while, not even what Python itself loads at
its start unless told not to.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

from recallite.doors.warm.asking import ALIVE_SECONDS, HOOK, Link, Unanswered, in_header
from recallite.doors.warm.calls import Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PATH = "/hooks"
"""The path of a hook's request to the resident process."""
PATIENCE_SECONDS = 1.5
WAIT_SECONDS = 120.0
_payload: list[bytes] = []


def payload() -> bytes:
    """The bytes on standard input."""
    if not _payload:
        _payload.append(sys.stdin.buffer.read())
    return _payload[0]


def left_of(words: Sequence[str]) -> list[str]:
    """The words that the full command line has to run; none if the resident process has answered them."""
    began = time.monotonic()
    try:
        if os.environ.get("RECALLITE_DEBUG") != "1":
            call = Call(words)
            patience = call.options.get("patience", PATIENCE_SECONDS)
            if call.name == "hook" and _is_answered(call, began, patience):
                return []
    except Unanswered:
        pass
    # A process that hangs is not asked again.
    return ["--no-warm", *words] if time.monotonic() - began >= ALIVE_SECONDS else [*words]


def _is_answered(call: Call, began: float, patience: float) -> bool:
    """Whether a hook is answered, with nothing if that takes too long. Raises Unanswered: it is to be answered here.

    A turn is never left unanswered, because it is stored by then.
    """
    link = Link(answer_seconds=WAIT_SECONDS if call.options.get("wait") else patience)
    _thread.start_new_thread(_end_unless_read, (patience,))
    folders = os.environ.get("CLAUDE_PROJECT_DIR", ""), os.getcwd()
    flags = call.options.get("scope", ""), "yes" if call.options.get("memories") else ""
    fields = "\0".join((call.text, call.options.get("host", "claude-code"), *flags, *folders))
    try:
        status, answer = link.ask("POST", PATH, payload(), {**call.headers, HOOK: in_header(fields)})
    except Unanswered:
        if call.text != "turn" and time.monotonic() - began >= patience:
            return True
        raise
    if status != 200:
        raise Unanswered(f"the status is {status}")
    try:
        sys.stdout.buffer.write(answer)
        sys.stdout.flush()
    except (AttributeError, OSError):  # the host does not listen
        pass
    return True


def _end_unless_read(seconds: float) -> None:
    """End this process if the host has not closed its standard input by then."""
    time.sleep(seconds)
    if not _payload:
        os._exit(0)
