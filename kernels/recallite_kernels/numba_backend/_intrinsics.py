"""Functions of kernels that are written in LLVM's own code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

from recallite_kernels.numba_backend._reference import referred as referred

_arrays: Any = arrayobj  # without types of its own
_BYTES = ir.IntType(8).as_pointer()


def _popcount(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


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


popcount: Any = intrinsic(_popcount)
prefetch: Any = intrinsic(_prefetch)
