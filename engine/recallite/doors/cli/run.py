"""One run of the command: from arguments to an exit code, every failure in one line."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import TextIO

import click

from recallite.doors.cli.app import app
from recallite.doors.cli.logs import debug_log
from recallite.doors.cli.output import fail, hint, one_line
from recallite.doors.error_codes import codes_of
from recallite.errors import RecalliteError
from recallite.system.plugins import PluginWarning

INTERRUPTED = 130
_UNEXPECTED = 70


def run(arguments: list[str] | None = None) -> int:
    """Run the command with these arguments, or the process's.

    The streams may be any text streams, such as a StringIO, or None, as in a process without a console.
    """
    with open(os.devnull, encoding="utf-8") as nothing, open(os.devnull, "w", encoding="utf-8") as nowhere:
        streams = sys.stdin, sys.stdout, sys.stderr
        sys.stdin, sys.stdout, sys.stderr = sys.stdin or nothing, sys.stdout or nowhere, sys.stderr or nowhere
        try:
            with debug_log(), _warnings_of_plugins():
                return _run(arguments)
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams


@contextlib.contextmanager
def _warnings_of_plugins() -> Iterator[None]:
    """Show each PluginWarning on one line; other warnings are shown as before."""
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
            line: str | None = None,
        ) -> None:  # fmt: skip
            if issubclass(category, PluginWarning):
                hint(one_line(f"recallite: {message}"))
            else:
                show_others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _run(arguments: list[str] | None) -> int:
    words = [_decoded(word) for word in (sys.argv[1:] if arguments is None else arguments)]
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        with app.make_context("recallite", list(words)) as context:
            app.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as chosen:
        return chosen.exit_code
    except (Exception, KeyboardInterrupt) as fault:
        return ended(fault, words)
    return 0


def ended(fault: Exception | KeyboardInterrupt, words: list[str]) -> int:
    """The exit code of a command that failed so, after one line about it."""
    as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
    if isinstance(fault, BrokenPipeError):
        _drop_stdout()
        return 0
    if isinstance(fault, KeyboardInterrupt | click.Abort):
        fail(
            "Interrupted",
            "stopped; what is stored stays, and an import run again goes on",
            as_json=as_json,
        )
        return INTERRUPTED
    if isinstance(fault, OSError):
        _drop_stdout()
    return _failed(fault, as_json=as_json)


def exit_code(fault: Exception) -> int:
    """The exit code that stands for this failure."""
    if isinstance(fault, click.ClickException):
        return 2
    if isinstance(fault, RecalliteError):
        return codes_of(fault).exit
    # Of the streams: the engine's own are errors of the store.
    return 3 if isinstance(fault, OSError) else _UNEXPECTED


def _failed(fault: Exception, *, as_json: bool) -> int:
    if os.environ.get("RECALLITE_DEBUG") == "1":
        traceback.print_exc()
    name, message, code = type(fault).__name__, str(fault), exit_code(fault)
    if isinstance(fault, click.exceptions.NoArgsIsHelpError):
        click.echo(message, err=True)
        return code
    if isinstance(fault, click.ClickException):
        message = fault.format_message()
        if isinstance(fault, click.UsageError) and fault.ctx is not None:
            message = f"{message} See: {fault.ctx.command_path} --help"
    elif code == _UNEXPECTED:
        message = f"{message} (a bug in Recallite: RECALLITE_DEBUG=1 prints the traceback)"
    fail(name, message, reason=getattr(fault, "reason", None), as_json=as_json)
    return code


def _decoded(argument: str) -> str:
    """An argument as UTF-8, which a process in an ASCII locale gets as escaped bytes."""
    try:
        return argument if argument.isascii() else os.fsencode(argument).decode()
    except UnicodeError:
        return argument


def _drop_stdout() -> None:
    """Nobody reads any more: keep the interpreter from saying so when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        target = sys.stdout.fileno()
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), target)
