"""The kernels as the engine sees them, whose errors are ours, and products of matrices by one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from recallite.errors import KernelError

try:
    import recallite_kernels as kernels
except ValueError as refused:  # RECALLITE_KERNELS names no backend, or one that is not installed
    raise KernelError(str(refused)) from None

if TYPE_CHECKING:
    from typing import TypeVar

    from numpy.typing import NDArray

    Number = TypeVar("Number", bound=np.integer)

__all__ = ["cosines_to", "distinct", "kernel_errors", "kernels", "products"]

# OpenBLAS gives a product of more multiplications to several threads, which spin until all are scheduled: 31 texts with
# a cohort took 14 ms of processor time and 87 ms on two cores with twenty busy processes, by blocks of fewer 0.2 ms.
_ONE_THREAD, _ROWS = 1 << 18, 8


@contextmanager
def kernel_errors() -> Iterator[None]:
    """Raise `recallite.errors.KernelError` for the kernels' own."""
    try:
        yield
    except kernels.KernelError as refused:
        raise KernelError(str(refused)) from refused


def distinct(numbers: NDArray[Number]) -> NDArray[Number]:
    """The numbers, each once, ascending: `np.unique` imports masked arrays, in a twentieth of a command's time."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def cosines_to(vectors: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float64]:
    """The cosines of unit vectors, (vectors, dimension), to another one, by their distances: 1 for the same vector."""
    # A sum of products in float32 is out by 1e-6, and below 1 for a third of all vectors with themselves.
    apart = vectors - other
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", apart, apart, dtype=np.float64)
    return np.asarray(1.0 - squares / 2)


def products(rows: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """The products of each row with each other, (rows, others), by this thread alone."""
    found = np.empty((len(rows), len(others)), np.float32)
    columns = max(_ONE_THREAD // (_ROWS * rows.shape[1]), 1)
    for row in range(0, len(rows), _ROWS):
        for column in range(0, len(others), columns):
            block = np.s_[row : row + _ROWS, column : column + columns]
            np.matmul(rows[block[0]], others[block[1]].T, out=found[block])
    return found
