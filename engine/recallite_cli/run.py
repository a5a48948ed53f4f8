"""The command line: its commands, each imported when it is named, and a run, from arguments to an exit code.

A failure is one line on standard error. Logs go there too: all of the library's with RECALLITE_DEBUG=1.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any, TextIO

import click

from recallite.doors.operation import Operation, codes_of
from recallite.doors.operations import COMMAND_GROUPS, GROUPS, OPERATIONS, every_command_group, every_operation
from recallite.errors import RecalliteError
from recallite.system import plugins
from recallite.system.plugins import PluginWarning
from recallite_cli.command import SETTINGS, Group, command, command_of
from recallite_cli.output import fail, hint, one_line

_FORMAT = "%(levelname)s %(name)s: %(message)s"


@contextmanager
def debug_log() -> Iterator[None]:
    """With RECALLITE_DEBUG=1, everything that Recallite logs is shown."""
    if os.environ.get("RECALLITE_DEBUG") != "1":
        yield
        return
    shown, log = logging.StreamHandler(sys.stderr), logging.getLogger("recallite")
    shown.setFormatter(logging.Formatter(_FORMAT))
    level, propagate = log.level, log.propagate
    log.addHandler(shown)
    log.setLevel(logging.DEBUG)
    log.propagate = False  # else a server would show it again, with what other libraries log
    try:
        yield
    finally:
        log.removeHandler(shown)
        log.setLevel(level)
        log.propagate = propagate


def server_log() -> None:
    """Show the warnings of Recallite and the errors of all libraries: standard output may belong to a protocol."""
    debug = os.environ.get("RECALLITE_DEBUG") == "1"
    logging.basicConfig(level=logging.INFO if debug else logging.ERROR, stream=sys.stderr, format=_FORMAT)
    if not debug:
        logging.getLogger("recallite").setLevel(logging.WARNING)


# The commands of the operations and others.

_EPILOG = """\b
Exit codes:
  0    success
  1    nothing was found, or verify found problems
  2    wrong usage, invalid input or an unreadable document; nothing was written, or only the batches before it
  3    the store or standard output cannot be used: locked, read-only, damaged, full, not a Recallite store
  4    the embedder, a model or the kernels cannot be used
  70   a bug in Recallite
  130  interrupted; committed batches are kept

\b
Environment:
  RECALLITE_DB        the store, without --db
  RECALLITE_KEY       the key of an encrypted store; RECALLITE_KEY_FILE names a file that holds it
  RECALLITE_SETTINGS  a settings file, without --settings
  RECALLITE_EMBEDDER  "default", "none" (keyword search only), the name of a model, a folder with model.onnx, or a
                      provider and model over HTTP: "ollama/nomic-embed-text", "voyage/voyage-3"
  EMBEDDING_PROVIDER, EMBEDDING_MODEL, EMBEDDING_BASE_URL, EMBEDDING_API_KEY
                      an embedder over HTTP: "openai", "ollama", another provider or a base URL
  RECALLITE_LLM_BASE_URL, RECALLITE_LLM_MODEL, RECALLITE_LLM_API_KEY
                      a language model over HTTP, for long questions, consolidate --extract and workspace flush;
                      "gemini/gemini-2.0-flash" needs no URL
  OPENAI_API_KEY, OPENAI_BASE_URL
                      for workspace flush, if no other language model is configured
  RECALLITE_MCP_TOKEN the token of `recallite mcp --http`, without --token-file
  RECALLITE_WARM      0 uses and starts no resident process, as --no-warm
  RECALLITE_KERNELS   "numba" or "python"
  RECALLITE_DEBUG     1 prints the log, and the traceback of a failure, on standard error
  NO_COLOR            no colours

Results go to standard output, everything else to standard error. With --json
a list is a bare array and times are ISO 8601.
"""

# The commands that are no operation of a memory, registered in `recallite.commands`, as help shows them.
_OTHERS = {
    "Recall": {
        "eval": "Measure recall on questions of your own.",
        "demo": "Show recall on a few memories in a temporary store.",
    },
    "Transfer": {
        "import": "Read memories from files, Markdown or another system.",
        "export": "Write memories to files, Markdown or for another system.",
        "copy": "Copy a store with everything in it to a file or server.",
    },
    "Notes": {"workspace": "A folder of Markdown files as memory."},
    "Servers and models": {
        "serve": "Serve the store over HTTP: REST, MCP and a page.",
        "inspect": "See the memories of a store in a browser.",
        "mcp": "The Model Context Protocol: memory for agent hosts.",
        "connect": "Give a coding agent a memory: its hooks and the server.",
        "disconnect": "Remove the hooks and the server from a coding agent.",
        "hook": "Answer a coding agent's hook.",
        "warm": "The resident process that keeps stores loaded.",
        "tool": "Carry out one call of an agent tool.",
    },
}


def _sections() -> dict[str, list[str]]:
    """The commands of Recallite by the sections of help."""
    sections: dict[str, list[str]] = {title: [] for title in GROUPS.values()}
    for operation in every_operation():
        name = operation.words.partition(" ")[0]
        if name and name not in (names := sections[GROUPS[operation.group]]):
            names.append(name)
    for title, others in _OTHERS.items():
        sections.setdefault(title, []).extend(others)
    return sections


def own_names() -> list[str]:
    """The names of Recallite's own commands, in the order that help shows."""
    return [name for names in _sections().values() for name in names]


class Commands(Group):
    """The commands: of operations, others of this package, and what other packages register."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands; other packages' commands may fail to be imported."""
        return list(dict.fromkeys([*own_names(), *plugins.names("commands")]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command or group of this name, if there is one. For one of the core no other package is imported."""
        found: dict[str, Operation] = {}
        if all(cmd_name not in others for others in _OTHERS.values()):
            found = _beginning_with(cmd_name, OPERATIONS) or _beginning_with(cmd_name, every_operation())
        if cmd_name in found:
            return command_of(found[cmd_name])
        if found:
            members = {words.removeprefix(f"{cmd_name} "): command_of(member) for words, member in found.items()}
            return Group(help=COMMAND_GROUPS.get(cmd_name) or every_command_group()[cmd_name], commands=members)
        return _command_from(plugins.load("commands", cmd_name)) if cmd_name in plugins.names("commands") else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and first lines of all commands, without building their options, which takes 50 ms."""
        foreign = plugins.load_all("commands", own_names())
        summaries = {operation.words: operation.summary for operation in every_operation()} | every_command_group()
        for others in _OTHERS.values():
            summaries |= others
        for name, registered in foreign.items():
            summaries[name] = re.split(r"(?<=\.)\s", _command_from(registered).help or "", maxsplit=1)[0]
        with formatter.section("Commands"):
            for title, names in {**_sections(), "Other packages": foreign}.items():
                if names:
                    with formatter.section(title):
                        formatter.write_dl([(name, summaries[name]) for name in names])


def _beginning_with(word: str, operations: Iterable[Operation]) -> dict[str, Operation]:
    """The operations by their commands that begin with this word."""
    return {operation.words: operation for operation in operations if operation.words.partition(" ")[0] == word}


def _command_from(registered: Any) -> click.Command:
    return registered if isinstance(registered, click.Command) else command(registered)


def _show_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from recallite._version import __version__

        click.echo(f"recallite {__version__}")
        context.exit()


@click.command(
    cls=Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.option("--db", metavar="PATH", help="File, or postgresql://... Default: RECALLITE_DB, or the user's own.")
@click.option("--settings", metavar="FILE", help="A TOML, JSON or YAML file. Default: RECALLITE_SETTINGS.")
@click.option(
    "--no-warm", is_flag=True, expose_value=False,
    help="Do not use the resident process, and start none: see warm.",
)  # fmt: skip
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.pass_context
def app(context: click.Context, db: str | None, settings: str | None) -> None:
    """Long-term memory for AI agents in one SQLite file: offline, on a CPU."""
    context.obj = db
    context.meta[SETTINGS] = settings


# One run of the command.

_INTERRUPTED = 130
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


@contextmanager
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
        with suppress(AttributeError, ValueError):
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
        fail("Interrupted", _left(words, asked=isinstance(fault, click.Abort)), as_json=as_json)
        return _INTERRUPTED
    if isinstance(fault, OSError):
        _drop_stdout()
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


def _left(words: list[str], *, asked: bool) -> str:
    """Describe what an interrupted command has left; `asked` means that it was waiting for an answer of its user."""
    if asked:
        return "nothing was done: the question was not answered"
    texts = (word for before, word in pairwise(("", *words)) if before not in ("--db", "--settings"))
    name = next((word for word in texts if not word.startswith("-")), "")
    if name in ("serve", "inspect", "mcp"):
        return "the server has ended; what was written is stored"
    effects = {operation.effect for operation in OPERATIONS if operation.words.partition(" ")[0] == name}
    if effects == {"reads"}:
        return "stopped before it answered; the store is as it was"
    if name in ("remember", "import", "knowledge", "sync"):
        return "stopped; what is stored stays, and is not stored twice if you run it again"
    return "stopped; see whether it was done before you run it again"


def exit_code(fault: Exception) -> int:
    """The exit code that stands for this failure."""
    if isinstance(fault, click.ClickException):
        return 2
    if isinstance(fault, RecalliteError):
        return codes_of(fault).exit
    # Of the streams: the engine's own are errors of the store.
    return 3 if isinstance(fault, OSError) else _UNEXPECTED


def _decoded(argument: str) -> str:
    """An argument as UTF-8, which a process in an ASCII locale gets as escaped bytes."""
    try:
        return argument if argument.isascii() else os.fsencode(argument).decode()
    except UnicodeError:
        return argument


def _drop_stdout() -> None:
    """Nobody reads any more: keep the interpreter from saying so when it flushes at exit."""
    with suppress(OSError, ValueError, AttributeError):
        target = sys.stdout.fileno()
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), target)
