"""Where to cut a workspace's search: unanswerable questions that get results, against answerable ones that lose theirs.

LongMemEval-S: each question has a folder of its sessions, as in `benchmarks.quality.workspace`; it is asked of its own
folder and of three others, whose sessions do not answer it. Its abstention questions are asked of their own folder and
are unanswerable there. LoCoMo: each conversation is a folder with a file a session; its questions (categories 1 to 4)
are asked of its own folder and of the others', the speakers' names replaced by "someone", as the names alone would
tell. Its adversarial questions (category 5: the right topic and the wrong person or thing) are a set of their own.

A question is answered where any result passes. An answerable one is lost where a file that answers it is among the
first six without a threshold, and not with it. Every other question chooses the threshold of a variant: least sum of
the share answered and twice the share lost, as a mean over both sets: what is stored and not found costs more than what
is found and does not help. The rest reports it, and what memweave's threshold and the default do.

python -m benchmarks.quality.threshold --data DIR [--cache DIR] [--out FILE]
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.environment import describe
from benchmarks.quality.confidence import masked
from benchmarks.quality.locomo import read
from benchmarks.quality.workspace import write_sessions
from recallite import Workspace
from recallite.embedding import load
from recallite.notes import SearchResults
from recallite.notes.search import MIN_CONFIDENCE, MIN_SCORE

__all__ = ["evaluate", "main"]

RESULTS = Path(__file__).resolve().parents[1] / "results" / "workspace_threshold.json"
STRATEGIES = ("hybrid", "vector", "keyword")
SETS = ("LongMemEval-S", "LoCoMo")
HARD = ("abstention", "adversarial")
_SHOWN = 6
_FOUND = 24
_OTHERS = (7, 19, 31)
_LOSS = 2.0
VARIANTS = {
    "cosine": ("vector_score", [round(0.02 * step, 2) for step in range(5, 36)]),
    "score": ("score", [round(0.02 * step, 2) for step in range(5, 41)]),
    "confidence": (
        "confidence",
        [0.003, 0.005, 0.0075, 0.01, 0.015, *(round(0.02 * step, 2) for step in range(1, 45))],
    ),
}


class Asked(NamedTuple):
    """A question asked of a folder: each result's place in the order of scores, numbers, and whether it answers."""

    of: str
    answerable: bool
    rows: tuple[tuple[dict[str, float | None], bool], ...]
    chooses: bool

    def passing(self, number: str, least: float) -> list[bool]:
        """Whether each of the results that pass, six at most, answers."""
        passed = [right for numbers, right in self.rows if (numbers[number] or 0.0) >= least]
        return passed[:_SHOWN]


def main() -> None:
    """Run it and save what it gives, or print a saved run as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.threshold", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with longmemeval_s*.json.gz and locomo*.json.gz")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--every", type=int, default=1, help="of LongMemEval-S, the folder of every n-th question")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--render", action="store_true", help="print the saved result as Markdown and run nothing")
    options = parser.parse_args()
    if not options.render:
        if options.data is None:
            parser.error("--data is needed: the folder with the sets")
        options.out.write_text(
            json.dumps(evaluate(options.data, options.cache, options.every), indent=2) + "\n", encoding="utf-8"
        )
    print(markdown(json.loads(options.out.read_text(encoding="utf-8"))))


def evaluate(data: Path, cache: Path | None, every: int = 1) -> dict[str, Any]:
    """By strategy and variant, the threshold chosen on one half and both shares on the other."""
    embedder = CachedEmbedder(load(None), None if cache is None else cache / "threshold")
    asked: dict[str, list[Asked]] = {strategy: [] for strategy in STRATEGIES}
    for answers in (_locomo(data, embedder), _longmemeval(data, embedder, every)):
        for strategy, one in answers:
            asked[strategy].append(one)
        embedder.flush()
    counts = {
        name: {
            "answerable": sum(each.of == name and each.answerable for each in asked["hybrid"]),
            "unanswerable": sum(each.of == name and not each.answerable for each in asked["hybrid"]),
        }
        for name in (*SETS, *HARD)
    }
    return {
        **describe(), "every": every, "counts": counts,
        "figures": {strategy: _variants(strategy, ones) for strategy, ones in asked.items()},
    }  # fmt: skip


def markdown(run: dict[str, Any]) -> str:
    """The table of a run: shares of the half that did not choose, in percent."""
    lines = [
        f"| strategy | variant | threshold | {' | '.join(f'{name}: answered, lost' for name in SETS)} | "
        f"{' | '.join(f'{name}: answered' for name in HARD)} |",
        f"| --- | --- | ---: |{' ---: |' * (len(SETS) + len(HARD))}",
    ]
    for strategy, variants in run["figures"].items():
        for name, figures in variants.items():
            shares = [f"{100 * figures[each]['answered']:.0f}, {100 * figures[each]['lost']:.0f}" for each in SETS]
            shares += [f"{100 * figures[each]['answered']:.0f}" for each in HARD]
            lines.append(f"| {strategy} | {name} | {figures['threshold']:g} | {' | '.join(shares)} |")
    said = "; ".join(
        f"{name}: {count['answerable']:,} answerable, {count['unanswerable']:,} unanswerable"
        for name, count in run["counts"].items()
    )
    return "\n".join([*lines, "", f"{said}. Commit {run['commit']}."])


def _variants(strategy: str, asked: Sequence[Asked]) -> dict[str, dict[str, Any]]:
    choosing = [each for each in asked if each.chooses]
    reporting = [each for each in asked if not each.chooses]
    found: dict[str, dict[str, Any]] = {}
    for name, (number, thresholds) in VARIANTS.items():
        if strategy == "keyword" and number == "vector_score":
            continue
        costs = {least: _cost(choosing, number, least) for least in thresholds}
        best = min(costs, key=lambda least: costs[least])
        found[name] = {"threshold": best, **_shares(reporting, number, best)}
        found[name]["curve"] = {
            str(least): {each: _shares(asked, number, least)[each] for each in SETS} for least in thresholds[::2]
        }
    fixed = {"score 0.35": ("score", MIN_SCORE), "default": ("confidence", MIN_CONFIDENCE)}
    for name, (number, least) in fixed.items():
        found[name] = {"threshold": least, **_shares(reporting, number, least)}
    return found


def _cost(asked: Sequence[Asked], number: str, least: float) -> float:
    shares = _shares(asked, number, least)
    return fmean(shares[each]["answered"] + _LOSS * shares[each]["lost"] for each in SETS)


def _shares(asked: Sequence[Asked], number: str, least: float) -> dict[str, dict[str, float]]:
    """Of each set, the share of unanswerable questions that get a result, and of answerable ones that lose theirs."""
    shares = {}
    for name in (*SETS, *HARD):
        nothing = [each for each in asked if each.of == name and not each.answerable]
        something = [
            each
            for each in asked
            if each.of == name and each.answerable and any(right for _, right in each.rows[:_SHOWN])
        ]
        shares[name] = {
            "answered": _mean([bool(each.passing(number, least)) for each in nothing]),
            "lost": _mean([not any(each.passing(number, least)) for each in something]),
        }
    return shares


def _mean(values: Sequence[bool]) -> float:
    return round(fmean(values), 4) if values else 0.0


def _longmemeval(data: Path, embedder: CachedEmbedder, every: int) -> Iterator[tuple[str, Asked]]:
    (path,) = sorted(data.glob("longmemeval_s*.json.gz"))[:1]
    with gzip.open(path, "rt", encoding="utf-8") as file:
        samples = json.load(file)
    for place, sample in list(enumerate(samples))[::every]:
        with tempfile.TemporaryDirectory() as folder:
            gold = write_sessions(Path(folder), sample)
            with Workspace(folder, embedder=embedder) as workspace:
                workspace.index()
                own = sample["question_id"].endswith("_abs")
                yield from _ask(
                    workspace, sample["question"], "abstention" if own else SETS[0], set() if own else gold, place
                )
                for other in ((place + step) % len(samples) for step in _OTHERS):
                    if set(samples[other]["answer_session_ids"]).isdisjoint(sample["haystack_session_ids"]):
                        yield from _ask(workspace, samples[other]["question"], SETS[0], set(), other)
        print(f"{SETS[0]}: {place + 1} of {len(samples)}", end="\r", flush=True)


def _locomo(data: Path, embedder: CachedEmbedder) -> Iterator[tuple[str, Asked]]:
    conversations = list(read(data))
    for stored in conversations:
        with tempfile.TemporaryDirectory() as folder:
            sessions = groupby(stored.turns, key=lambda turn: turn["source"])
            file_of = {}
            for number, (name, turns) in enumerate(sessions):
                file_of[name] = f"memory/sessions/{number:03}.md"
                text = "\n\n".join(f"{turn['context']}: {turn['text']}" for turn in turns)
                (Path(folder) / file_of[name]).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / file_of[name]).write_text(text + "\n", encoding="utf-8")
            with Workspace(folder, embedder=embedder) as workspace:
                workspace.index()
                for asked in conversations:
                    for place, question in enumerate(asked.questions):
                        text = masked(question.text, asked.speakers)
                        gold = (
                            {file_of[stored.turns[turn]["source"]] for turn in question.gold}
                            if asked is stored
                            else set()
                        )
                        if question.category != 5:
                            yield from _ask(workspace, text, SETS[1], gold, place)
                        elif asked is stored:
                            yield from _ask(workspace, text, HARD[1], set(), place)


def _ask(workspace: Workspace, question: str, of: str, gold: set[str], place: int) -> Iterator[tuple[str, Asked]]:
    for strategy in STRATEGIES:
        found: SearchResults = workspace.search(question, strategy=strategy, max_results=_FOUND, min_score=0.0)
        rows = tuple(
            ({"score": each.score, "vector_score": each.vector_score, "confidence": each.confidence}, each.path in gold)
            for each in found
        )
        yield strategy, Asked(of, bool(gold), rows, place % 2 == 0)


if __name__ == "__main__":
    main()
