"""Trains the learned ranking: python -m benchmarks.training.ranking --repositories DIR --out FILE.npz.

LambdaMART (Burges, 2010) by LightGBM over the features of the best 100 candidates, of which recall orders the first.
More of a signal never lowers a candidate. It is judged on sets that were left out of its training, in turn, and on
folds of conversations. Needs the extra `train`.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.training import data
from benchmarks.training.forests import Trees, complete_trees
from benchmarks.training.measured import MeasuredQuestion, measure
from recallite.embedding import load
from recallite.recall.plan import DEPTH, FEATURES

# Of the split "ranking"; facts are made by rules.
REPOSITORIES = ("emorynlp/FriendsQA", "HIT-SCIR/Molweni", "Yale-LILY/QMSum")
EMBEDDERS = ("default", "instant")
# Trained with both it ranks better for the first; for `instant` it lost on LoCoMo and SciFact.
RANKS_FOR = "default"
TREES = 80
# Questions of a kind: with all of them it takes three times as long and ranks no better.
MOST = 650
FOLDS = 5
PARAMETERS: dict[str, Any] = {
    "objective": "lambdarank",
    "lambdarank_truncation_level": 20,
    "max_depth": 4,
    "num_leaves": 16,
    "learning_rate": 0.1,
    "min_data_in_leaf": 200,
    "lambda_l2": 20.0,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "max_bin": 127,
    "monotone_constraints": [1] * len(FEATURES),
    "monotone_constraints_method": "intermediate",
    "seed": 1,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbose": -1,
}


class Figures(NamedTuple):
    """Means over questions: recall@20 of all records that answer, the reciprocal rank of the first, and first hits."""

    recall: float
    mrr: float
    first: float


def train(questions: Sequence[MeasuredQuestion], trees: int = TREES) -> Any:
    """A LightGBM model of the questions whose best candidates hold both answers and others."""
    import lightgbm

    informative = _told(questions)
    sizes = [len(question.answers) for question in informative]
    # The square root of a kind's size: the largest has the most weight, but does not drown the others.
    counts = Counter((question.set, question.kind) for question in informative)
    weights = np.array([counts[question.set, question.kind] ** -0.5 for question in informative])
    dataset = lightgbm.Dataset(
        np.concatenate([question.features.T for question in informative]),
        np.concatenate([question.answers for question in informative]).astype(np.int32),
        group=sizes,
        weight=np.repeat(weights * len(weights) / weights.sum(), sizes),
        feature_name=list(FEATURES),
    )
    return lightgbm.train(PARAMETERS, dataset, trees)


def _told(questions: Sequence[MeasuredQuestion]) -> list[MeasuredQuestion]:
    """Questions that have both answers and other hits: at most `MOST` of a kind, evenly spaced."""
    kinds: dict[tuple[str, str], list[MeasuredQuestion]] = {}
    for question in questions:
        if question.answers.any() and not question.answers.all():
            kinds.setdefault((question.set, question.kind), []).append(question)
    return [question for members in kinds.values() for question in members[:: -(-len(members) // MOST)]]


def judge(questions: Iterable[MeasuredQuestion], predict: Callable[[MeasuredQuestion], NDArray[np.float64]]) -> Figures:
    """The figures of an order of the best `DEPTH` candidates by descending prediction; the others follow."""
    recalls, ranks, firsts = [], [], []
    for question in questions:
        if not question.wanted:
            continue
        best = question.answers[:20].copy()
        if len(best):
            best[:DEPTH] = best[:DEPTH][np.argsort(-predict(question)[:DEPTH], kind="stable")]
        recalls.append(best.sum() / question.wanted)
        ranks.append(1 / (1 + int(np.argmax(best))) if best.any() else 0.0)
        firsts.append(float(best[:1].any()))
    return Figures(*(round(float(np.mean(question)), 4) for question in (recalls, ranks, firsts)))


def by_formula(question: MeasuredQuestion) -> NDArray[np.float64]:
    """The order that the candidates have."""
    return -np.arange(len(question.answers), dtype=np.float64)


def by_model(model: Any) -> Callable[[MeasuredQuestion], NDArray[np.float64]]:
    """The order of a LightGBM model."""
    return lambda question: np.asarray(model.predict(question.features.T, num_threads=1), dtype=np.float64)


def left_out(
    questions: Sequence[MeasuredQuestion], group_of: Callable[[MeasuredQuestion], object]
) -> dict[str, tuple[Figures, Figures]]:
    """The figures of the formula and of models that did not see the group they are judged on, by set and kind."""
    tested: dict[tuple[str, str], list[tuple[MeasuredQuestion, NDArray[np.float64]]]] = {}
    for group in sorted({str(group_of(measured)) for measured in questions}):
        predict = by_model(train([measured for measured in questions if str(group_of(measured)) != group]))
        for measured in questions:
            if str(group_of(measured)) == group:
                output = predict(measured) if len(measured.answers) else np.empty(0)
                tested.setdefault((measured.set, measured.kind), []).append((measured, output))
    figures = {}
    for (name, kind), pairs in sorted(tested.items()):
        outputs = {id(question): output for question, output in pairs}
        members = [question for question, _ in pairs]
        figures[f"{name} {kind}"] = judge(members, by_formula), judge(members, lambda question: outputs[id(question)])  # noqa: B023
    return figures


def folds(questions: Sequence[MeasuredQuestion]) -> Callable[[MeasuredQuestion], int]:
    """A fold for each conversation, of all its questions; conversations of a set take turns."""
    stores = sorted({measured.store for measured in questions})
    fold = {store: place % FOLDS for place, store in enumerate(stores)}
    return lambda question: fold[question.store]


def manifest(embedders: Sequence[str], figures: dict[str, Any], trees: Trees) -> dict[str, Any]:
    """Describe the data and settings that made the ranking."""
    import lightgbm

    loaded = [load(name) for name in embedders]
    return {
        "features": list(FEATURES),
        "embedders": [load(RANKS_FOR).name],
        "fingerprints": {embedder.name: embedder.fingerprint for embedder in loaded},
        "trees": len(trees.nodes),
        "parameters": PARAMETERS,
        "data": {name: {key: data.sources()[name][key] for key in ("commit", "licence")} for name in REPOSITORIES},
        "versions": {"lightgbm": lightgbm.__version__, "numpy": np.__version__, "python": platform.python_version()},
        "figures": figures,
    }


def main() -> None:
    """Measure, judge, train and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.ranking", description=__doc__)
    parser.add_argument("--repositories", type=Path, required=True, help="folder with the repositories of the data")
    parser.add_argument("--out", type=Path, required=True, help="the .npy to write; its manifest is beside it, .json")
    parser.add_argument("--embedder", nargs="+", default=EMBEDDERS, help="the embedders whose vectors it is trained on")
    options = parser.parse_args()
    questions = [question for name in options.embedder for question in measure(options.repositories, load(name))]
    figures = {}
    for name, group_of in (
        ("set left out", lambda question: question.set),
        ("conversation left out", folds(questions)),
    ):
        figures[name] = {
            where: {"formula": formula._asdict(), "learned": learned._asdict()}
            for where, (formula, learned) in left_out(questions, group_of).items()
        }
        print(json.dumps({name: figures[name]}, indent=1), flush=True)
    trees = complete_trees(train(questions))
    columns = trees._asdict().items()
    table = np.empty(len(trees.nodes), [(name, column.dtype, column.shape[1:]) for name, column in columns])
    for name, column in columns:
        table[name] = column
    np.save(options.out, table)
    text = json.dumps(manifest(options.embedder, figures, trees), indent=2)
    options.out.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
