"""Vectors as the in-memory index keeps them: 1-bit sketch, int8 codes and scale, and the residuals that codes leave.

They are derived from the stored vectors whenever an index reads these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recallite.system.numerics import kernels


class PackedVectors(NamedTuple):
    """Row ids of n vectors and of the records that own them, int64; sketches (n, dimension / 64 rounded up) uint64;
    codes (n, dimension) int8 and their scales (n,) float32; residuals (n, dimension) int8.

    A component is (code + residual / 254) * scale to within scale / 508: a cosine of unit vectors to within 7.5e-6.
    """

    ids: NDArray[np.int64]
    owners: NDArray[np.int64]
    sketches: NDArray[np.uint64]
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    residuals: NDArray[np.int8]


def as_float32(values: Sequence[bytes], dimension: int) -> NDArray[np.float32]:
    """Return stored vectors as float32 (n, dimension); those of half the bytes are float16."""
    sizes = {len(value) for value in values}
    if len(sizes) > 1:
        return np.concatenate([as_float32([value], dimension) for value in values])
    stored = np.frombuffer(b"".join(values), dtype="<f2" if sizes == {2 * dimension} else "<f4")
    return stored.reshape(-1, dimension).astype(np.float32, copy=False)


def pack(ids: NDArray[np.int64], owners: NDArray[np.int64], values: NDArray[np.float32]) -> PackedVectors:
    """Pack vectors (n, dimension), without those that are not finite: `verify` names them."""
    try:
        codes, scales = kernels.quantize_int8(values)
    except kernels.KernelError:
        finite = np.isfinite(values).all(axis=1)
        return pack(ids[finite], owners[finite], np.ascontiguousarray(values[finite]))
    return PackedVectors(ids, owners, kernels.sketch(values), codes, scales, residuals_of(values, codes, scales))


def residuals_of(values: NDArray[np.float32], codes: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.int8]:
    """The rest of vectors (n, dimension) that their codes leave, in steps of a 254th of a code's."""
    inverse = np.divide(1.0, scales, out=np.zeros(len(scales), dtype=np.float32), where=scales > 0)
    left = values * inverse[:, None]
    left -= codes
    left *= kernels.RESIDUAL_STEPS
    residuals: NDArray[np.int8] = np.clip(np.rint(left, out=left), -127, 127, out=left).astype(np.int8)
    return residuals
