"""The command tool: one call of a tool for agents, as JSON in and out."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.options import AsJson, open_memory
from recollect.cli.output import print_json
from recollect.cli.streams import stdin_text
from recollect.errors import InvalidInput

__all__ = ["tool"]


def tool(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="memory, session, experience or knowledge.")
    ] = None,
    arguments: Annotated[
        str | None, typer.Argument(metavar="[JSON]", help="""E.g. '{"action": "list"}'; - or nothing reads stdin.""")
    ] = None,
    scope: Annotated[
        str | None, typer.Option(metavar="/A/B", help="Everything happens within it, whatever scope the JSON names.")
    ] = None,
    quoted: Annotated[
        bool, typer.Option("--quoted", help="Put the answer between marks that no stored text can forge.")
    ] = False,
    document_folder: Annotated[
        list[str] | None,
        typer.Option(metavar="FOLDER", help="Documents in it may be ingested; repeat for more. Else none may be."),
    ] = None,
    document_urls: Annotated[bool, typer.Option("--document-urls", help="Documents at URLs may be ingested.")] = False,
    schemas: Annotated[bool, typer.Option("--schemas", help="Print the schemas of all tools instead.")] = False,
    shape: Annotated[str, typer.Option(metavar="SHAPE", help="Of --schemas: plain, openai or anthropic.")] = "plain",
    as_json: AsJson = False,
) -> None:
    """Carry out one call of a tool for agents; the answer is always JSON.

    What is wrong in the JSON is answered as JSON too, with exit code 2, or 1 where nothing was found.
    """
    from recollect import tools

    if schemas:
        if name is not None:
            raise InvalidInput("--schemas prints the schemas of all tools: leave the name out")
        print_json(tools.schemas(shape))  # type: ignore[arg-type]
        return
    if name is None:
        raise InvalidInput("no tool is named: recollect tool memory '{\"action\": ...}', or recollect tool --schemas")
    given = stdin_text(f"tool {name}") if arguments in (None, "-") else arguments
    with open_memory(context) as memory:
        answer = tools.call(
            name, given, memory=memory, scope=scope, document_folders=document_folder or (),
            document_urls=document_urls,
        )  # fmt: skip
    typer.echo(tools.as_text(answer)) if quoted else print_json(answer)
    if "error" in answer:
        raise typer.Exit(1 if answer["error"]["type"] == "not_found" else 2)
