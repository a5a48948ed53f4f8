"""The command demo: a few memories, questions about them, what changed, and why each answer was found."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from recallite.doors.cli.command import prints
from recallite.doors.cli.hits import print_figures, print_hits, reasons
from recallite.doors.cli.options import open_memory
from recallite.doors.cli.output import attributes, console, progress, safe
from recallite.doors.cli.parameters import flag

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
_SHOWN = 3


class Shown(NamedTuple):
    """Results of a demo."""

    remember_ms: float
    answers: list[Hits]
    stats: Stats
    explained: bool


def _demo_json(shown: Shown) -> dict[str, Any]:
    return {
        "memories": len(MEMORIES),
        "remember_ms": shown.remember_ms,
        **attributes(shown.stats, "embedder kernels mode notes"),
        "questions": [
            {"query": hits.query, "hits": list(hits), **attributes(hits, "evidence_gaps stages")}
            for hits in shown.answers
        ],
    }


def _print_demo(shown: Shown) -> None:
    loading = ", including the time to load the embedding model" if shown.stats.embedder else ""
    click.echo(f"{len(MEMORIES)} memories, stored in {shown.remember_ms:.0f} ms{loading}:\n")
    for text in MEMORIES:
        click.echo(f"  - {text}")
    for hits in shown.answers:
        click.echo()
        click.secho(f"? {hits.query}", bold=True)
        for line in _answer(hits):
            click.echo(safe(line))
        if shown.explained:
            print_figures(hits) if console() is None else print_hits(hits, many=False, explained=True)
    if shown.explained:
        for note in shown.stats.notes:
            click.echo(safe(f"\nnote: {note}"))
        return
    embedder = shown.stats.embedder or "keyword search only, without an embedder"
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
) -> Shown:
    """Show recall on a few memories in a temporary store."""
    with tempfile.TemporaryDirectory(prefix="recallite-demo-") as folder:
        context.obj = str(Path(folder) / "demo.db")
        with open_memory(context, create=True) as memory, progress("remembering", "memories") as report:
            began = perf_counter()
            memory.remember_many([{"text": text} for text in MEMORIES], on_progress=report)
            remember_ms = (perf_counter() - began) * 1e3
            answers = [memory.recall(question, limit=_SHOWN, purpose="explain") for question in QUESTIONS]
            return Shown(remember_ms, answers, memory.store.stats(), explain)
