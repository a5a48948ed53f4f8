"""Lists of ascending numbers, each as its difference from the one before it, in two bytes.

The first number of a list is its difference from 0. A difference above `contract.STEP`, 65,535, is a 0 for each `STEP`
that is taken from it, and then what is left, 1 to `STEP`. LEB128 takes 0.4 bytes a number less, and in NumPy three
times as long to read.
"""

from __future__ import annotations

import numpy as np

from recallite_kernels import contract, dispatch
from recallite_kernels.contract import I32, I64, STEP, U16, KernelError, array


def pack_ascending(numbers: I32, offsets: I64) -> tuple[U16, I64]:
    """Return the differences of the numbers of lists, uint16 (b,), and their offsets by list, int64 (n + 1,).

    List i is numbers[offsets[i]:offsets[i + 1]], int32 (m,): above 0, and each above the one before it.
    """
    array("numbers", numbers, contract.i32, None)
    contract.offsets("offsets", offsets, numbers.shape[0])
    left = np.diff(numbers.astype(np.int64), prepend=0)
    begins = offsets[:-1][offsets[:-1] < offsets[1:]]
    left[begins] = numbers[begins]
    if left.size and left.min() < 1:
        raise KernelError("numbers: one is not above 0 and above the one before it; wanted ascending numbers")
    steps = (left - 1) // STEP
    if not steps.any():
        return left.astype(np.uint16), offsets.copy()
    ends = np.concatenate([[0], np.cumsum(steps + 1)])
    packed = np.zeros(ends[-1], np.uint16)
    packed[ends[1:] - 1] = left - STEP * steps
    return packed, ends[offsets]


def unpack_ascending(packed: U16, offsets: I64) -> I32:
    """Return the numbers of lists that `pack_ascending` packed, int32 (m,), given the offsets of the numbers."""
    array("packed", packed, contract.u16, None)
    array("offsets", offsets, contract.i64, None)
    if not offsets.shape[0] or not 0 <= offsets.item(-1) <= packed.shape[0]:
        raise KernelError(
            f"offsets: not those of lists in {packed.shape[0]} differences; wanted a last offset of at most that"
        )
    contract.offsets("offsets", offsets, offsets.item(-1))
    numbers = dispatch.active.unpack_ascending(packed, offsets)
    if numbers is None:
        raise KernelError(f"packed: not {offsets.item(-1)} numbers of int32; wanted what pack_ascending returns")
    return numbers
