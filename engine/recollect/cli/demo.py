"""The command demo: Recollect remembers texts about itself and answers questions from them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from recollect.cli.options import AsJson, open_memory
from recollect.cli.output import print_json, progress, safe
from recollect.cli.read import stage_times

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.records import Hits

__all__ = ["demo", "paragraphs"]

QUESTIONS = (
    "May several processes write to one store?",
    "How do old memories compare with new ones?",
    "Why is searching a million vectors so fast?",
    "What happens to my notes when the embedding model is broken?",
    "What does a train ticket to Lisbon cost?",
)
_SHOWN = 3


def demo(context: typer.Context, as_json: AsJson = False) -> None:
    """Remember texts about Recollect in a temporary store, ask a few questions, and show why each hit was found."""
    with tempfile.TemporaryDirectory(prefix="recollect-demo-") as folder:
        context.obj = str(Path(folder) / "demo.db")
        with open_memory(context) as memory, progress("remembering", "paragraphs") as report:
            items = list(paragraphs())
            began = perf_counter()
            memory.remember_many(items, on_progress=report)
            remembered_ms = (perf_counter() - began) * 1e3
            answers = [memory.recall(question, limit=_SHOWN, explain=True) for question in QUESTIONS]
            shown = _shown(memory, len(items), remembered_ms, answers)
    print_json(shown) if as_json else _print(shown, answers)


def paragraphs() -> Iterator[dict[str, Any]]:
    """The paragraphs of the texts that are installed with this command, each with its headings."""
    folder = resources.files("recollect.cli") / "demo_texts"
    for document in sorted(folder.iterdir(), key=lambda each: each.name):
        if not document.name.endswith(".md"):
            continue
        title = heading = ""
        place = 0
        for block in document.read_text(encoding="utf-8").split("\n\n"):
            text = block.strip()
            if text.startswith("# "):
                title = heading = text.removeprefix("# ")
            elif text.startswith("## "):
                heading = text.removeprefix("## ")
            elif text:
                yield {"text": text, "context": f"{title}: {heading}", "source": document.name, "position": place}
                place += 1


def _shown(memory: Memory, remembered: int, remembered_ms: float, answers: list[Hits]) -> dict[str, Any]:
    stats = memory.stats()
    return {
        "memories": remembered,
        "remember_ms": remembered_ms,
        "embedder": stats.embedder,
        "kernels": stats.kernels,
        "mode": stats.mode,
        "notes": stats.notes,
        "questions": [
            {
                "query": hits.query, "hits": list(hits), "evidence_gaps": hits.evidence_gaps, "stages": hits.stages,
            }
            for hits in answers
        ],
    }  # fmt: skip


def _print(shown: dict[str, Any], answers: list[Hits]) -> None:
    embedder = shown["embedder"] or "no embedder"
    typer.echo(
        f"Remembered {shown['memories']} paragraphs about Recollect in {shown['remember_ms']:.0f} ms, "
        f"loading the model included ({shown['mode']}, {embedder}, {shown['kernels']} kernels)."
    )
    for note in shown["notes"]:
        typer.echo(safe(f"Note: {note}"))
    for hits in answers:
        typer.echo("")
        typer.secho(hits.query, bold=True)
        for place, hit in enumerate(hits, 1):
            where = f"{hit.source.id}, paragraph {(hit.source.position or 0) + 1}" if hit.source else hit.scope
            typer.echo(f"  {place}. score {hit.score:.2f}, confidence {hit.confidence:.2f}  {where}")
            typer.echo(safe(f"     {hit.text}"))
            signals = ", ".join(f"{name} {value:.3f}" for name, value in hit.signals.items())
            typer.secho(f"     found by {', '.join(hit.match_reasons) or 'nothing in particular'}: {signals}", dim=True)
        for gap in hits.evidence_gaps:
            typer.secho(safe(f"  gap: {gap}"), fg="yellow")
        typer.secho(f"  {stage_times(hits.stages)}", dim=True)
