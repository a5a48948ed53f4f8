"""Functions of kernels that are written in LLVM's own code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

from recallite_kernels.contract import LANES, TILE_QUERIES, TILE_ROWS
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


def _multiply(many: int) -> Any:
    """The intrinsic that multiplies `many` queries, from `query` on, by the rows of a tile.

    sums[r, query + c] = the products of queries[query + c, j] and vectors[rows[r], j] for j < end, a multiple of 16.

    Sixteen sums of each product are kept in a register, and added up by twos in the same order: a sum does not depend
    on what else is in the tile.
    """
    number, small, lanes = ir.IntType(64), ir.IntType(32), ir.VectorType(ir.FloatType(), LANES)
    evens, odds = (ir.Constant(ir.VectorType(small, LANES), [*range(first, 2 * LANES, 2)]) for first in (0, 1))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from_queries, from_vectors, from_rows, to_sums = (
            _arrays.make_array(signature.args[place])(context, builder, arguments[place]) for place in (0, 2, 3, 5)
        )

        def at(array: Any, row: Any) -> Any:
            return builder.gep(array.data, [builder.mul(row, builder.extract_value(array.shape, 1))])

        def lanes_of(head: Any) -> Any:
            return builder.load(builder.bitcast(builder.gep(head, [j]), lanes.as_pointer()), align=4)

        of_rows = [at(from_vectors, builder.load(builder.gep(from_rows.data, [number(r)]))) for r in range(TILE_ROWS)]
        of_queries = [at(from_queries, builder.add(arguments[1], number(c))) for c in range(many)]
        before, loop, after = builder.block, builder.append_basic_block("products"), builder.append_basic_block("added")
        builder.branch(loop)
        builder.position_at_end(loop)
        j, totals = builder.phi(number), [builder.phi(lanes) for _ in range(TILE_ROWS * many)]
        asked, stored = [*map(lanes_of, of_queries)], [*map(lanes_of, of_rows)]
        added = []
        for place, total in enumerate(totals):
            product = builder.fmul(stored[place // many], asked[place % many], flags=("contract",))
            added.append(builder.fadd(total, product, flags=("contract",)))
            total.add_incoming(ir.Constant(lanes, [0.0] * LANES), before)
            total.add_incoming(added[-1], loop)
        following = builder.add(j, number(LANES))
        j.add_incoming(number(0), before)
        j.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, arguments[4]), loop, after)
        builder.position_at_end(after)
        for _ in range(LANES.bit_length() - 1):
            pairs = zip(added[::2], added[1::2], strict=True) if len(added) > 1 else [(added[0], added[0])]
            added = [
                builder.fadd(builder.shuffle_vector(one, other, evens), builder.shuffle_vector(one, other, odds))
                for one, other in pairs
            ]
        for place in range(len(totals)):
            to = builder.add(arguments[1], number(place % many))
            whole = builder.extract_element(added[0], small(place))
            builder.store(whole, builder.gep(at(to_sums, number(place // many)), [to]))
        return context.get_dummy_value()

    def products(typing_context: Any, queries: Any, query: Any, vectors: Any, rows: Any, end: Any, sums: Any) -> Any:
        return types.void(queries, types.int64, vectors, rows, types.int64, sums), generate

    return products


popcount: Any = intrinsic(_popcount)
multiply: Any = intrinsic(_multiply(TILE_QUERIES))
multiply_one: Any = intrinsic(_multiply(1))
prefetch: Any = intrinsic(_prefetch)
