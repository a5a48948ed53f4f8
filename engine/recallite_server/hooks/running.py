"""The command `recallite hook` as hosts run it: the resident process answers, or else the full command line does.

A host waits for it at every prompt. Nothing is imported here that takes a while, not even what Python itself loads at
its start unless told not to.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

from recallite_server.warm.asking import ALIVE_SECONDS, HOOK, Call, Link, Unanswered, in_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from subprocess import Popen

PATIENCE_SECONDS, TOOL_PATIENCE_SECONDS = 1.5, 0.3
"""How long a host waits for a hook, and for one of a tool, of which a session has hundreds."""
WAIT_SECONDS = 120.0
_BEGAN = time.monotonic() - time.process_time()
# Starting Python and ending it take a part of the patience: on a busy machine 0.1 s.
_RESERVE_SECONDS, _RESERVE_SHARE = 0.2, 0.25
_payload: list[bytes] = []
_children: list[Popen[bytes]] = []


def payload() -> bytes:
    """The bytes on standard input."""
    if not _payload:
        _payload.append(sys.stdin.buffer.read())
    return _payload[0]


def left_of(words: Sequence[str]) -> list[str]:
    """The words that the full command line has to run; none if the resident process has answered them.

    What takes longer than the host waits is not answered: this process ends. A turn is stored all the same, by a
    process of its own. A tool's hook is answered by the resident process or not at all.
    """
    began, call = time.monotonic(), None
    try:
        if os.environ.get("RECALLITE_DEBUG") != "1":
            call = Call(words)
            if call.name != "hook":
                return [*words]
            _thread.start_new_thread(_end_in_time, (call,))
            if _is_answered(call):
                return []
    except Unanswered:
        pass
    if call is not None and call.texts == ["tool"]:
        return []
    # A process that hangs is not asked again.
    left = ["--no-warm", *words] if time.monotonic() - began >= ALIVE_SECONDS else [*words]
    if call is None or call.options.get("wait") or call.texts != ["turn"]:
        return left
    from recallite.system.processes import start_detached
    from recallite_server.warm.quick import command

    start_detached(command([*left, "--wait"]), None, payload())
    return []


def run(words: Sequence[str]) -> None:
    """Run what is left of a hook in a process that has loaded nothing yet."""
    import subprocess

    from recallite.system.processes import safe_environment
    from recallite_server.warm.quick import command

    child = subprocess.Popen(command(words), stdin=subprocess.PIPE, env=safe_environment())
    _children.append(child)
    child.communicate(payload())


def _seconds_left(call: Call) -> float:
    """The time until this process has to end."""
    usual = TOOL_PATIENCE_SECONDS if call.texts == ["tool"] else PATIENCE_SECONDS
    patience: float = WAIT_SECONDS if call.options.get("wait") else call.options.get("patience", usual)
    return _BEGAN + patience - min(_RESERVE_SECONDS, _RESERVE_SHARE * patience) - time.monotonic()


def _end_in_time(call: Call) -> None:
    """End this process when its host does not wait any longer, but for a turn that it was given."""
    time.sleep(max(0.0, _seconds_left(call)))
    if call.texts != ["turn"] or not _payload:
        for child in _children:
            child.kill()
        os._exit(0)


def _is_answered(call: Call) -> bool:
    """Whether the resident process has answered. Raises Unanswered: the hook is to be answered here."""
    if not call.is_of_file or len(call.texts) != 1:
        raise Unanswered("it opens files, or is no event")
    link = Link(answer_seconds=max(_seconds_left(call), _RESERVE_SECONDS))
    folders = os.environ.get("CLAUDE_PROJECT_DIR", ""), os.getcwd()
    flags = call.options.get("scope", ""), "yes" if call.options.get("memories") else ""
    fields = "\0".join((*call.texts, call.options.get("host", "claude-code"), *flags, *folders))
    answer = link.ask("hook", payload(), {**call.fields, HOOK: in_field(fields)})
    try:
        sys.stdout.buffer.write(answer)
        sys.stdout.flush()
    except (AttributeError, OSError):  # the host does not listen
        pass
    return True
