"""Standard input and output as text. A byte that is not UTF-8 stays recognisable, so that its line can be named."""

from __future__ import annotations

import io
import sys
from typing import IO

from recallite.errors import InvalidInput


def stdin_stream() -> IO[str]:
    """Standard input, as UTF-8 whatever the locale."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape", newline="")
    return sys.stdin


def stdout_stream() -> IO[str]:
    """Standard output, as UTF-8 whatever the locale."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict", newline="")
    return sys.stdout


def stdin_text(command: str) -> str:
    """All of standard input; a person who typed nothing is told what to type."""
    if sys.stdin.isatty():
        raise InvalidInput(f'no text was given: recallite {command} "...", or pipe it in')
    return stdin_stream().read().removeprefix("\ufeff").strip()


def stdin_lines(path: str | None) -> list[str]:
    """The non-blank lines of a file, or of standard input."""
    if path is None or path == "-":
        if sys.stdin.isatty():
            raise InvalidInput('no query was given: recallite recall "...", --file FILE, or pipe them in, one a line')
        lines = stdin_stream().read()
    else:
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                lines = stream.read()
        except (OSError, ValueError) as fault:
            raise InvalidInput(f"{path} cannot be read: {fault}") from fault
    questions = [line.strip() for line in lines.removeprefix("\ufeff").splitlines() if line.strip()]
    if not questions:
        raise InvalidInput("there is no query in the input: give one a line")
    return questions
