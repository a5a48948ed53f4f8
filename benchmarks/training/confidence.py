"""Fits the confidence of a hit: python -m benchmarks.training.confidence --repositories DIR

Stores of the "ranking" split, with and without the answers of their questions (`questions.py`), are asked with every
set of signals that a query may have. For each set a logistic regression makes a chance of the evidence of the ten best
hits. Every set of data counts alike, and so does every size of store within it; half of the questions have an answer,
and of the others half are on the topic of the store. The weights are fitted on all; the figures are of five folds, of
which no conversation is in two.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.cached_embedder import cached
from benchmarks.training.data import SETS, sources
from benchmarks.training.logistic import fit_logistic
from benchmarks.training.measuring import measure_queries
from benchmarks.training.questions import NOTES, Variant, variants
from recallite import Memory, Settings
from recallite.embedding import load
from recallite.recall.confidence import FILE, TextWeights
from recallite.recall.request import build_request, recall_arguments
from recallite.recall.slots import HAS, only_asks, slot_of
from recallite_kernels import EVIDENCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.embedding import Embedder
    from recallite.store.sql.record_reading import Found

EMBEDDERS = ("default", "instant", "all-minilm-l6-v2")
TRANSCRIPTS = ("friendsqa", "molweni", "qmsum")
DATA = ("emorynlp/FriendsQA", "HIT-SCIR/Molweni", "Yale-LILY/QMSum")
# How each set of signals is asked for. The first is how most recalls are; the others are asked of every third store.
ASKED: dict[str, dict[str, Any]] = {
    "tokens": {},
    "vectors": {"rerank_weight": 0.0},
    "meaning": {"mode": "vector"},
    "words": {"mode": "keyword"},
}
# The share of each kind of question within a set of data and a size of store.
SHARES = {"answered": 0.5, "open": 0.25, "elsewhere": 0.25}
KEEPS = 0.95
_FOLDS, _BINS, _EVERY = 5, 10, 3
# More of the evidence makes an answer more likely (1), less likely (-1), or either (0).
_DIRECTIONS = {
    "cosine": 1, "near": 1, "coverage": 1, "bm25": 1, "similarity": 1, "length": 0, "speaker": 1, "rank": -1,
    "other_cosine": -1, "other_bm25": -1, "other_similarity": -1, "other_speaker": -1, "records": 0, "words": 0,
    "content": 1, "unnamed": -1, "lacking": -1, "turn_lacking": -1, "asking": -1,
}  # fmt: skip
# What describes the record or query alone, or other candidates, fits hits better (log loss .198 instead of .206) and
# questions worse: answered ones were told from those of elsewhere with a mean ROC AUC of .81 instead of .85.
_LEFT_OUT = {"length", "words", "other_cosine", "other_bm25", "other_similarity", "other_speaker"}
# What a set of signals does not have.
_WITHOUT = {
    "tokens": set[str](),
    "vectors": {"similarity", "other_similarity"},
    "meaning": {"similarity", "other_similarity", "coverage", "bm25", "other_bm25", "words", "content", "unnamed"},
    "words": {"similarity", "other_similarity", "cosine", "near", "other_cosine"},
}


# What is weighed: what the kernel measures, then what texts tell.
KINDS = (*EVIDENCE._fields, *TextWeights._fields)
# A question counts for less in what was made by rules alone.
COUNTS = {NOTES: 0.3}


class Answered(NamedTuple):
    """The hits of one question, best first: the evidence float64 (hits, kinds), and which of them answer it."""

    of: tuple[str, str]
    size: str
    kind: str
    evidence: NDArray[np.float64]
    right: NDArray[np.bool_]


class Figures(NamedTuple):
    """Measures of how well predicted chances fit.

    - calibration_error, calibration_error_first: of all hits, and of the first of each question
    - auc: the ROC AUC of the best hit, answered questions against open ones and against those of elsewhere, by set
    - threshold: what keeps `KEEPS` of the right first hits; passed: the share of each kind of question that reaches it
    - reliability, reliability_first: all hits and first hits by tenth of confidence
    """

    calibration_error: float
    calibration_error_first: float
    auc: dict[str, dict[str, float]]
    threshold: float
    passed: dict[str, float]
    reliability: list[dict[str, float]]
    reliability_first: list[dict[str, float]]


def observe(embedder: Embedder, repositories: Path, sets: Sequence[str]) -> dict[str, list[Answered]]:
    """The hits of every question, by set of signals."""
    answered: dict[str, list[Answered]] = {signals: [] for signals in ASKED}
    for number, variant in enumerate(variants(repositories, sets)):
        with Memory(":memory:", embedder=embedder, settings=Settings(token_codes=True)) as memory:
            ids = memory.remember_many(variant.turns)
            for signals, options in ASKED.items():
                if signals == "tokens" or number % _EVERY == 0:
                    answered[signals] += _ask(memory, ids, variant, options)
    return answered


def _ask(memory: Memory, ids: list[str], variant: Variant, options: dict[str, Any]) -> list[Answered]:
    questions = [
        (text, {ids[place] for place in gold}, "answered" if gold else "open") for text, gold in variant.questions
    ]
    questions += [(text, set(), "elsewhere") for text in variant.elsewhere]
    if not questions:
        return []
    weighed = measure_queries(
        memory._engine,
        [text for text, _, _ in questions],
        build_request("/", "default", **recall_arguments(options)),
        depth=10,
    )
    return [
        Answered(
            variant.of, variant.size, kind,
            np.hstack([answer.evidence.T, _of_texts(variant.of[0], text, answer.records)]),
            np.array([id in gold for id in answer.ids], np.bool_),
        )
        for (text, gold, kind), answer in zip(questions, weighed, strict=True)
        if answer.ids
    ]  # fmt: skip


def _of_texts(name: str, question: str, records: Sequence[Found]) -> NDArray[np.float64]:
    """Evidence of the texts of hits, in the order of `TextWeights`; all of a transcript are turns of it."""
    slot, evidence = slot_of(question), []
    for record in records:
        named = slot == "person" and record.context is not None
        lacking = slot is not None and not named and not HAS[slot](record.text)
        turn = record.position is not None or name in TRANSCRIPTS
        evidence.append([lacking and not turn, lacking and turn, only_asks(record.text)])
    return np.array(evidence, dtype=np.float64)


def weights_of(answered: Sequence[Answered]) -> NDArray[np.float64]:
    """The weight of each question: alike for sets, then for sizes of store, then as `SHARES` has it."""
    weights: NDArray[np.float64] = np.zeros(len(answered))
    cells: dict[tuple[str, str], dict[str, list[int]]] = {}
    for place, answer in enumerate(answered):
        cells.setdefault((answer.of[0], answer.size), {}).setdefault(answer.kind, []).append(place)
    for (name, _), kinds in cells.items():
        sizes = sum(other == name for other, _ in cells)
        total = sum(SHARES[kind] for kind in kinds)
        for kind, places in kinds.items():
            weights[places] = COUNTS.get(name, 1.0) * SHARES[kind] / total / sizes / len(places)
    weights /= weights.mean()
    return weights


def fit(answered: Sequence[Answered], signals: str) -> NDArray[np.float64]:
    """The weight of each kind of evidence, and the bias."""
    used = [place for place, name in enumerate(KINDS) if name not in _WITHOUT[signals] | _LEFT_OUT]
    values = np.concatenate([answer.evidence for answer in answered])[:, used]
    right = np.concatenate([answer.right for answer in answered])
    sizes = [len(answer.right) for answer in answered]
    # First hits are what most recalls are made for: with equal weights their calibration error was a third higher.
    ranks = np.concatenate([np.arange(size) for size in sizes])
    weights = np.repeat(weights_of(answered), sizes) / (1 + ranks)
    directions = np.array([_DIRECTIONS[KINDS[place]] for place in used])
    coefficients = fit_logistic(values, right, weights, directions)
    every = np.zeros(len(KINDS) + 1)
    every[[*used, len(KINDS)]] = coefficients
    return every


def chances(weights: NDArray[np.float64], answer: Answered) -> NDArray[np.float64]:
    """The confidence of each hit."""
    probabilities: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-(answer.evidence @ weights[:-1] + weights[-1])))
    return probabilities


def held_out(answered: Sequence[Answered], signals: str) -> list[NDArray[np.float64]]:
    """The confidence of each hit by weights that were fitted without its conversation."""
    folds = [zlib.crc32("/".join(answer.of).encode()) % _FOLDS for answer in answered]
    probabilities: list[NDArray[np.float64]] = [np.empty(0)] * len(answered)
    for fold in range(_FOLDS):
        weights = fit(
            [answer for answer, fold_of_answer in zip(answered, folds, strict=True) if fold_of_answer != fold], signals
        )
        for place, (answer, fold_of_answer) in enumerate(zip(answered, folds, strict=True)):
            if fold_of_answer == fold:
                probabilities[place] = chances(weights, answer)
    return probabilities


def figures(answered: Sequence[Answered], probabilities: Sequence[NDArray[np.float64]]) -> Figures:
    """The figures of these chances."""
    weights = weights_of(answered)
    sizes = [len(answer.right) for answer in answered]
    every, right = np.concatenate(probabilities), np.concatenate([answer.right for answer in answered])
    first = np.array([answer[0] for answer in probabilities])
    first_right = np.array([answer.right[0] for answer in answered])
    best = np.array([answer.max() for answer in probabilities])
    kinds = np.array([answer.kind for answer in answered])
    sets = np.array([answer.of[0] for answer in answered])
    auc: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(sets.tolist()):
        of_set = (sets == name) & (kinds == "answered")
        for kind in ("open", "elsewhere"):
            others = (sets == name) & (kinds == kind)
            if others.any():
                found_auc = roc_auc(best[of_set], best[others], weights[of_set], weights[others])
                auc.setdefault(kind, {})[name] = round(found_auc, 3)
    order = np.argsort(first[first_right])
    share = np.cumsum(weights[first_right][order]) / weights[first_right].sum()
    threshold = first[first_right][order][np.searchsorted(share, 1.0 - KEEPS)]
    passed = {
        kind: round(float(np.average(best[kinds == kind] >= threshold, weights=weights[kinds == kind])), 3)
        for kind in SHARES
    }
    bins, first_bins = reliability(every, right, np.repeat(weights, sizes)), reliability(first, first_right, weights)
    return Figures(
        round(calibration_error(bins), 4), round(calibration_error(first_bins), 4), auc, round(float(threshold), 4),
        passed, bins, first_bins,
    )  # fmt: skip


def reliability(
    chance: NDArray[np.float64], right: NDArray[np.bool_], weights: NDArray[np.float64]
) -> list[dict[str, float]]:
    """Share of the hits, their mean confidence and the share of right ones, by tenth of confidence."""
    tenth = np.minimum((chance * _BINS).astype(np.int64), _BINS - 1)
    bins = []
    for place in range(_BINS):
        inside = tenth == place
        if inside.any():
            total = weights[inside].sum()
            mean, share = (weights[inside] @ values[inside] / total for values in (chance, right.astype(np.float64)))
            bins.append({"share": total / weights.sum(), "confidence": mean, "right": share})
    return [{name: round(float(value), 4) for name, value in bar.items()} for bar in bins]


def calibration_error(bins: Sequence[dict[str, float]]) -> float:
    """The mean distance of confidence from the share of right hits."""
    return sum(bar["share"] * abs(bar["confidence"] - bar["right"]) for bar in bins)


def roc_auc(
    above: NDArray[np.float64], below: NDArray[np.float64], weights: NDArray[np.float64], others: NDArray[np.float64]
) -> float:
    """Probability that one of `above` exceeds one of `below`, both drawn by weight; ties count half."""
    order = np.argsort(below)
    sorted_below, passed = below[order], np.append(0.0, np.cumsum(others[order]))
    less, not_more = (passed[np.searchsorted(sorted_below, above, side=side)] for side in ("left", "right"))
    return float(weights @ (less + not_more) / (2 * weights.sum() * others.sum()))


def main() -> None:
    """Fit the weights of every embedder and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repositories", type=Path, required=True, help="folder with the repositories of sources.json")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    made: dict[str, Any] = {
        "made_by": "python -m benchmarks.training.confidence",
        "data": {name: sources()[name]["licence"] for name in DATA},
        "embedders": {}, "words": {}, "figures": {},
        **{name: kept for name, kept in json.loads(FILE.read_text("utf-8")).items() if name in ("cohort", "passages")},
    }  # fmt: skip
    for name in EMBEDDERS:
        inner = load(name)
        embedder = cached(inner, None if options.cache is None else options.cache / name)
        observed = observe(embedder, options.repositories, (*SETS, NOTES))
        embedder.flush()
        for signals, answered in observed.items():
            if not answered or (signals == "words" and made["words"]):
                continue
            weights = dict(zip((*KINDS, "bias"), fit(answered, signals).round(4).tolist(), strict=True))
            nonzero = {key: weight for key, weight in weights.items() if weight}
            if signals == "words":
                made["words"] = nonzero
            else:
                made["embedders"].setdefault(inner.name, {})[signals] = nonzero
            of = signals if signals == "words" else f"{inner.name}, {signals}"
            made["figures"][of] = figures(answered, held_out(answered, signals))._asdict()
            print(of, {key: value for key, value in made["figures"][of].items() if "reliability" not in key}, nonzero)
        options.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
