"""Builds the files of `instant`: one vector for each token, distilled from the float32 weights of a model.

A text is the sum of its tokens' vectors, normalised; nothing else is computed when it is embedded. The recipe, each
choice measured by vector recall alone, without BM25, as (LoCoMo recall@20, RealMem recall@20, SciFact nDCG@10):

- Each token goes through the model as "[CLS] token [SEP]" and keeps its own output: (0.651, 0.417, 0.475). The mean of
  the three outputs, as the model pools sentences: (0.633, 0.418, 0.450). The mean over four random neighbours as well
  gave (0.665, 0.444, 0.516) against (0.651, 0.440, 0.516), and nothing beside BM25, for five times the build.
- The mean of all tokens is taken off and every principal component divided by the fourth root of its variance, half of
  whitening: (0.651, 0.440, 0.516). Full whitening: (0.614, 0.423, 0.533). The first 1, 2, 4, 8 components left
  out instead: at best (0.647, 0.438, 0.497).
- Weighted by a / (a + p), a = 0.001, p the token's frequency (SIF; Arora, Liang and Ma, 2017). a = 0.0003 and 0.003:
  (0.617, 0.441, 0.472) and (0.638, 0.407, 0.466) before whitening. p is Zipf's law over the vocabulary, whose words
  stand in order of frequency from "the" (1996) on; what stands before counts as the most frequent. So no text is
  needed, and none was used.
- Counts of a repeated token stay as they are: their square roots gave (0.655, 0.410, 0.406), each once
  (0.648, 0.410, 0.288), before whitening.
- All 384 dimensions: 256 gave (0.653, 0.433, 0.504) with half whitening, 128 (0.608, 0.406, 0.442).
- Coarse int8 with one scale a token, which carries the weight too. The wheel is 3.6 MB less than with all 255 codes;
  with all else that recall does, LoCoMo went from (0.883, MRR 0.592) to (0.885, 0.590), RealMem from (0.618, 0.394)
  to (0.615, 0.396), SciFact not, and 20 instead of 22 of 25 first tries had their answer first.

These figures are of the original weights. Now the weights are those of recallite-minilm, and last comes the linear map
that `benchmarks.training.instant` trained.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.training.graph import WIDTH, MiniLM
from recallite_models.runtime import load_onnxruntime

FIRST_WORD = 1996
ZIPF_SHIFT = 1.7
SIF_A = 1e-3
CODES, SCALES = "codes.npy", "scales.npy"
_BATCH = 64
# In steps of a fifth of the standard deviation codes deflate to 4.8 bits; the cosine to the exact vector is 0.998.
_CODES_A_DEVIATION = 10


def token_outputs(weights: Path, name: str) -> NDArray[np.float32]:
    """Every token's own output in "[CLS] token [SEP]": float32 (vocabulary, 384)."""
    from tokenizers import Tokenizer

    from benchmarks.training.build import load_weights

    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    model = MiniLM(load_weights(weights, name), None).model(name).SerializeToString()
    session = load_onnxruntime().InferenceSession(model, providers=["CPUExecutionProvider"])
    rows = np.arange(tokenizer.get_vocab_size(), dtype=np.int64)
    framed = np.stack([np.full_like(rows, first), rows, np.full_like(rows, last)], axis=1)
    outputs = [
        session.run(["token_embeddings"], {"input_ids": framed[start : start + _BATCH]})[0][:, 1]
        for start in range(0, len(rows), _BATCH)
    ]
    return np.concatenate(outputs)


def produced(vocabulary: dict[str, int]) -> NDArray[np.bool_]:
    """Mask of the tokens that a text can have: all but the special, the unused and the unknown ones."""
    named = {index: name for name, index in vocabulary.items()}
    names = [named[index] for index in range(len(named))]
    return np.array([len(name) == 1 or name == "[UNK]" or not name.startswith("[") for name in names])


def weigh(size: int) -> NDArray[np.float64]:
    """The SIF weight of every token, by Zipf's law over the words' ranks."""
    ranks = np.maximum(np.arange(size) - FIRST_WORD, 0) + 1
    frequency = 1 / (ranks + ZIPF_SHIFT)
    frequency /= frequency[FIRST_WORD:].sum()
    weights: NDArray[np.float64] = SIF_A / (SIF_A + frequency)
    return weights


def distil(outputs: NDArray[np.float32], used: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Centred, half whitened and weighted token vectors, float64 (vocabulary, 384); 0 for tokens not `used`."""
    vectors: NDArray[np.float64] = outputs.astype(np.float64)
    vectors -= vectors[used].mean(axis=0)
    variances, components = np.linalg.eigh(np.cov(vectors[used], rowvar=False))
    # LayerNorm leaves one direction without variance. Back from the components no sign is left to chance.
    scales = np.where(variances > 1e-9 * variances[-1], np.maximum(variances, 1e-30) ** -0.25, 0)
    halfway = (components * scales) @ components.T
    # A rotation changes no cosine, but sketches take one bit an axis: of 40,000 chat lines 400 nearest by sketch hold
    # 0.988 of the best ten after it, 0.981 on the model's own axes, 0.974 on the principal components.
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((WIDTH, WIDTH)))[0]
    vectors = vectors @ (halfway @ rotation) * weigh(len(vectors))[:, None]
    vectors[~used] = 0
    return vectors


def quantise(vectors: NDArray[np.float64]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Odd int8 codes with one float32 scale a row: (codes, scales (rows,)); 0 for rows of zeros.

    Odd codes keep every sign: codes of tokens are made of signs.
    """
    scales = (np.sqrt(np.mean(vectors**2, axis=1)) / _CODES_A_DEVIATION).astype(np.float32)
    steps = np.where(scales > 0, 2 * scales, 1).astype(np.float64)[:, None]
    codes = np.clip(2 * np.floor(vectors / steps) + 1, -127, 127)
    codes[scales == 0] = 0
    return codes.astype(np.int8), scales


def manifest(folder: Path, tokenizer: Path, name: str) -> dict[str, Any]:
    """Describe what the folder holds and how to use it; `tokenizer` is the default model's."""
    from benchmarks.training.build import MAP, SOURCE, TRAINED, WEIGHTS_SHA256, sha256, training
    from recallite_models import DEFAULT

    return {
        "name": "instant",
        "dimension": WIDTH,
        "pooling": "weighted sum",
        "normalised": True,
        "quantisation": "int8 per token",
        "licence": "Apache-2.0",
        "source": SOURCE,
        "weights_sha256": WEIGHTS_SHA256,
        **({"training": {**training(), "map_sha256": sha256(MAP)}} if name in TRAINED else {}),
        "tokenizer": {"model": DEFAULT, "sha256": sha256(tokenizer)},
        "files": {
            name: {"sha256": sha256(folder / name), "size": (folder / name).stat().st_size} for name in (CODES, SCALES)
        },
    }


def starting_vectors(weights: Path, name: str) -> NDArray[np.float64]:
    """Distilled vectors of every token of a model's vocabulary, before the map that `training.instant` trains."""
    from tokenizers import Tokenizer

    used = produced(Tokenizer.from_file(str(weights / "tokenizer.json")).get_vocab(with_added_tokens=True))
    return distil(token_outputs(weights, name), used)


def build(weights: Path, out: Path, name: str) -> None:
    """Write the folder of `instant` into `out`; the default model's tokenizer.json is named in it, not copied.

    The last bits of a float graph differ between machines, and with them a few codes by 1.
    """
    import recallite_models
    from benchmarks.training.build import MAP

    out.mkdir(parents=True, exist_ok=True)
    tokenizer = recallite_models.path().with_name("tokenizer.json")
    vectors = starting_vectors(weights, name)
    if name == recallite_models.DEFAULT:
        from safetensors.numpy import load_file

        vectors = vectors @ load_file(MAP)["map"].astype(np.float64)
    codes, scales = quantise(vectors)
    np.save(out / CODES, codes)
    np.save(out / SCALES, scales)
    (out / "manifest.json").write_text(json.dumps(manifest(out, tokenizer, name), indent=2) + "\n", "utf-8")
