"""The command line: every command, in the order that help shows."""

from __future__ import annotations

from typing import Annotated

import typer

from recallite.cli import (
    demo,
    evaluation,
    mcp,
    options,
    read,
    serve,
    tenants,
    tiers,
    tool,
    transfer,
    upkeep,
    workspace,
    write,
)
from recallite.cli.options import option
from recallite.services import SERVICES

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

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
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


for command in (
    write.remember, read.recall, read.get, read.list_, read.count, read.scopes, read.tags, write.update, write.forget,
    write.touch, write.link, write.unlink, read.neighbors, read.links, read.history, write.supersede, write.restore,
    read.explain, evaluation.eval_, tiers.consolidate, tiers.bootstrap, tool.tool, transfer.import_, transfer.export,
    transfer.copy, upkeep.stats, upkeep.verify, upkeep.audit, upkeep.judge_changes, upkeep.rebuild,
    upkeep.purge_expired, upkeep.vacuum, upkeep.backup, upkeep.reembed, upkeep.rekey, upkeep.warmup, serve.serve,
    serve.inspect, demo.demo,
):  # fmt: skip
    app.command(name=command.__name__.rstrip("_").replace("_", "-"))(command)
for name, service in SERVICES.items():
    if service.commands:
        app.add_typer(service.commands, name=name)
app.add_typer(workspace.workspace, name="workspace")
app.add_typer(mcp.mcp, name="mcp")
app.add_typer(serve.token, name="token")
app.add_typer(tenants.tenant, name="tenant")
