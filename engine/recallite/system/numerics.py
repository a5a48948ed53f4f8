"""The kernels as the engine sees them: their errors are ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from recallite.errors import KernelError

try:
    import recallite_kernels as kernels
except ValueError as refused:  # RECALLITE_KERNELS names no backend, or one that is not installed
    raise KernelError(str(refused)) from None

__all__ = ["kernel_errors", "kernels"]


@contextmanager
def kernel_errors() -> Iterator[None]:
    """Raise `recallite.errors.KernelError` for the kernels' own."""
    try:
        yield
    except kernels.KernelError as refused:
        raise KernelError(str(refused)) from refused
