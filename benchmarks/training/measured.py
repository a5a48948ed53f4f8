"""The training stores as recall sees them: the features of the best candidates of every question.

Every turn is remembered once, in one store in memory; each conversation has a scope, so that a question is asked of its
own, and a scope above it is a larger store of a dozen conversations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.training import data
from benchmarks.training.measuring import measure_queries
from recallite import Memory
from recallite.embedding import Embedder
from recallite.recall.request import build_request

# Conversations of one larger store. Facts contradict those of another store, so they have none.
_TOGETHER = 12
_ALONE = ("facts",)
# Of a set with more turns its first conversations: QMSum has 36,000 turns for 300 questions.
_MOST_TURNS = 12_000


class MeasuredQuestion(NamedTuple):
    """A question and its best candidates, best first by the formula.

    - kind: the set, and how it was asked: "own" of its conversation, "many" of a dozen
    - features: float64 (features, candidates), in rows as `recallite.recall.plan.FEATURES` names them
    - answers: bool (candidates,), which of them answer the question; `wanted`: how many records do
    """

    set: str
    kind: str
    store: str
    question: str
    answerable: bool
    features: NDArray[np.float64]
    answers: NDArray[np.bool_]
    wanted: int


def measure(repositories: Path, embedder: Embedder, depth: int = 100) -> list[MeasuredQuestion]:
    """Every question of the split "ranking", by the best `depth` candidates of the formula."""
    measured: list[MeasuredQuestion] = []
    stores = data.stores(repositories, "ranking")
    for name, stores_of_set in itertools.groupby(stores, lambda store: store.name.split("/")[0]):
        with Memory(":memory:", embedder=embedder) as memory:
            measured += _measured(memory, name, _first(list(stores_of_set)), depth)
    return measured


def _first(stores: Sequence[data.Store]) -> list[data.Store]:
    turns = itertools.accumulate(len(store.turns) for store in stores)
    return [store for store, count in zip(stores, turns, strict=True) if count <= _MOST_TURNS]


def _measured(memory: Memory, name: str, stores: Sequence[data.Store], depth: int) -> Iterator[MeasuredQuestion]:
    above = [f"/{name}/{place // _TOGETHER}" for place in range(len(stores))]
    scopes = [f"{scope}/{place}" for place, scope in enumerate(above)]
    turns = [{**turn, "scope": scope} for store, scope in zip(stores, scopes, strict=True) for turn in store.turns]
    # Sources of different conversations must differ: they would be neighbours in the larger store.
    for turn in turns:
        turn["source"] = None if turn.get("source") is None else f"{turn['scope']} {turn['source']}"
    ids = memory.remember_many(turns)
    first = 0
    for store, scope, larger in zip(stores, scopes, above, strict=True):
        store_ids = ids[first : first + len(store.turns)]
        first += len(store.turns)
        for kind, base in [("own", scope)] if name in _ALONE else [("own", scope), ("many", larger)]:
            # Ages are no feature: they count beside what is learned.
            request = build_request(base, "default", profile={"half_life_days": 0})
            texts = [question.text for question in store.questions]
            for question, answer in zip(
                store.questions, measure_queries(memory._engine, texts, request, depth), strict=True
            ):
                gold = {store_ids[place] for place in question.gold}
                answers = np.array([id in gold for id in answer.ids], dtype=bool)
                yield MeasuredQuestion(
                    name, kind, store.name, question.text, question.answerable, answer.features, answers, len(gold)
                )
