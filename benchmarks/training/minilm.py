"""MiniLM in torch: the lower layers as they are, run once a text; the upper ones to train."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.training.graph import EPSILON, HEADS, LAYERS, WIDTH

if TYPE_CHECKING:
    from torch import Tensor

_TOGETHER = 64
_CHUNKS = 4
_MASKED = -1e4


class Encoder:
    """The float32 weights as tensors by name; layers from `first` on are trained, those below are constant."""

    layers = LAYERS

    def __init__(self, weights: Path, first: int, *, bfloat16: bool = False) -> None:
        import torch
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        loaded = load_file(weights / "model.safetensors")
        self.weights: dict[str, Any] = {
            name: torch.from_numpy(values) for name, values in loaded.items() if values.dtype == np.float32
        }
        self.first = first
        self.bfloat16 = bfloat16
        self.tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def trained(self) -> list[str]:
        """The names of the weights of the upper layers."""
        upper = tuple(f"encoder.layer.{layer}." for layer in range(self.first, self.layers))
        return [name for name in self.weights if name.startswith(upper)]

    def ids(self, texts: Sequence[str], limit: int) -> list[list[int]]:
        """Token ids with special tokens, cut to `limit`."""
        rows = [encoded.ids for encoded in self.tokenizer.encode_batch(list(texts))]
        return [row if len(row) <= limit else [*row[: limit - 1], row[-1]] for row in rows]

    def bare_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids without special tokens."""
        return [encoded.ids for encoded in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def lower(self, rows: Sequence[list[int]]) -> list[Tensor]:
        """Outputs of the frozen layers for each row: float16 (tokens, 384)."""
        import torch

        hidden: list[Any] = [None] * len(rows)
        with torch.no_grad():
            for places in _by_length(rows):
                x, mask = self._embedded([rows[place] for place in places])
                x = self.run_layers(x, mask, range(self.first))
                for place, outputs in zip(places, x, strict=True):
                    hidden[place] = outputs[: len(rows[place])].to(torch.float16)
        return hidden

    def upper(self, lower: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """The trained layers' outputs (texts, tokens, 384) and the mask of tokens, from outputs of `lower`."""
        import torch
        from torch.nn import functional

        longest = max(len(outputs) for outputs in lower)
        order = sorted(range(len(lower)), key=lambda place: len(lower[place]))
        # Texts of similar length together: padding all to the longest took twice the time.
        size = -(-len(order) // _CHUNKS)
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        outputs = [self._padded([lower[place] for place in part]) for part in parts]
        outputs = [(self.run_layers(x, mask, range(self.first, self.layers)), mask) for x, mask in outputs]
        places = torch.argsort(torch.tensor([place for part in parts for place in part]))
        x, mask = (
            torch.cat([functional.pad(values, (*skipped, 0, longest - values.shape[1])) for values in column])[places]
            for column, skipped in zip(zip(*outputs, strict=True), ((0, 0), ()), strict=True)
        )
        return x, mask

    def _padded(self, lower: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        import torch

        longest = max(len(outputs) for outputs in lower)
        x = torch.zeros(len(lower), longest, WIDTH)
        mask = torch.zeros(len(lower), longest)
        for place, outputs in enumerate(lower):
            x[place, : len(outputs)] = outputs
            mask[place, : len(outputs)] = 1
        return x, mask

    def embed(self, texts: Sequence[str], limit: int = 256) -> NDArray[np.float32]:
        """Sentence vectors as the model pools them: float32 (texts, 384), of unit length."""
        import torch

        rows = self.ids(texts, limit)
        vectors = np.empty((len(rows), WIDTH), np.float32)
        with torch.no_grad():
            for places in _by_length(rows):
                x, mask = self._embedded([rows[place] for place in places])
                vectors[places] = pool(self.run_layers(x, mask, range(self.layers)), mask).numpy()
        return vectors

    def _embedded(self, rows: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
        import torch

        longest = max(map(len, rows))
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        mask = torch.zeros(len(rows), longest)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
        return self.joined(ids), mask

    def joined(self, ids: Tensor, types: Tensor | float = 0.0) -> Tensor:
        """The embeddings of token ids and their places, with what is added for types other than the first."""
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = x + w["embeddings.token_type_embeddings.weight"][0] + types
        return self._normalised(x, "embeddings.LayerNorm")

    def run_layers(
        self, x: Tensor, mask: Tensor, which: Iterable[int], dropout: float = 0.0, *, start: bool = False
    ) -> Tensor:
        """The outputs of some layers, with `start` of the first token alone; `dropout` is that of the trained ones."""
        import torch
        from torch.nn import functional

        texts = x.shape[0]
        bias = (1 - mask[:, None, None, :]) * _MASKED
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.bfloat16 or x.is_cuda):
            for layer in which:
                source = f"encoder.layer.{layer}."
                context, x = x, x[:, :1] if start and layer == self.layers - 1 else x
                tokens = x.shape[1]
                query, key, value = (
                    self._linear(read, f"{source}attention.self.{role}")
                    .view(texts, -1, HEADS, WIDTH // HEADS)
                    .transpose(1, 2)
                    for role, read in (("query", x), ("key", context), ("value", context))
                )
                # torch's fused attention takes twice the time of all else on the way back.
                scores = query @ key.transpose(2, 3) * (WIDTH // HEADS) ** -0.5 + bias.to(query.dtype)
                mixed = (scores.softmax(-1).to(value.dtype) @ value).transpose(1, 2).reshape(texts, tokens, WIDTH)
                share = dropout if layer >= self.first else 0.0
                attended = functional.dropout(self._linear(mixed, f"{source}attention.output.dense"), share)
                x = self._normalised(x + attended, f"{source}attention.output.LayerNorm")
                wide = functional.gelu(self._linear(x, f"{source}intermediate.dense"))
                narrow = functional.dropout(self._linear(wide, f"{source}output.dense"), share)
                x = self._normalised(x + narrow, f"{source}output.LayerNorm")
        return x.float()

    def _linear(self, x: Tensor, source: str) -> Tensor:
        from torch.nn import functional

        return functional.linear(x, self.weights[f"{source}.weight"], self.weights[f"{source}.bias"])

    def _normalised(self, x: Tensor, source: str) -> Tensor:
        from torch.nn import functional

        gamma, beta = self.weights[f"{source}.weight"], self.weights[f"{source}.bias"]
        return functional.layer_norm(x.float(), (WIDTH,), gamma, beta, EPSILON)


def pool(tokens: Tensor, mask: Tensor) -> Tensor:
    """The mean of the tokens' vectors, of unit length."""
    from torch.nn import functional

    return functional.normalize((tokens * mask[..., None]).sum(1), dim=-1)


def _by_length(rows: Sequence[list[int]]) -> list[list[int]]:
    """Places of rows in batches of similar length, so that little is padding."""
    order = sorted(range(len(rows)), key=lambda place: (len(rows[place]), place))
    return [order[start : start + _TOGETHER] for start in range(0, len(order), _TOGETHER)]
