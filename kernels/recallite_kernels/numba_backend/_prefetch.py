"""Asking for memory before it is read: rows of candidates are far apart, and a miss takes as long as many sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

from recallite_kernels.numba_backend._jit import helper

_arrays: Any = arrayobj  # without types of its own

LINE = 64  # bytes that arrive together
_BYTES = ir.IntType(8).as_pointer()


def _prefetch(typing_context: Any, values: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = _arrays.make_array(signature.args[0])(context, builder, arguments[0])
        number = ir.IntType(32)
        name = "llvm.prefetch.p0"
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(ir.VoidType(), [_BYTES, number, number, number]), name
        )
        # Read, to be kept in all caches, data.
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), _BYTES)
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(values, at), generate


prefetch: Any = intrinsic(_prefetch)
"""prefetch(values, at): ask for the element at index `at` of the array's memory, in or out of range."""


@helper
def prefetch_row(codes: Any, row: Any) -> None:
    """Ask for a row of int8 codes."""
    width = np.uintp(codes.shape[1])
    for at in range(np.uintp(0), width, np.uintp(LINE)):
        prefetch(codes, np.uintp(row) * width + at)
