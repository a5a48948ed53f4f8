"""The command tool: one call of a tool for agents, as JSON in and out."""

from __future__ import annotations

from typing import Annotated

import click

from recallite.doors.cli.options import AsJson, open_memory
from recallite.doors.cli.output import print_json
from recallite.doors.cli.parameters import argument, command, flag, option
from recallite.doors.cli.streams import stdin_text
from recallite.errors import InvalidInput


@command
def tool(
    context: click.Context,
    name: Annotated[str | None, argument("NAME", "memory, session, experience or knowledge.")] = None,
    arguments: Annotated[str | None, argument("JSON", """As '{"action": "list"}'. Default: standard input.""")] = None,
    scope: Annotated[str | None, option("/A/B", "Act within this scope, whatever the JSON says.")] = None,
    quoted: Annotated[bool, flag("Put the answer between marks that no stored text can forge.", "--quoted")] = False,
    document_folder: Annotated[list[str] | None, option("FOLDER", "A folder to ingest from; repeat for more.")] = None,
    document_urls: Annotated[bool, flag("Documents at URLs may be ingested.", "--document-urls")] = False,
    schemas: Annotated[bool, flag("Print the schemas of all tools instead.", "--schemas")] = False,
    shape: Annotated[str, option("SHAPE", "Of --schemas: plain, openai or anthropic.")] = "plain",
    as_json: AsJson = False,
) -> None:
    """Carry out one call of an agent tool. The answer is always JSON.

    An error is JSON too, with exit code 2, or 1 where nothing was found.
    """
    from recallite.doors import tools

    if schemas:
        if name is not None:
            raise InvalidInput("--schemas prints the schemas of all tools: leave the name out")
        print_json(tools.schemas(shape))  # type: ignore[arg-type]
        return
    if name is None:
        raise InvalidInput("no tool is named: recallite tool memory '{\"action\": ...}', or recallite tool --schemas")
    text = stdin_text(f"tool {name}") if arguments in (None, "-") else arguments
    with open_memory(context, create=True) as memory:
        answer = tools.call(
            name, text, memory=memory, scope=scope, document_folders=document_folder or (),
            document_urls=document_urls,
        )  # fmt: skip
    click.echo(tools.as_text(answer)) if quoted else print_json(answer)
    if "error" in answer:
        raise click.exceptions.Exit(1 if answer["error"]["type"] == "not_found" else 2)
