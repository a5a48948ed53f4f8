"""Asking for memory before it is read: rows of candidates are far apart, and a miss takes as long as many sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.numba_backend._jit import helper, intrinsic

LINE = 64  # bytes that arrive together

prefetch = intrinsic("prefetch")
"""prefetch(values, at): ask for the element at index `at` of the array's memory, in or out of range."""


@helper
def prefetch_row(codes: Any, row: Any) -> None:
    """Ask for a row of int8 codes."""
    width = np.uintp(codes.shape[1])
    for at in range(np.uintp(0), width, np.uintp(LINE)):
        prefetch(codes, np.uintp(row) * width + at)
