"""A large memory with links, long logs of episodes, and writes that link: what each adds.

- links: 100,000 semantic records, 500,000 links between random ones. Random ends are the worst case: nearly every
  link of a candidate brings in a record that nothing else found. Recall is measured with spreading and without, turn
  by turn on the linked store, and with spreading before there were links.
- linking: durable writes of one record, its vector given, with auto-linking and without, turn by turn.
- consolidation: 100,000 episodes of one agent, while a second thread recalls as fast as it can: a cycle that fades all,
  one that also prunes the oldest tenth, as happens where all began alike, and one that prunes every tenth of the rest.
"""

from __future__ import annotations

import io
import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.agents.life import AGENT, SCOPE
from benchmarks.dataset import Dataset
from benchmarks.latency.figures import percentiles
from recallite import Memory, Settings
from recallite.model.policies import Consolidation, WritePolicy

__all__ = ["CYCLES", "evaluate"]

# What each cycle does, and its prune_threshold; `_episodes` gives the importance that makes it so.
CYCLES = {"fading": 0.0, "pruning the oldest tenth": 0.1, "pruning every tenth": 0.1}

LINKS_A_RECORD = 5
_ASKED, _WARM_UP, _WRITES = 400, 50, 150
_LINKING = WritePolicy(link_cosine=0.85)


def evaluate(data: Dataset, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All three."""
    say("records and links")
    measured: dict[str, Any] = {"records": len(data.lines)}
    with Memory(folder / "linked.db", settings=Settings(query_cache_size=0)) as memory:
        ids = memory.remember_many(corpus.items(data.lines, data.vectors))
        memory.warmup()
        _ask(memory, data, {"warm": {}}, _WARM_UP)
        before = _ask(memory, data, {"spread": {}}, _ASKED)["spread"]
        began = time.perf_counter()
        links = memory.import_(io.StringIO("".join(_links(ids))), format="jsonl").links
        measured["links"] = {"count": links, "import_s": round(time.perf_counter() - began, 2), "before": before}
        _ask(memory, data, {"warm": {}}, _WARM_UP)
        say("recall with spreading and without")
        measured["links"] |= _ask(memory, data, {"spread": {}, "no spread": {"spread": 0.0}}, _ASKED)
        say("writes that link")
        measured["linking"] = {"a scope of a hundredth": _write(memory, data, "/team/7")}
    say("episodes and their consolidation")
    path = folder / "episodes.db"
    with Memory(path, settings=Settings(query_cache_size=0)) as memory:
        memory.remember_many(_episodes(data))
        memory.warmup()
        measured["linking"]["one scope"] = _write(memory, data, SCOPE, kind="episode")
        idle = _ask(memory, data, {"idle": {}}, _ASKED)["idle"]
    measured["consolidation"] = {"reader_idle": idle, **_consolidate(data, path)}
    return measured


def _links(ids: list[str]) -> Iterator[str]:
    draw = random.Random(0)
    for source in ids:
        for target in draw.sample(ids, LINKS_A_RECORD + 1)[:LINKS_A_RECORD]:
            if target != source:
                link = {"source": source, "target": target, "type": "similar", "strength": draw.uniform(0.85, 1.0)}
                yield json.dumps({"link": link}) + "\n"


def _ask(memory: Memory, data: Dataset, variants: dict[str, dict[str, Any]], count: int) -> dict[str, Any]:
    """Latency of each variant of the same questions, asked in turn, vectors ready."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for place in range(count):
        at = place % len(data.questions)
        for name, options in variants.items():
            began = time.perf_counter()
            memory.recall(data.questions[at], vector=data.asked[at], **options)
            times[name].append((time.perf_counter() - began) * 1e3)
    return {name: percentiles(each) for name, each in times.items()}


def _write(memory: Memory, data: Dataset, scope: str, **fields: Any) -> dict[str, Any]:
    """Durable writes of lines that the store holds already in this scope, so that each is linked."""
    own = [place for place, item in enumerate(corpus.items(data.lines)) if scope in (item["scope"], SCOPE)]
    kinds = {"plain": WritePolicy(), "linking": _LINKING}
    times: dict[str, list[float]] = {name: [] for name in kinds}
    before = memory.stats().links
    for place in range(_WRITES):
        for name, policy in kinds.items():
            at = own[(2 * place + (name == "linking")) * len(own) // (2 * _WRITES)]
            began = time.perf_counter()
            memory.remember(data.lines[at], vector=data.vectors[at], scope=scope, policy=policy, **fields)
            times[name].append((time.perf_counter() - began) * 1e3)
    return {**{name: percentiles(each) for name, each in times.items()}, "links": memory.stats().links - before}


def _consolidate(data: Dataset, path: Path) -> dict[str, Any]:
    """Each cycle over every line as an episode, while a reader recalls."""
    measured: dict[str, Any] = {}
    for name, threshold in CYCLES.items():
        measured[name] = _cycle(data, path, Consolidation(threshold=10 * len(data.lines), prune_threshold=threshold))
    with Memory(path) as memory:
        measured["verify_clean"] = memory.verify().ok
    return measured


def _cycle(data: Dataset, path: Path, consolidation: Consolidation) -> dict[str, Any]:
    with Memory(path, settings=Settings(query_cache_size=0, consolidation=consolidation)) as memory:
        memory.warmup()
        memory.episodes.log("one more", event_type="observation", agent=AGENT)
        with _Reader(memory, data) as reader:
            began = time.perf_counter()
            cycle = memory.consolidator.run(AGENT)
            seconds = time.perf_counter() - began
        began = time.perf_counter()
        memory.recall(data.questions[0], vector=data.asked[0])
        after = (time.perf_counter() - began) * 1e3
    return {
        "seconds": round(seconds, 3), "compressed": cycle.compressed, "pruned": cycle.pruned,
        "reader_during": percentiles(reader.times), "longest_read_ms": round(max(reader.times), 2),
        "next_recall_ms": round(after, 2),
    }  # fmt: skip


def _episodes(data: Dataset) -> Iterator[dict[str, Any]]:
    for place, item in enumerate(corpus.items(data.lines, data.vectors)):
        importance = 0.1 if place < len(data.lines) // 10 else 0.115 if place % 10 == 0 else 0.5
        yield {**item, "kind": "episode", "scope": SCOPE, "importance": importance}


class _Reader:
    """Recalls in a thread of its own while the block runs."""

    def __init__(self, memory: Memory, data: Dataset) -> None:
        self._memory, self._data = memory, data
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.times: list[float] = []

    def _read(self) -> None:
        for at in itertools.cycle(range(len(self._data.questions))):
            if self._stopped.is_set():
                return
            began = time.perf_counter()
            self._memory.recall(self._data.questions[at], vector=self._data.asked[at])
            self.times.append((time.perf_counter() - began) * 1e3)

    def __enter__(self) -> _Reader:
        self._thread.start()
        return self

    def __exit__(self, *fault: object) -> None:
        self._stopped.set()
        self._thread.join()
