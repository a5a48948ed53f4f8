"""Fits the chance that a later statement replaces an earlier one: python -m benchmarks.training.changes

`changes/pairs.jsonl` and `changes/styles.jsonl` have pairs that were written for it by hand: for about 900 older
statements some that replace them, and more that say something else of the same, or alike of something else; the second
file in more styles (notes, tickets, settings, facts that agents extract), and half of what replaces without a word of
change. `changes/elsewhere.jsonl` has, for each that replaces one, the nearest older statement of another group, by the
vectors of the default embedder: what it leaves alone. Pairs of one group are in one fold. Each pair is shown with and
without the cosine of its vectors. The weights of single words are fitted first; what the other models are shown of them
is, for each pair, the logit by a fit on other groups.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.training.boosting import Boosted, boosted_logits, fit_boosted
from benchmarks.training.logistic import fit_logistic
from benchmarks.training.wording import Wording, crossed_logits, fit_wording
from recallite.embedding import embed_documents, load
from recallite.text.statements import Outcome, Statement, statement_of
from recallite.text.statements.judging import judge_by_rules
from recallite.text.statements.likelihood import DEPTH, FILE, evidence_of, is_cued, is_known, wording_of
from recallite.text.statements.traits import traits_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = Path(__file__).with_name("changes")
FILES = ("pairs.jsonl", "styles.jsonl", "elsewhere.jsonl", "chat.jsonl")
# Of the pairs of the files more replace another than of those that a store meets.
PRECISION = 0.98
_FOLDS, _BATCH = 5, 64
_RIDGE = 3e-3
_TREES = {"trees": 180, "depth": DEPTH, "rate": 0.08, "share": 0.35}


class Pair(msgspec.Struct):
    """Two statements, the outcome, and the group: the older statement.

    `moment`: both are of the same time. `elsewhere`: the older statement is of another group.
    """

    outcome: Outcome
    old: str
    new: str
    group: str
    old_context: str | None = None
    new_context: str | None = None
    moment: bool = False
    elsewhere: bool = False

    @property
    def told(self) -> bool:
        """Whether neither time nor speaker rules out that one replaces the other."""
        return not self.moment and self.old_context == self.new_context

    @property
    def known(self) -> bool:
        """Whether the fit is asked of such a pair."""
        return is_known(*self.statements())

    def statements(self) -> tuple[Statement, Statement]:
        """The newer and the older one."""
        return statement_of(self.new, self.new_context), statement_of(self.old, self.old_context)


class Fit(NamedTuple):
    """A logistic regression and trees, on the same columns."""

    weights: NDArray[np.float64]
    boosted: Boosted


class Shown(NamedTuple):
    """Features of each pair that the models are trained on.

    `values`: the evidence with the cosine, and without, float64 (pairs, 2, columns); `terms`: those of the words;
    `groups`; `truth`: whether the newer statement replaces the older one.
    """

    values: NDArray[np.float64]
    terms: list[set[str]]
    groups: list[str]
    truth: NDArray[np.bool_]

    def of(self, inside: NDArray[np.bool_]) -> Shown:
        """Some of the pairs."""
        places = np.flatnonzero(inside).tolist()
        terms, groups = [self.terms[place] for place in places], [self.groups[place] for place in places]
        return Shown(self.values[inside], terms, groups, self.truth[inside])


def pairs() -> list[Pair]:
    """The pairs of the files."""
    collected = []
    for name in FILES:
        for line in (FOLDER / name).read_bytes().splitlines():
            pair = msgspec.json.decode(line, type=Pair)
            pair.elsewhere = name not in FILES[:2]
            collected.append(pair)
    return collected


def digest() -> str:
    """The hash of the files."""
    return blake2b(b"".join((FOLDER / name).read_bytes() for name in FILES), digest_size=16).hexdigest()


def cosines_of(some: Sequence[Pair]) -> list[float]:
    """The cosine of each pair's vectors by the default embedder."""
    embedder = load("default")
    sides = [(pair.old, pair.old_context) for pair in some] + [(pair.new, pair.new_context) for pair in some]
    texts = sorted(set(sides), key=str)
    vectors = []
    for begin in range(0, len(texts), _BATCH):
        batch = texts[begin : begin + _BATCH]
        vectors.append(embed_documents(embedder, [text for text, _ in batch], [by for _, by in batch])[0])
    of = dict(zip(texts, np.concatenate(vectors).astype(np.float64), strict=True))
    return [float(of[pair.old, pair.old_context] @ of[pair.new, pair.new_context]) for pair in some]


def observe(some: Sequence[Pair], cosines: Sequence[float | None]) -> list[dict[str, float]]:
    """The evidence of each pair."""
    evidence = []
    for pair, cosine in zip(some, cosines, strict=True):
        new, old = pair.statements()
        evidence.append(evidence_of(new, old, judge_by_rules(new, old), cosine))
    return evidence


def terms_of(some: Sequence[Pair]) -> list[set[str]]:
    """The terms of each pair."""
    return [wording_of(*map(traits_of, pair.statements())) for pair in some]


def fit_all(shown: Shown) -> tuple[Fit, Wording]:
    """The weights of words, and the models on the evidence with their logits."""
    logits = crossed_logits(shown.terms, shown.groups, shown.truth)
    values = np.concatenate(with_logits(shown.values, logits).swapaxes(0, 1))
    return fit(values, np.tile(shown.truth, 2)), fit_wording(shown.terms, shown.groups, shown.truth)


def with_logits(values: NDArray[np.float64], logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values with the logits of the words as the last column."""
    column = np.broadcast_to(logits[:, None, None], (*values.shape[:2], 1))
    return np.concatenate([values, column], axis=2)


def fit(values: NDArray[np.float64], truth: NDArray[np.bool_]) -> Fit:
    """Both models."""
    weights = np.ones(len(values))
    free = np.zeros(values.shape[1], dtype=np.int64)
    return Fit(fit_logistic(values, truth, weights, free, _RIDGE), fit_boosted(values, truth, weights, **_TREES))  # type: ignore[arg-type]


def chances(model: Fit, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The chance of each row: of the mean logit."""
    logits = values @ model.weights[:-1] + model.weights[-1] + boosted_logits(model.boosted, values)
    probabilities: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-0.5 * logits))
    return probabilities


def recalls(chance: NDArray[np.float64], truth: NDArray[np.bool_]) -> dict[str, tuple[float, float]]:
    """The most that is found with a precision of at least each of some, and from which chance."""
    order = np.argsort(-chance, kind="stable")
    right = np.cumsum(truth[order])
    precision = right / np.arange(1, len(order) + 1)
    by_precision = {}
    for least in (PRECISION, 0.97, 0.95, 0.9):
        places = np.flatnonzero(precision >= least)
        if len(places):
            last = places[-1]
            by_precision[str(least)] = (
                round(float(right[last] / truth.sum()), 3),
                round(float(chance[order[last]]), 3),
            )
    return by_precision


def main() -> None:
    """Fit, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    some = pairs()
    seen = observe(some, cosines_of(some)), observe(some, [None] * len(some))
    names = sorted({name for way in seen for observed in way for name in observed})
    values = np.array(
        [[[observed.get(name, 0.0) for name in names] for observed in both] for both in zip(*seen, strict=True)]
    )
    truth = np.array([pair.outcome == "supersedes" for pair in some])
    labelled = np.array([pair.told and pair.known for pair in some])
    folds = np.array([zlib.crc32(pair.group.encode()) % _FOLDS for pair in some])
    shown = Shown(values, terms_of(some), [pair.group for pair in some], truth)
    chance = np.zeros((len(some), 2))
    for fold in range(_FOLDS):
        inside = labelled & (folds == fold)
        model, wording = fit_all(shown.of(labelled & (folds != fold)))
        tested = shown.of(inside)
        rows = with_logits(tested.values, wording.logits(tested.terms))
        chance[inside] = np.stack([chances(model, rows[:, way]) for way in (0, 1)], axis=1)
    written_here = np.array([not pair.elsewhere for pair in some])
    rules = np.array([observed.get("rules supersedes", 0.0) > 0 for observed in seen[0]]) & labelled
    cued = np.array([is_cued(*observed.statements()) for observed in some])
    known, bare = chance[:, 0], chance[:, 1]
    figures: dict[str, Any] = {
        "rules": {
            "precision": round(float(truth[rules & written_here].mean()), 3),
            "recall": round(float((rules & truth)[written_here].sum() / truth[written_here].sum()), 3),
        },
        "recall and threshold by precision": recalls(known[written_here], truth[written_here]),
        "the same without cosines": recalls(bare[written_here], truth[written_here]),
        "the same with pairs from elsewhere": recalls(known, truth),
        "of those that tell of change": recalls(known[written_here & cued], truth[written_here & cued]),
        "of those that do not, but a rule finds": recalls(
            known[written_here & ~cued & rules], truth[written_here & ~cued & rules]
        ),
        "reliability": [
            (round(low, 2), int(inside.sum()), round(float(truth[inside].mean()), 3))
            for low in np.arange(0.0, 1.0, 0.1).tolist()
            if (inside := labelled & written_here & (known >= low) & (known < low + 0.1)).any()
        ],
    }
    model, wording = fit_all(shown.of(labelled))
    made = {
        "made_by": "python -m benchmarks.training.changes",
        "pairs": len(some),
        "hash": digest(),
        "figures": figures,
        "threshold": figures["of those that tell of change"][str(PRECISION)][1],
        "threshold_uncued": figures["of those that do not, but a rule finds"][str(PRECISION)][1],
        "features": [*names, "wording"],
        "weights": np.round(model.weights[:-1], 4).tolist(),
        "bias": round(float(model.weights[-1]), 4),
        "base": model.boosted.base,
        "trees": model.boosted.trees,
        "wording_bias": wording.bias,
        "wording": wording.weights,
    }
    text = json.dumps(made, indent=1)
    head, _, tail = text.partition('"features"')
    options.out.write_text(head + '"features"' + " ".join(tail.split()) + "\n", encoding="utf-8")
    print(json.dumps({"thresholds": [made["threshold"], made["threshold_uncued"]], **figures}, indent=1))


if __name__ == "__main__":
    main()
