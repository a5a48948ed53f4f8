"""Commands of the Model Context Protocol: run the server, put it into a host's configuration, take it out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack

import click

from recallite.errors import InvalidInput
from recallite.model.authority import check_authority
from recallite.model.checks import check_count, check_path, check_scope
from recallite.model.environment import default_path, environment, key_in
from recallite_cli.command import (
    SETTINGS,
    Group,
    Yes,
    argument,
    confirm,
    flag,
    number,
    open_memory,
    option,
    packages_of,
    prints,
)
from recallite_cli.output import hint
from recallite_cli.run import server_log
from recallite_server.hooks.projects import PROJECT, scope_named
from recallite_server.mcp import hosts
from recallite_server.mcp.hosts import FileChange

TOKEN = "RECALLITE_MCP_TOKEN"


class ServerOptions(TypedDict, total=False):
    """Options of what the server offers."""

    scope: Annotated[
        str | None,
        option(
            "/A/B",
            "Everything happens within this scope, whatever a model says; project: that of the folder it starts in.",
        ),
    ]
    read_only: Annotated[bool, flag("Offer only the tools that change nothing.", "--read-only")]
    tools: Annotated[str | None, option("NAME,NAME", "Offer only these tools.")]
    document_folder: Annotated[list[str] | None, option("FOLDER", "A folder to ingest from; repeat for more.")]
    document_urls: Annotated[bool, flag("Documents at public URLs may be ingested.", "--document-urls")]
    authority: Annotated[str | None, option("WHO", "As whom the model writes and forgets at most. Default: agent.")]
    token_budget: Annotated[int | None, number("The most tokens of an answer. Default: 2,000.")]


@prints(lambda _: None)
def serve(
    context: click.Context,
    http: Annotated[int | None, option("PORT", "Answer at http://HOST:PORT/mcp instead of standard input.")] = None,
    host: Annotated[str, option("HOST", "The address for --http; others than this machine's need a token.")] = (
        "127.0.0.1"
    ),
    token_file: Annotated[str | None, option("FILE", f"A file with the token. Default: {TOKEN}.")] = None,
    **options: Unpack[ServerOptions],
) -> None:
    """Run the server. A host starts it so and talks to it over its standard input.

    It ends when standard input does. Install what it needs with the extra `mcp`.
    """
    if context.invoked_subcommand is not None:
        return
    with packages_of("mcp"):
        from recallite_server.mcp.server import MemoryServer, run_http, run_stdio
    from recallite_tools.action import DocumentAccess

    server_log()
    named = options.get("tools")
    server = MemoryServer(
        lambda: open_memory(context, create=True, lasting=True),
        scope=scope_named(options.get("scope") or "/"),
        read_only=bool(options.get("read_only")),
        tools=None if named is None else [name.strip() for name in named.split(",") if name.strip()],
        documents=DocumentAccess.of(options.get("document_folder") or (), bool(options.get("document_urls"))),
        token_budget=_budget(options.get("token_budget")),
        authority=check_authority(options.get("authority") or "agent", "--authority"),
    )
    if http is None:
        run_stdio(server)
    else:
        hint(f"answering at http://{host}:{http}/mcp")
        run_http(server, host, http, environment(TOKEN) if token_file is None else key_in(token_file))


Name = Annotated[str, argument("HOST", "claude-desktop, claude-code, cursor, vscode, codex, gemini-cli or opencode.")]
Project = Annotated[str | None, option("FOLDER", "Only for this project, where the host can.")]


def _print_change(change: FileChange | None) -> None:
    if change is None:
        hint("nothing was changed")
    else:
        hint(f"{'removed' if change.after is None else 'written'}: {change.path}. Restart the host")


def _change_json(change: FileChange | None) -> dict[str, Any]:
    return {"path": None if change is None else str(change.path), "changed": change is not None}


@prints(_print_change, json=_change_json)
def install(
    context: click.Context, name: Name, project: Project = None, yes: Yes = False, **options: Unpack[ServerOptions]
) -> FileChange | None:
    """Put the server into a host: shows the change first."""
    host = _host(name)
    entry = hosts.entry(host, _arguments(context, options))
    return apply_change(hosts.configured(host, folder_of(project), entry), yes)


@prints(_print_change, json=_change_json)
def uninstall(name: Name, project: Project = None, yes: Yes = False) -> FileChange | None:
    """Take the server out of a host: shows the change first."""
    return apply_change(hosts.configured(_host(name), folder_of(project), None), yes)


def apply_change(change: FileChange, yes: bool) -> FileChange | None:
    """Show a change and write it, unless it is refused or changes nothing."""
    if change.by_hand:
        hint(change.by_hand)
    if change.after == (change.before or "") or not change.diff:
        return None
    click.echo(change.diff, err=True)
    confirm(f"Write this to {change.path}?", yes)
    hosts.write(change)
    return change


def _host(name: str) -> hosts.Host:
    if name not in hosts.HOSTS:
        raise InvalidInput(f"{name!r} is not a known host: use {', '.join(hosts.HOSTS)}")
    return hosts.HOSTS[name]


def folder_of(project: str | None) -> Path | None:
    """The folder that --project names."""
    return None if project is None else check_path(project, "--project")


def store_arguments(context: click.Context) -> list[str]:
    """The arguments before a command that name the store and the settings, with absolute paths."""
    path = default_path() if context.obj is None else context.obj
    if path == ":memory:":
        raise InvalidInput("--db is ':memory:', which is gone when the host ends: give a file")
    arguments = ["--db", str(check_path(path))]
    settings = context.meta.get(SETTINGS) or environment("RECALLITE_SETTINGS")
    return arguments if settings is None else [*arguments, "--settings", str(check_path(settings))]


def _arguments(context: click.Context, options: ServerOptions) -> list[str]:
    """The arguments that start the server as `install` was called, with absolute paths."""
    from recallite_tools.calling import SERVER_TOOLS

    arguments = [*store_arguments(context), "mcp"]
    if (scope := options.get("scope")) is not None:
        arguments += ["--scope", scope if scope == PROJECT else check_scope(scope)]
    if options.get("read_only"):
        arguments.append("--read-only")
    if (named := options.get("tools")) is not None:
        if unknown := [name.strip() for name in named.split(",") if name.strip() not in SERVER_TOOLS]:
            raise InvalidInput(f"{unknown[0]!r} is no tool: use {', '.join(SERVER_TOOLS)}")
        arguments += ["--tools", named]
    for folder in options.get("document_folder") or ():
        arguments += ["--document-folder", str(check_path(folder))]
    if options.get("document_urls"):
        arguments.append("--document-urls")
    if (authority := options.get("authority")) is not None:
        arguments += ["--authority", check_authority(authority, "--authority")]
    if (budget := options.get("token_budget")) is not None:
        arguments += ["--token-budget", str(_budget(budget))]
    return arguments


def _budget(tokens: int | None) -> int:
    return 2_000 if tokens is None else check_count(tokens, "--token-budget", minimum=50)


mcp = Group(
    help="The Model Context Protocol: memory for agent hosts.", params=serve.params, callback=serve.callback,
    invoke_without_command=True, subcommand_metavar="COMMAND [ARGS]...",
    commands={"install": install, "uninstall": uninstall},
)  # fmt: skip
