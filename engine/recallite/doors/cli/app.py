"""The command line: its commands are entry points of the group `recallite.commands`, each imported when it is named."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Annotated, Any

import typer

from recallite.doors.cli import options
from recallite.doors.cli.options import option
from recallite.system import plugins

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
  RECALLITE_KERNELS   "numba" or "python"
  RECALLITE_DEBUG     1 prints the log, and the traceback of a failure, on standard error
  NO_COLOR            no colours

Results go to standard output, everything else to standard error. With --json
a list is a bare array and times are ISO 8601.
"""

_STYLE: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


class Commands(typer.core.TyperGroup):
    """The commands that packages register, in the order that help shows; a command is a function or a typer.Typer."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands that can be imported."""
        return list(plugins.load_all("commands"))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if no package registers it."""
        return _command(cmd_name) if cmd_name in plugins.names("commands") else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and first lines of all commands, without building their options, which takes 50 ms."""
        summaries = typer.core.TyperGroup(commands={name: _summary(name) for name in self.list_commands(ctx)})
        summaries.format_commands(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name; a usage error that suggests the names closest to an unknown one."""
        from difflib import get_close_matches

        known = plugins.names("commands")
        if args[0] not in known and (close := get_close_matches(args[0], known)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(map(repr, close))}?")
        return super().resolve_command(ctx, args)


@cache
def _command(name: str) -> Any:
    registered = plugins.load("commands", name)
    group = typer.Typer(context_settings=_CONTEXT, **_STYLE)
    group.callback()(lambda: None)  # with it, a lone command is not the whole group
    if isinstance(registered, typer.Typer):
        group.add_typer(registered, name=name)
    else:
        group.command(name=name)(registered)
    return typer.main.get_group(group).commands[name]


def _summary(name: str) -> Any:
    """A command without its options."""
    registered = plugins.load("commands", name)
    if isinstance(registered, typer.Typer):
        return _command(name)
    return typer.core.TyperCommand(name, help=inspect.getdoc(registered))


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    epilog=_EPILOG,
    context_settings=_CONTEXT,
    **_STYLE,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from recallite._version import __version__

        typer.echo(f"recallite {__version__}")
        raise typer.Exit


@app.callback()
def recallite(
    context: typer.Context,
    db: Annotated[
        str | None, option("PATH", "File, or postgresql://... Default: RECALLITE_DB, or the user's own.")
    ] = None,
    settings: Annotated[str | None, option("FILE", "A TOML, JSON or YAML file. Default: RECALLITE_SETTINGS.")] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Long-term memory for AI agents in one SQLite file: offline, on a CPU."""
    context.obj = db
    context.meta[options.SETTINGS] = settings
