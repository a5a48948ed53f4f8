"""A large memory with links, long logs of episodes, and writes that link.

- 500,000 links between random ones of 100,000 records: nearly every link of a candidate brings in a record that nothing
  else found, which is the worst case. Recall is measured with spreading and without.
- Durable writes of one record, its vector given, with auto-linking and without.
- Consolidation of 100,000 episodes of one agent while a second thread recalls: a cycle that fades all, one that also
  prunes the oldest tenth, and one that prunes every tenth of the rest.
"""

from __future__ import annotations

import io
import itertools
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpus
from benchmarks.cases.agent_life import AGENT, SCOPE
from benchmarks.dataset import Dataset
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import seconds
from recallite import Memory, Settings
from recallite.model.records import NewRecord
from recallite.model.settings import Consolidation, WritePolicy
from recallite.recall.request import recall_arguments

__all__ = ["CASE"]

# `prune_threshold` of each cycle; `_episodes` gives the importance that makes it prune what its name says.
CYCLES = {"fading": 0.0, "pruning the oldest tenth": 0.1, "pruning every tenth": 0.1}
_LINKS_A_RECORD, _WRITES = 5, 150
_POLICIES = {"plain": WritePolicy(), "linking": WritePolicy(link_cosine=0.85)}


@contextmanager
def _setup(context: Context) -> Iterator[Dataset]:
    yield context.dataset


def _tables(data: Dataset, context: Context) -> Iterator[Timing | Figures]:
    writes = context.count(_WRITES)
    with Memory(context.folder / "linked.db") as memory:
        ids = memory.remember_many(corpus.items(data.lines, data.vectors))
        memory.store.catch_up()
        memory.store.warmup()
        options: dict[str, dict[str, Any]] = {"without spreading": {"neighbor_boost": 0.0}, "with spreading": {}}
        ways = {name: _recalling(memory, data, choices) for name, choices in options.items()}
        yield Timing("recall before there are links", ways, context.rounds)
        links = memory.transfer.import_(io.StringIO("".join(_links(ids))), format="jsonl").links
        yield Timing(f"recall among {links:,} links", ways, context.rounds)
        yield Timing("durable write, scope of a hundredth", _writing(memory, data, "/team/7"), writes, warm_up=0)
    path = context.folder / "episodes.db"
    with Memory(path) as memory:
        memory.remember_many(_episodes(data))
        memory.store.catch_up()
        memory.store.warmup()
        yield Timing("durable write, one scope", _writing(memory, data, SCOPE, kind="episode"), writes, warm_up=0)
        yield Timing("recall with no cycle", {"idle": _recalling(memory, data, {})}, context.rounds)
    rows = {name: _cycle(data, path, threshold) for name, threshold in CYCLES.items()}
    yield Figures("a cycle while a thread recalls", rows)


def _recalling(memory: Memory, data: Dataset, options: dict[str, Any]) -> Callable[[int], object]:
    def recall(number: int) -> object:
        place = number % len(data.questions)
        return memory.recall(data.questions[place], vector=data.asked[place], **recall_arguments(options))

    return recall


def _links(ids: list[str]) -> Iterator[str]:
    draw = random.Random(0)
    for source in ids:
        for target in draw.sample(ids, _LINKS_A_RECORD + 1)[:_LINKS_A_RECORD]:
            if target != source:
                link = {"source": source, "target": target, "type": "similar", "strength": draw.uniform(0.85, 1.0)}
                yield json.dumps({"link": link}) + "\n"


def _writing(memory: Memory, data: Dataset, scope: str, **fields: Any) -> dict[str, Callable[[int], object]]:
    """Writes of lines that the store holds already in this scope, so that each is linked."""
    in_scope = [place for place, item in enumerate(corpus.items(data.lines)) if scope in (item["scope"], SCOPE)]

    def write(number: int, step: int, policy: WritePolicy) -> object:
        at = in_scope[(2 * number + step) * len(in_scope) // (2 * _WRITES) % len(in_scope)]
        return memory.remember(NewRecord(data.lines[at], vector=data.vectors[at], scope=scope, **fields), policy=policy)

    return {
        name: lambda number, step=step, policy=policy: write(number, step, policy)
        for step, (name, policy) in enumerate(_POLICIES.items())
    }


def _cycle(data: Dataset, path: Path, threshold: float) -> dict[str, Any]:
    consolidation = Consolidation(threshold=10 * len(data.lines), prune_threshold=threshold)
    with Memory(path, settings=Settings(consolidation=consolidation)) as memory:
        memory.store.warmup()
        memory.episodes.log("one more", event_type="observation", agent=AGENT)
        recall, cycles = _recalling(memory, data, {}), list[Any]()
        with _reading(recall) as times:
            spent = seconds(lambda: cycles.append(memory.consolidator.run(AGENT)))
        after = seconds(lambda: recall(0)) * 1e3
    return {
        "seconds": spent, "faded": cycles[0].compressed, "pruned": cycles[0].pruned,
        "recall meanwhile, p50 ms": float(np.median(times)), "longest, ms": max(times), "recall after it, ms": after,
    }  # fmt: skip


def _episodes(data: Dataset) -> Iterator[dict[str, Any]]:
    for place, item in enumerate(corpus.items(data.lines, data.vectors)):
        importance = 0.1 if place < len(data.lines) // 10 else 0.115 if place % 10 == 0 else 0.5
        yield {**item, "kind": "episode", "scope": SCOPE, "importance": importance}


@contextmanager
def _reading(recall: Callable[[int], object]) -> Iterator[list[float]]:
    """Milliseconds of recalls that a thread makes one after the other while the block runs."""
    times: list[float] = []
    stopped = threading.Event()

    def read() -> None:
        for at in itertools.count():
            times.append(seconds(lambda at=at: recall(at)) * 1e3)
            if stopped.is_set():
                return

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield times
    finally:
        stopped.set()
        thread.join()


CASE = Case("agent_links", "what links add to a recall and a write, and consolidation", _setup, _tables, rounds=400)
