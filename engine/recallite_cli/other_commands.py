"""The commands of this package that are no operation of a memory.

- demo: a few memories, questions about them, what changed, and why each answer was found
- tool: one call of a tool for agents, as JSON in and out
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from recallite.errors import InvalidInput
from recallite_cli.command import AsJson, argument, command, flag, open_memory, option, prints
from recallite_cli.output import attributes, console, print_json, progress, safe, stdin_text
from recallite_cli.printers import print_figures, print_hits, reasons

if TYPE_CHECKING:
    from recallite.model.records import Hits
    from recallite.model.reports import Stats


MEMORIES = (
    "Ana is on parental leave until October. Until then Tom decides what goes into a release.",
    "The staging server is wiped every night at two o'clock, so keep nothing on it.",
    "Partners may send 300 requests a minute to the API; more are answered with 429.",
    "We moved the orders database from PostgreSQL to MySQL in March.",
    "Deployments go out on Tuesday mornings. A deployment on a Friday needs Tom's approval.",
    "Nordwind, our largest customer, pays by invoice within sixty days.",
    "Lena cannot eat gluten. Remember it when you order lunch for the team.",
    "On the first Monday of each month we restore a backup, to know that it works.",
    "The daily standup is at nine.",
    "The daily standup has moved to ten.",
)
# No memory answers the last.
QUESTIONS = (
    "Who approves releases while Ana is away?",
    "What happens to files I leave on staging?",
    "How many API calls may a partner make?",
    "When is the daily standup?",
    "Where is the printer?",
)
_LIMIT = 3


class Demo(NamedTuple):
    """The answers of a demo."""

    remember_ms: float
    answers: list[Hits]
    stats: Stats
    explained: bool


def _demo_json(result: Demo) -> dict[str, Any]:
    return {
        "memories": len(MEMORIES),
        "remember_ms": result.remember_ms,
        **attributes(result.stats, "embedder kernels mode notes"),
        "questions": [
            {"query": hits.query, "hits": list(hits), **attributes(hits, "evidence_gaps stages")}
            for hits in result.answers
        ],
    }


def _print_demo(result: Demo) -> None:
    loading = ", including the time to load the embedding model" if result.stats.embedder else ""
    click.echo(f"{len(MEMORIES)} memories, stored in {result.remember_ms:.0f} ms{loading}:\n")
    for text in MEMORIES:
        click.echo(f"  - {text}")
    for hits in result.answers:
        click.echo()
        click.secho(f"? {hits.query}", bold=True)
        for line in _answer(hits):
            click.echo(safe(line))
        if result.explained:
            print_figures(hits) if console() is None else print_hits(hits, many=False, explained=True)
    if result.explained:
        for note in result.stats.notes:
            click.echo(safe(f"\nnote: {note}"))
        return
    embedder = result.stats.embedder or "keyword search only, without an embedder"
    click.echo(f"\nAll of it on this machine ({embedder}); the temporary store is deleted.")
    click.echo('All figures: recallite demo --explain. Your own: recallite remember "...", recallite recall "..."')


def _answer(hits: Hits) -> Iterator[str]:
    """The answer to one question, why, and the time it took; a memory is no answer where evidence is missing."""
    took = f"{sum(hits.stages.values()):.0f} ms"
    if not hits.evidence_gaps:
        yield f"  {hits[0].text}"
        for former in hits[0].supersedes:
            yield f"  Before: {former.text}"
        yield f"  Why: {reasons(hits[0], hits.query)}. Confidence {hits[0].confidence:.2f}. {took}."
        return
    yield "  I don't know."
    yield f"  Why: {'; '.join(hits.evidence_gaps)}. {took}."
    if hits:
        yield f"  The closest memory: {hits[0].text}"


@prints(_print_demo, json=_demo_json)
def demo(
    context: click.Context, explain: Annotated[bool, flag("Show every figure of every hit.", "--explain")] = False
) -> Demo:
    """Show recall on a few memories in a temporary store."""
    with tempfile.TemporaryDirectory(prefix="recallite-demo-") as folder:
        context.obj = str(Path(folder) / "demo.db")
        with open_memory(context, create=True) as memory, progress("remembering", "memories") as report:
            began = perf_counter()
            memory.remember_many([{"text": text} for text in MEMORIES], on_progress=report)
            remember_ms = (perf_counter() - began) * 1e3
            answers = [memory.recall(question, limit=_LIMIT, purpose="explain") for question in QUESTIONS]
            return Demo(remember_ms, answers, memory.store.stats(), explain)


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
    import recallite_tools as tools

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
