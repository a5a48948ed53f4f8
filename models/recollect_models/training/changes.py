"""Fits the chance that a later statement replaces an earlier one: python -m recollect_models.training.changes

`changes/pairs.jsonl` has pairs that were written for it by hand: for about 570 older statements some that replace them,
and more that say something else of the same, or alike of something else. `changes/elsewhere.jsonl` has, for each that
replaces one, the nearest older statement of another group, by the vectors of the default embedder: what it leaves
alone. Pairs of one group are in one fold. Each pair is shown with and without the cosine of its vectors.
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

from recollect.embedding import embed_documents, load
from recollect.text.statements import Outcome, statement_of
from recollect.text.statements.evidence import evidence_of
from recollect.text.statements.judging import judge_by_rules
from recollect.text.statements.likelihood import DEPTH, FILE, is_known
from recollect_models.training.boosting import Boosted, boosted_logits, fit_boosted
from recollect_models.training.logistic import fit_logistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = Path(__file__).with_name("changes")
FILES = ("pairs.jsonl", "elsewhere.jsonl", "chat.jsonl")
PRECISION = 0.97
_FOLDS, _BATCH = 5, 64
_RIDGE = 3e-3
_TREES = {"trees": 200, "depth": DEPTH, "rate": 0.07, "share": 0.35}


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
        return not self.moment and (
            self.old_context == self.new_context or None in (self.old_context, self.new_context)
        )

    @property
    def known(self) -> bool:
        """Whether the fit is asked of such a pair."""
        new, old = statement_of(self.new, self.new_context), statement_of(self.old, self.old_context)
        return is_known(new, old)


class Fit(NamedTuple):
    """A logistic regression and trees, on the same columns."""

    weights: NDArray[np.float64]
    boosted: Boosted


def pairs() -> list[Pair]:
    """The pairs of the files."""
    found = []
    for name in FILES:
        for line in (FOLDER / name).read_bytes().splitlines():
            pair = msgspec.json.decode(line, type=Pair)
            pair.elsewhere = name != FILES[0]
            found.append(pair)
    return found


def digest() -> str:
    """The hash of the files."""
    return blake2b(b"".join((FOLDER / name).read_bytes() for name in FILES), digest_size=16).hexdigest()


def cosines_of(some: Sequence[Pair]) -> list[float]:
    """The cosine of each pair's vectors by the default embedder."""
    embedder = load("default")
    sides = [(each.old, each.old_context) for each in some] + [(each.new, each.new_context) for each in some]
    texts = sorted(set(sides), key=str)
    vectors = []
    for begin in range(0, len(texts), _BATCH):
        batch = texts[begin : begin + _BATCH]
        vectors.append(embed_documents(embedder, [text for text, _ in batch], [by for _, by in batch])[0])
    of = dict(zip(texts, np.concatenate(vectors).astype(np.float64), strict=True))
    return [float(of[each.old, each.old_context] @ of[each.new, each.new_context]) for each in some]


def observe(some: Sequence[Pair], cosines: Sequence[float | None]) -> list[dict[str, float]]:
    """The evidence of each pair."""
    found = []
    for pair, cosine in zip(some, cosines, strict=True):
        new, old = statement_of(pair.new, pair.new_context), statement_of(pair.old, pair.old_context)
        found.append(evidence_of(new, old, judge_by_rules(new, old, later=True), cosine))
    return found


def fit(values: NDArray[np.float64], truth: NDArray[np.bool_]) -> Fit:
    """Both models."""
    weights = np.ones(len(values))
    free = np.zeros(values.shape[1], dtype=np.int64)
    return Fit(fit_logistic(values, truth, weights, free, _RIDGE), fit_boosted(values, truth, weights, **_TREES))  # type: ignore[arg-type]


def chances(model: Fit, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The chance of each row: of the mean logit."""
    logits = values @ model.weights[:-1] + model.weights[-1] + boosted_logits(model.boosted, values)
    found: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-0.5 * logits))
    return found


def recalls(chance: NDArray[np.float64], truth: NDArray[np.bool_]) -> dict[str, tuple[float, float]]:
    """The most that is found with a precision of at least each of some, and from which chance."""
    order = np.argsort(-chance, kind="stable")
    right = np.cumsum(truth[order])
    precision = right / np.arange(1, len(order) + 1)
    found = {}
    for least in (0.98, PRECISION, 0.95, 0.9):
        places = np.flatnonzero(precision >= least)
        if len(places):
            last = places[-1]
            found[str(least)] = (round(float(right[last] / truth.sum()), 3), round(float(chance[order[last]]), 3))
    return found


def main() -> None:
    """Fit, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    some = pairs()
    seen = observe(some, cosines_of(some)) + observe(some, [None] * len(some))
    names = sorted({name for each in seen for name in each})
    values = np.array([[each.get(name, 0.0) for name in names] for each in seen])
    truth = np.array([pair.outcome == "supersedes" for pair in some] * 2)
    told = np.array([pair.told and pair.known for pair in some] * 2)
    folds = np.array([zlib.crc32(pair.group.encode()) % _FOLDS for pair in some] * 2)
    chance = np.zeros(len(values))
    for fold in range(_FOLDS):
        inside = told & (folds == fold)
        model = fit(values[told & (folds != fold)], truth[told & (folds != fold)])
        chance[inside] = chances(model, values[inside])
    own = np.array([not pair.elsewhere for pair in some] * 2)
    known = np.arange(len(values)) < len(some)
    rules = np.array([each.get("rules supersedes", 0.0) > 0 for each in seen]) & told
    figures: dict[str, Any] = {
        "rules": {
            "precision": round(float(truth[rules & own & known].mean()), 3),
            "recall": round(float((rules & truth)[own & known].sum() / truth[own & known].sum()), 3),
        },
        "recall and threshold by precision": recalls(chance[own & known], truth[own & known]),
        "the same without cosines": recalls(chance[own & ~known], truth[own & ~known]),
        "the same with pairs from elsewhere": recalls(chance[known], truth[known]),
        "reliability": [
            (round(low, 2), int(inside.sum()), round(float(truth[inside].mean()), 3))
            for low in np.arange(0.0, 1.0, 0.1).tolist()
            if (inside := told & own & (chance >= low) & (chance < low + 0.1)).any()
        ],
    }
    model = fit(values[told], truth[told])
    made = {
        "made_by": "python -m recollect_models.training.changes",
        "pairs": len(some),
        "hash": digest(),
        "figures": figures,
        "threshold": figures["recall and threshold by precision"][str(PRECISION)][1],
        "features": names,
        "weights": np.round(model.weights[:-1], 4).tolist(),
        "bias": round(float(model.weights[-1]), 4),
        "base": model.boosted.base,
        "trees": model.boosted.trees,
    }
    text = json.dumps(made, indent=1)
    head, _, tail = text.partition('"features"')
    options.out.write_text(head + '"features"' + " ".join(tail.split()) + "\n", encoding="utf-8")
    print(json.dumps({"threshold": made["threshold"], **figures}, indent=1))


if __name__ == "__main__":
    main()
