"""The conditions that every kernel relies on: shape, dtype, contiguity and finiteness, checked once for both backends.

Each check costs about a microsecond and never walks a large array: there the kernel checks what it reads, or the
scores that come out are checked. What is not refused has a result, the same on both backends.
"""

from __future__ import annotations

import math
import operator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

F32: TypeAlias = NDArray[np.float32]
F64: TypeAlias = NDArray[np.float64]
I8: TypeAlias = NDArray[np.int8]
I32: TypeAlias = NDArray[np.int32]
I64: TypeAlias = NDArray[np.int64]
U8: TypeAlias = NDArray[np.uint8]
U16: TypeAlias = NDArray[np.uint16]
U32: TypeAlias = NDArray[np.uint32]
U64: TypeAlias = NDArray[np.uint64]
Mask: TypeAlias = NDArray[np.uint8] | NDArray[np.bool_]

f32, f64 = np.dtype(np.float32), np.dtype(np.float64)
i8, i32, i64 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.int64)
u8, u16 = np.dtype(np.uint8), np.dtype(np.uint16)
u32, u64 = np.dtype(np.uint32), np.dtype(np.uint64)


LANES = 16
"""The rows of a block of sketches, which stand word by word."""
TILE_ROWS, TILE_QUERIES = 4, 4
"""The vectors and queries whose products are summed in registers of AVX-512; half of them would suit AVX2 better."""


STEP = 2**16 - 1
"""The greatest difference of two ascending numbers that two bytes hold."""
GREATEST = 2**31 - 1
"""The greatest int32."""


class KernelError(ValueError):
    """An argument or a setting of this package was refused; the message names it, its value and what is expected."""


NO_MASK: U8 = np.empty(0, np.uint8)
NO_MASK.flags.writeable = False


def array(name: str, value: Any, dtype: np.dtype[Any], *shape: int | None) -> NDArray[Any]:
    """Refuse anything but a C-contiguous array of `dtype` with `shape` (None: any length)."""
    if not isinstance(value, np.ndarray):
        raise KernelError(f"{name}: {type(value).__name__}; wanted a numpy array of {dtype}")
    # Identity first: nearly always true, at a fifth of the cost of a comparison.
    if value.dtype is not dtype and value.dtype != dtype:
        raise KernelError(f"{name}: dtype {value.dtype}; wanted {dtype}")
    got = value.shape
    if got != shape:
        # A plain loop: a generator would take half the time of this function.
        fits = len(got) == len(shape)
        if fits:
            for want, length in zip(shape, got):  # noqa: B905
                if want is not None and want != length:
                    fits = False
        if not fits:
            wanted = ", ".join("any" if want is None else str(want) for want in shape)
            raise KernelError(f"{name}: shape {got}; wanted ({wanted})")
    flags = value.flags
    if not flags.c_contiguous or not flags.aligned:
        raise KernelError(f"{name}: not C-contiguous and aligned; pass numpy.ascontiguousarray({name})")
    return value


def output(name: str, value: Any, dtype: np.dtype[Any], *shape: int | None) -> NDArray[Any]:
    """`array`, and it can be written to."""
    array(name, value, dtype, *shape)
    if not value.flags.writeable:
        raise KernelError(f"{name}: read-only; wanted a writable array, results are written there")
    return value  # type: ignore[no-any-return]


def finite(name: str, value: NDArray[Any]) -> None:
    """Refuse NaN and infinity."""
    if not _all_finite(value):
        raise not_finite(name, value)


def not_finite(name: str, value: NDArray[Any]) -> KernelError:
    """The error for an array with NaN or infinity, naming the first."""
    flat = int(np.flatnonzero(~np.isfinite(value).ravel())[0])
    at: Any = tuple(int(i) for i in np.unravel_index(flat, value.shape))
    at = at[0] if len(at) == 1 else at
    return KernelError(f"{name}: {value.ravel()[flat]} at {at}; wanted finite numbers")


def _all_finite(value: NDArray[Any]) -> bool:
    flat = value.reshape(-1)
    # A finite sum of squares has finite terms, and takes a third of the time. If it overflows, every value is
    # tested; so is a long array, for which BLAS would start its threads.
    return (flat.size < 8192 and math.isfinite(np.vdot(flat, flat))) or bool(np.isfinite(value).all())


def finite_scores(scores: NDArray[Any], of: str) -> None:
    """Refuse scores that are NaN or infinite because of a value in a large matrix."""
    if not _all_finite(scores):
        raise KernelError(f"{of}: holds NaN or infinity (a score is not finite); wanted finite numbers")


def mask(value: Mask | None, n: int) -> U8:
    """None becomes the empty mask; bool is taken as uint8; otherwise n bytes, 0 = not allowed."""
    if value is None:
        return NO_MASK
    if isinstance(value, np.ndarray) and value.dtype == np.bool_:
        value = value.view(np.uint8)
    checked: U8 = array("mask", value, u8, n)
    if n == 0:
        return NO_MASK
    return checked


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """An integer within [low, high]."""
    try:
        number = int(operator.index(value))
    except TypeError:
        raise KernelError(f"{name}: {value!r}; wanted a whole number") from None
    if number < low or (high is not None and number > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise KernelError(f"{name}: {number}; wanted {limits}")
    return number


def real(name: str, value: Any, low: float = -math.inf, high: float = math.inf, above: float = -math.inf) -> float:
    """A finite number within [low, high] and greater than `above`."""
    number = as_float(name, value)
    if not math.isfinite(number) or not low <= number <= high or number <= above:
        limits = "finite"
        if above != -math.inf:
            limits += f", above {above:g}"
        if low != -math.inf:
            limits += f", at least {low:g}"
        if high != math.inf:
            limits += f", at most {high:g}"
        raise KernelError(f"{name}: {number!r}; wanted {limits}")
    return number


def real_or_infinite(name: str, value: Any, low: float) -> float:
    """`real`, or infinity."""
    number = as_float(name, value)
    return number if number == math.inf else real(name, number, low)


def as_float(name: str, value: Any) -> float:
    """A number, also NaN or infinity."""
    try:
        if isinstance(value, np.ndarray):  # of one number NumPy makes a float, with a warning
            raise TypeError
        return float(value.__float__())  # a string has none
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise KernelError(f"{name}: {value!r}; wanted a number") from None


def indices(name: str, value: Any, n: int, length: int | None = None) -> I64:
    """int64 indices, each in [0, n)."""
    checked: I64 = array(name, value, i64, length)
    # As unsigned, a negative index is larger than any n: one pass checks both ends.
    if checked.size and int(checked.view(np.uint64).max()) >= n:
        raise out_of_range(name, checked, n)
    return checked


def out_of_range(name: str, value: I64, n: int) -> KernelError:
    """The error for indices that are not all in [0, n), naming the first."""
    return KernelError(f"{name}: holds {value[(value < 0) | (value >= n)][0]}; wanted 0 to {n - 1}")


def offsets(name: str, value: Any, total: int, items: int | None = None) -> I64:
    """CSR offsets: from 0 to `total`, never descending, one more than there are items."""
    checked: I64 = array(name, value, i64, None if items is None else items + 1)
    size = checked.size
    ends = size > 0 and checked.item(0) == 0 and checked.item(-1) == total
    if not ends or (size > 2 and bool((checked[1:] < checked[:-1]).any())):
        raise KernelError(f"{name}: not CSR offsets; wanted ascending int64 from 0 to {total}")
    return checked
