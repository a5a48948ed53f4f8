"""Languages: does recall find, keep silent and know standing instructions in ten languages?

English, German, French, Spanish, Portuguese, Italian, Japanese, Chinese, Russian and Korean, each with a store of 24
memories of its own in `languages_dev.toml` and another in `languages_held.toml`, by other subjects and words. Choose on
`dev` and report on `held`: of `held` only figures are saved. A store's part of the file is

- `asked`: questions in other words than the memory that answers; `named`: questions with the rare words of theirs;
  `told`: the other memories. No other memory answers, in a store of all languages neither;
- `unrelated`: questions about the world; `left_out`: questions on subjects of the store; `prompts`: what is typed to a
  coding agent in between. No memory answers any;
- `standing`: instructions, preferences and rules that hold from then on; `not_standing`: requests for once,
  descriptions, stories, questions and what others said, with the words that instructions have.

"first" is the share of `asked` whose first hit in plain recall is their memory, "kept" of those with it among the hits
with `relevant=True`, "named first" and "named kept" the same of `named`. "unrelated" and "left out" are the shares with
any hit with `relevant=True`. "shown" is the share of `asked` and `named` to which the hook of a prompt adds their
memory, "prompts" that of `prompts` to which it adds any. "missed" and "wrong" are the shares of `standing` that
`remember` does not find to be standing, and of `not_standing` that it does. Column "mixed" has one store of all.
"""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.quality.result import OpenMemory, Progress, Tally
from recallite import Memory
from recallite_server.hooks.events import answer

__all__ = ["METRICS", "SCOPE", "TABLES", "evaluate", "read", "shown_by_hook"]

TABLES = {part: Path(__file__).with_name(f"languages_{part}.toml") for part in ("dev", "held")}
METRICS = (
    "first", "kept", "named first", "named kept", "unrelated", "left out", "shown", "prompts", "missed", "wrong",
)  # fmt: skip
SCOPE = "/user"


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The parts of a file by language."""
    return tomllib.loads(path.read_text("utf-8"))


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The shares of the file `data`, by language too, and what went wrong unless it is `held`."""
    tally = Tally(["default", "mixed"])
    stores = read(data)
    missed: dict[str, list[str]] = {column: [] for column in ("default", "mixed")}
    for done, (language, store) in enumerate(stores.items(), 1):
        with open_memory() as memory:
            missed["default"] += _ask(tally, "default", memory, {language: store})
        with open_memory() as memory:
            for metric, expected in (("missed", True), ("wrong", False)):
                for text in store["standing" if expected else "not_standing"]:
                    fault = (memory.remember(text).standing is not None) != expected
                    tally.add("default", {metric: float(fault)}, language)
                    missed["default"] += [f"{language}, {metric}: {text}"] if fault else []
        on_progress(done, len(stores) + 1)
    with open_memory() as memory:
        missed["mixed"] += _ask(tally, "mixed", memory, stores)
    on_progress(len(stores) + 1, len(stores) + 1)
    part = data.stem.rpartition("_")[2]
    return tally.result(stores=len(stores), part=part, **({} if part == "held" else {"missed": missed}))


def _ask(tally: Tally, column: str, memory: Memory, stores: dict[str, dict[str, Any]]) -> list[str]:
    """Ask one store of all the memories, and the hook of it; what went wrong."""
    texts = [text for one in stores.values() for text in (*one["told"], *one["asked"].values(), *one["named"].values())]
    random.Random(" ".join(stores)).shuffle(texts)
    ids = dict(zip(texts, tally.remember(memory, [{"text": text, "scope": SCOPE} for text in texts]), strict=True))
    missed = []
    for language, store in stores.items():
        golds = {question: ids[text] for kind in ("asked", "named") for question, text in store[kind].items()}
        questions = [*golds, *store["unrelated"], *store["left_out"]]
        with tally.timed(column):
            answers = memory.recall_many(questions, relevant=True)
        plain = memory.recall_many(questions, limit=1)
        for question, hits, ranked in zip(questions, answers, plain, strict=True):
            if (gold := golds.get(question)) is None:
                figures = {"unrelated" if question in store["unrelated"] else "left out": float(bool(hits))}
                fault = bool(hits)
            else:
                kind = "" if question in store["asked"] else "named "
                figures = {
                    f"{kind}first": float([hit.id for hit in ranked] == [gold]),
                    f"{kind}kept": float(gold in {hit.id for hit in hits}),
                    "shown": float(gold in shown_by_hook(memory, f"{column} {question}", question)),
                }
                fault = min(figures.values()) == 0
            tally.add(column, figures, language)
            if fault:
                seen = [f"{hit.confidence:.2f} {hit.text}" for hit in (hits or ranked)[:3]]
                missed.append(f"{language}, {figures}: {question} {seen}")
        for prompt in store["prompts"]:
            shown = shown_by_hook(memory, f"{column} {prompt}", prompt)
            tally.add(column, {"prompts": float(bool(shown))}, language)
            if shown:
                missed.append(f"{language}, prompts: {prompt} {[text for text in texts if ids[text] in shown]}")
    return missed


def shown_by_hook(memory: Memory, session: str, prompt: str) -> str:
    """What the hook adds to the first prompt of a session."""
    payload = {"session_id": session, "cwd": "/", "hook_event_name": "UserPromptSubmit", "prompt": prompt}
    return answer(memory, "prompt", "claude-code", payload, SCOPE)
