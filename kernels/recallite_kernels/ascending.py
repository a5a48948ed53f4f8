"""Lists of ascending numbers as bytes: each number as its difference from the one before it, in LEB128.

The first number of a list is its difference from 0. LEB128 (DWARF 5, 7.6) has seven bits a byte, the lowest first; all
but the last byte of a number have the eighth bit. The numbers of a record's words take 1.4 bytes each, of four.
"""

from __future__ import annotations

from recallite_kernels import contract, dispatch
from recallite_kernels.contract import I32, I64, U8, KernelError, array


def pack_ascending(numbers: I32, offsets: I64) -> tuple[U8, I64]:
    """The bytes of lists of numbers, and where those of each begin: uint8 (b,) and int64 (n + 1,).

    List i is numbers[offsets[i]:offsets[i + 1]], int32 (m,): 0 or more, and none less than the one before it.
    """
    array("numbers", numbers, contract.i32, None)
    contract.offsets("offsets", offsets, numbers.shape[0])
    packed = dispatch.active.pack_ascending(numbers, offsets)
    if packed is None:
        raise KernelError("numbers: a list has a number below 0 or below the one before it; wanted ascending numbers")
    return packed


def unpack_ascending(packed: U8, offsets: I64) -> I32:
    """The numbers of lists that `pack_ascending` packed, int32 (m,), given the offsets of the lists of numbers."""
    array("packed", packed, contract.u8, None)
    array("offsets", offsets, contract.i64, None)
    if not offsets.shape[0] or not 0 <= offsets.item(-1) <= packed.shape[0]:
        raise KernelError(f"offsets: not those of lists in {packed.shape[0]} bytes; wanted one number a byte at most")
    contract.offsets("offsets", offsets, offsets.item(-1))
    numbers = dispatch.active.unpack_ascending(packed, offsets)
    if numbers is None:
        raise KernelError(f"packed: not {offsets.item(-1)} numbers of int32; wanted what pack_ascending returns")
    return numbers
