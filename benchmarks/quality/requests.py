"""Requests: does recall bring what a prompt that is no question needs, and nothing else?

Stores of 12 memories, of daily life and of projects of code, and prompts of which each has the memories that whoever
does it has to know, in `requests_dev.toml` and by other subjects and words in `requests_held.toml`: choose on `dev`,
report on `held`. Half of the memories are on their subject and no prompt needs them; two in five prompts need none.

"plain" is the share of the needed memories among the first five hits, "kept" that of those among the first five with
`relevant=True`, "useless" the share of the hits of these that are not needed, and "nothing" that of the prompts that
need none and get a hit. "shown" and "hook nothing" are the same of the hook of a prompt.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from benchmarks.quality.languages import SCOPE, shown_by_hook
from benchmarks.quality.result import OpenMemory, Progress, Tally

__all__ = ["METRICS", "TABLES", "evaluate"]

TABLES = {part: Path(__file__).with_name(f"requests_{part}.toml") for part in ("dev", "held")}
LIMIT = 5
METRICS = ("plain", "kept", "useless", "nothing", "shown", "hook nothing")


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The shares of the file `data`, of daily life and of code too, and what was shown unless it is `held`."""
    tally = Tally(["default"])
    stores = tomllib.loads(data.read_text("utf-8"))
    shown: dict[str, list[str]] = {}
    for done, (name, store) in enumerate(stores.items(), 1):
        with open_memory() as memory:
            texts, prompts = store["memories"], list(store["prompts"])
            ids = tally.remember(memory, [{"text": text, "scope": SCOPE} for text in texts.values()])
            key_of = dict(zip(ids, texts, strict=True))
            with tally.timed("default"):
                answers = memory.recall_many(prompts, limit=LIMIT, relevant=True)
            plain = memory.recall_many(prompts, limit=LIMIT)
            for prompt, hits, ranked in zip(prompts, answers, plain, strict=True):
                needs = store["prompts"][prompt]
                needed, harmless = ({key for key in needs if key[-1] != "?"}, {key.rstrip("?") for key in needs})
                kept = [key_of[hit.id] for hit in hits]
                hook = shown_by_hook(memory, f"{name} {prompt}", prompt)
                of_hook = {key for id, key in key_of.items() if id in hook}
                for key in needed:
                    found = {"plain": {key_of[hit.id] for hit in ranked}, "kept": kept, "shown": of_hook}
                    tally.add("default", {metric: float(key in keys) for metric, keys in found.items()}, name)
                for key in kept:
                    tally.add("default", {"useless": float(key not in harmless)}, name)
                if not needs:
                    tally.add("default", {"nothing": float(bool(kept)), "hook nothing": float(bool(of_hook))}, name)
                shown[f"{name}: {prompt}"] = kept
        on_progress(done, len(stores))
    part = data.stem.rpartition("_")[2]
    return tally.result(stores=len(stores), part=part, **({} if part == "held" else {"shown": shown}))
