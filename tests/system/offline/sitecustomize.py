"""Imported by every Python process of an audited program: writes down what it does with sockets and files."""

import os
import sys

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGING = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "tempfile.")
_log = os.open(os.environ["RECALLITE_AUDIT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _write_down(event, arguments):
    if event.startswith("socket.") and event != "socket.gethostname":
        line = f"network {event} {arguments[1:]!r}"
    elif not arguments or not isinstance(arguments[0], str):
        return
    elif event.startswith(_CHANGING) or (event == "open" and (arguments[2] or 0) & _WRITING):
        line = f"file {os.path.abspath(arguments[0])}"
    else:
        return
    os.write(_log, line.encode() + b"\n")


sys.addaudithook(_write_down)
