"""The kernels as the engine sees them: their errors are ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from recallite.errors import KernelError

try:
    import recallite_kernels as kernels
except ValueError as refused:  # RECALLITE_KERNELS names no backend, or one that is not installed
    raise KernelError(str(refused)) from None
from numpy.typing import NDArray

__all__ = ["distinct", "kernel_errors", "kernels"]


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values, ascending, each once. np.unique imports numpy.ma: 20 to 30 ms of the first recall of a process."""
    ordered = np.sort(values, axis=None)
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    once: NDArray[np.int64] = ordered[first]
    return once


@contextmanager
def kernel_errors() -> Iterator[None]:
    """Raise `recallite.errors.KernelError` for the kernels' own."""
    try:
        yield
    except kernels.KernelError as refused:
        raise KernelError(str(refused)) from refused
