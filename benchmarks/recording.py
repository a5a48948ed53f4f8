"""python -m benchmarks.recording: run `recallite demo` in a terminal and record it as docs/images/demo.cast.

The file is text in asciicast's format, version 2: `asciinema play docs/images/demo.cast` shows it, and so does a text
editor. Pauses are set, not measured, so that the same output gives the same file but for the times that it prints.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS, ROWS = 96, 40
CAST = Path(__file__).resolve().parents[1] / "docs" / "images" / "demo.cast"
_COMMAND = "recallite demo"
_TYPED_S, _LINE_S, _READ_S = 0.06, 0.08, 0.6


def output() -> str:
    """The output of the demo in a terminal of 96 columns, colours included."""
    leader, follower = pty.openpty()
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "HOME": home,
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
            "LINES": str(ROWS),
        }
        command = [sys.executable, "-m", *_COMMAND.split()]
        with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=subprocess.DEVNULL, env=environment):
            os.close(follower)
            parts: list[bytes] = []
            # A terminal whose program has ended cannot be read.
            while part := _read(leader):
                parts.append(part)
    os.close(leader)
    return b"".join(parts).decode("utf-8")


def cast(text: str) -> str:
    """A recording in which the command is typed and its output comes line by line."""
    lines = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS, "title": _COMMAND})]
    moment = 0.0
    for text_shown, pause in [
        ("$ ", 0.0), *((letter, _TYPED_S) for letter in _COMMAND), ("\r\n", _READ_S),
        *((line, _READ_S if line.strip() == "" else _LINE_S) for line in text.splitlines(keepends=True)),
    ]:  # fmt: skip
        moment = round(moment + pause, 2)
        lines.append(json.dumps([moment, "o", text_shown], ensure_ascii=False))
    return "\n".join(lines) + "\n"


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


if __name__ == "__main__":
    CAST.write_text(cast(output()), encoding="utf-8")
