"""Fits the chance that a request needs a memory: python -m benchmarks.training.requests.

A logistic regression on `requests_dev` of `benchmarks.quality`: every prompt is asked of its own store, and prompts of
daily life of the stores of code too, and these of those, where they need nothing. What decides nothing but concerns a
prompt counts as needed: it does no harm. Also prints, with each store left out of the fit, what the cuts keep.
"""

from __future__ import annotations

import json
import tomllib
from itertools import product
from math import exp, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.requests import TABLES
from benchmarks.training.logistic import fit_logistic
from recallite import Memory
from recallite.embedding import load
from recallite.recall.confidence import MOST_WEIGHED, NEEDS_FILE, need_signals

_NAMES = ("cosine", "standing", "rules", "words")
_LIFE = frozenset(("meals", "trips", "money", "wellbeing"))
_ELSEWHERE, _RIDGE = 0.15, 0.01
_CUTS = ((-0.25, -1.0), (0.0, -1.0), (0.25, -1.0), (0.5, -1.0), (0.25, -0.5))


class Observed(NamedTuple):
    """A hit of a prompt: its evidence, whether it is needed or concerns the prompt, and whose store it is."""

    store: str
    prompt: str
    own: bool
    evidence: tuple[float, ...]
    needed: bool
    concerns: bool


def main() -> None:
    """Fit, print and save."""
    observed = list(_observe(tomllib.loads(TABLES["dev"].read_text("utf-8"))))
    for first, least in _CUTS:
        print(
            f"best {1 / (1 + exp(-first)):.2f}, others {1 / (1 + exp(-least)):.2f}:", _figures(observed, first, least)
        )
    fitted = dict(zip((*_NAMES, "bias"), _fit(observed).round(4).tolist(), strict=True))
    made = {"made_by": "python -m benchmarks.training.requests", "embedder": load("default").name, **fitted}
    NEEDS_FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def _observe(stores: dict[str, Any]) -> Any:
    for (name, store), (other, of_other) in product(stores.items(), repeat=2):
        if name != other and (name in _LIFE) == (other in _LIFE):
            continue
        with Memory(":memory:") as memory:
            keys = dict(zip(memory.remember_many([*store["memories"].values()]), store["memories"], strict=True))
            for prompt, needs in of_other["prompts"].items():
                named = frozenset(needs if name == other else ())
                for hit in memory.recall(prompt, limit=MOST_WEIGHED, profile={"standing_instructions": 0}):
                    key, words = keys[hit.id], log(1 + min(len(prompt.split()), 12))
                    evidence = (hit.signals["cosine"], *need_signals(hit.text), words)
                    needed = key in named
                    yield Observed(name, prompt, name == other, evidence, needed, needed or f"{key}?" in named)


def _fit(observed: list[Observed]) -> NDArray[np.float64]:
    values = np.array([one.evidence for one in observed])
    truth = np.array([one.concerns for one in observed])
    weights = np.array([1.0 if one.own else _ELSEWHERE for one in observed])
    return fit_logistic(values, truth, weights, np.zeros(len(_NAMES), np.int64), _RIDGE)


def _figures(observed: list[Observed], first: float, least: float) -> dict[str, float]:
    """The shares of needed memories that are kept, and of requests that need nothing and get something."""
    kept = shown = useless = 0
    quiet: dict[bool, list[bool]] = {True: [], False: []}
    for store in dict.fromkeys(one.store for one in observed):
        fitted = _fit([one for one in observed if one.store != store])
        of_store = [one for one in observed if one.store == store]
        for prompt, own in dict.fromkeys((one.prompt, one.own) for one in of_store):
            hits = [one for one in of_store if (one.prompt, one.own) == (prompt, own)]
            odds = [float(np.dot(one.evidence, fitted[:-1]) + fitted[-1]) for one in hits]
            best = sorted(zip(odds, hits, strict=True), key=lambda pair: -pair[0])[:5]
            left = [hit for logit, hit in best if best[0][0] >= first and logit >= least]
            if own:
                kept, shown = kept + sum(hit.needed for hit in left), shown + len(left)
                useless += sum(not hit.concerns for hit in left)
            if not any(hit.concerns for hit in hits):
                quiet[own].append(bool(left))
    needed = sum(one.needed for one in observed)
    return {
        "kept": round(kept / needed, 3), "useless": round(useless / max(shown, 1), 3),
        "nothing": round(float(np.mean(quiet[True])), 3), "elsewhere": round(float(np.mean(quiet[False])), 3),
    }  # fmt: skip


if __name__ == "__main__":
    main()
