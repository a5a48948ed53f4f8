"""Vectors as the in-memory index keeps them: 1-bit sketch, int8 codes and scale, with the row ids beside them.

They are derived once, when a vector is written: to read a million of them takes a fifth of the time that it takes to
read their float32 originals and quantise those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray


class PackedVectors(NamedTuple):
    """Row ids of n vectors and of the records that own them, int64; sketches (n, dimension / 64 rounded up) uint64;
    codes (n, dimension) int8 and their scales (n,) float32.
    """

    ids: NDArray[np.int64]
    owners: NDArray[np.int64]
    sketches: NDArray[np.uint64]
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]


def pack(ids: Sequence[int], owners: Sequence[int], values: NDArray[np.float32]) -> list[bytes]:
    """The packed form of each vector of (n, dimension); KernelError where one is not finite."""
    layout = _layout(values.shape[1])
    packed = np.zeros(len(values), dtype=layout)
    packed["ids"], packed["owners"] = ids, owners
    packed["codes"], packed["scales"] = kernels.quantize_int8(values)
    packed["sketches"] = kernels.sketch(values)
    whole = packed.tobytes()
    return [whole[start : start + layout.itemsize] for start in range(0, len(whole), layout.itemsize)]


def unpack(blob: bytes, dimension: int) -> PackedVectors:
    """Vectors from their packed forms, one behind the other."""
    packed = np.frombuffer(blob, dtype=_layout(dimension))
    return PackedVectors(*(packed[name] for name in PackedVectors._fields))


def _layout(dimension: int) -> np.dtype[np.void]:
    return np.dtype(
        [
            ("ids", "<i8"),
            ("owners", "<i8"),
            ("sketches", "<u8", ((dimension + 63) // 64,)),
            ("codes", "i1", (dimension,)),
            ("scales", "<f4"),
        ]
    )
