"""Each part of the ranking turned off in turn, on lines with speakers, dated sessions and token codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import corpus
from benchmarks.at_hand import AtHand
from benchmarks.compare.ways import OFF
from benchmarks.harness.case import Case, Context, Timing
from recallite import Memory, Settings
from recallite.recall.request import recall_arguments

__all__ = ["CASE"]

VARIANTS: dict[str, dict[str, Any]] = {
    "all turned off": OFF,
    "default": {},
    "without looking for changes": {"superseded": "as_ranked"},
    "without learned ranking": {"learned_ranking": False},
    "without it and reranking": {"learned_ranking": False, "rerank_weight": 0.0},
    "without it, speakers and dates": {"learned_ranking": False, "speaker_weight": 0.0, "date_weight": 0.0},
}


@contextmanager
def _setup(context: Context) -> Iterator[tuple[Memory, list[str]]]:
    data = context.dataset
    questions = [_question(place, text) for place, text in enumerate(data.questions)]
    settings = Settings(token_codes=True)
    with Memory(":memory:", embedder=AtHand(data, questions), settings=settings) as memory:
        memory.remember_many(corpus.sessions(data.lines))
        memory.store.catch_up()
        memory.store.warmup()
        yield memory, questions


def _question(place: int, text: str) -> str:
    """A third of the questions name a speaker, a third a month."""
    if place % 3 == 1:
        return f"What did {corpus.SPEAKERS[place % len(corpus.SPEAKERS)]} say about {text}"
    return f"In {corpus.BEGAN.replace(month=place % 12 + 1):%B}: {text}" if place % 3 == 2 else text


def _tables(state: tuple[Memory, list[str]], context: Context) -> Iterator[Timing]:
    memory, questions = state
    ways = {
        name: lambda number, options=options: memory.recall(
            questions[number % len(questions)], **recall_arguments(options)
        )
        for name, options in VARIANTS.items()
    }
    yield Timing("single recall, vector ready", ways, context.rounds, warm_up=30)


CASE = Case("recall_cost", "what each part of the ranking adds to a recall", _setup, _tables, rounds=600)
