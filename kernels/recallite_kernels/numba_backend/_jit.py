"""How a kernel is declared, compiled, cached and called.

Every kernel has one explicit signature, so exactly one specialisation exists. Arrays it only reads are declared
read-only, which accepts writable ones too. The contract has checked types before, so the compiled entry point is
called directly, past the dispatcher: that saves type resolution on every call.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numba
from numba import extending
from numba.core import compiler, registry, runtime, serialize, types

from recallite_kernels import contract, signals
from recallite_kernels.arguments import (
    Asked,
    Codes,
    Forest,
    Graph,
    Lists,
    Mentions,
    Postings,
    Records,
    Sketches,
    Statements,
    Tokens,
    Weighed,
    WordSlices,
)  # fmt: skip
from recallite_kernels.cache import Cache
from recallite_kernels.groups import fields_of
from recallite_kernels.signals import RankParameters

# Parts of numba without types of their own.
_compiler: Any = compiler
_types: Any = types
_runtime: Any = runtime
_serialize: Any = serialize

# All fastmath flags. Reassociation lets float32 sums vectorise; without "nnan" and "ninf", since those would remove the
# tests for NaN. float64 kernels use none: their results, and so their ties, are those of the definition to the bit.
FAST = {"reassoc", "contract", "arcp", "nsz"}
# Kernels allocate nothing, so that Numba has no references to count.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
# Nothing but kernels calls helpers: without wrappers that take Python objects they compile in half the time.
_HELPER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}


def reads(dtype: Any, ndim: int) -> Any:
    return types.Array(dtype, ndim, "C", readonly=True)


def writes(dtype: Any, ndim: int) -> Any:
    return types.Array(dtype, ndim, "C")


I64, F32, F64 = types.int64, types.float32, types.float64
F32_1, F32_2 = reads(types.float32, 1), reads(types.float32, 2)
F64_1, F64_2 = reads(types.float64, 1), reads(types.float64, 2)
I64_1, I64_2 = reads(types.int64, 1), reads(types.int64, 2)
U64_1, U64_2, U64_3 = reads(types.uint64, 1), reads(types.uint64, 2), reads(types.uint64, 3)
U32_2 = reads(types.uint32, 2)
I8_2, I32_1, I32_2, U8_1, U8_2, U16_1, U16_2 = (
    reads(types.int8, 2), reads(types.int32, 1), reads(types.int32, 2), reads(types.uint8, 1),
    reads(types.uint8, 2), reads(types.uint16, 1), reads(types.uint16, 2),
)  # fmt: skip
OUT_F32, OUT_F32_2 = writes(types.float32, 1), writes(types.float32, 2)
OUT_F64, OUT_F64_2 = writes(types.float64, 1), writes(types.float64, 2)
OUT_I64, OUT_I64_2 = writes(types.int64, 1), writes(types.int64, 2)
OUT_U64, OUT_U64_2 = writes(types.uint64, 1), writes(types.uint64, 2)
OUT_I8_2, OUT_I32, OUT_U8 = writes(types.int8, 2), writes(types.int32, 1), writes(types.uint8, 1)
OUT_U8_2, OUT_U32_2 = writes(types.uint8, 2), writes(types.uint32, 2)
OUT_U16, OUT_U16_2 = writes(types.uint16, 1), writes(types.uint16, 2)

_SCALARS = {
    dtype: getattr(types, dtype.name)
    for dtype in (contract.f32, contract.f64, contract.i8, contract.i32, contract.i64, contract.u8, contract.u16,
                  contract.u32, contract.u64)
}  # fmt: skip


def type_of(group: Any) -> Any:
    """The type of a group of arguments, by its annotations."""
    if group in (int, float):
        return I64 if group is int else F64
    fields = []
    for _, kind, dimensions, written in fields_of(group):
        array = writes if written else reads
        fields.append(array(_SCALARS[kind], dimensions) if kind in _SCALARS else type_of(kind))
    return _types.NamedTuple(fields, group)


LISTS, CODES, SKETCHES, TOKENS, POSTINGS, GRAPH, RECORDS, MENTIONS, FOREST, WEIGHED, WORD_SLICES = map(
    type_of, (Lists, Codes, Sketches, Tokens, Postings, Graph, Records, Mentions, Forest, Weighed, WordSlices)
)
STATEMENTS, ASKED, PARAMETERS = type_of(Statements), type_of(Asked), type_of(RankParameters)


def named(group: type, *each: Any) -> Any:
    """The type of a group of arrays that no caller passes."""
    return _types.NamedTuple(each, group)


class Kernel:
    """A JIT function with one signature; `call` is its compiled entry point once it is loaded or compiled.

    It is named as the function of `recallite_kernels.protocol.Backend` that calls it.
    """

    def __init__(self, function: Callable[..., Any], signature: Any, fast: bool) -> None:
        self.name = function.__name__.strip("_")
        self.library = function.__qualname__  # numba's name for its code
        self.call: Callable[..., Any] = self._not_loaded
        self._function, self._signature, self._fast = function, signature, fast
        self._result: Any = None  # keeps the machine code alive

    @property
    def loaded(self) -> bool:
        """Whether it can be called."""
        return self._result is not None

    def load(self, cache: Cache | None) -> bool:
        """Load it from the cache; whether it was there."""
        stored = cache.read(self.name) if cache else None
        if stored is not None:
            context = _context()
            try:
                compiled_for, payload = pickle.loads(stored)
                if compiled_for == context.codegen().magic_tuple():
                    self._ready(_compiler.CompileResult._rebuild(context, *payload))
            except Exception:  # a damaged file is compiled again, whatever is wrong with it
                self._result = None
        return self.loaded

    def compile(self, cache: Cache | None) -> None:
        """Compile it and store it in the cache."""
        context = _context()
        dispatcher = numba.njit(self._function, fastmath=FAST if self._fast else False, **_OPTIONS)
        dispatcher.compile(self._signature)
        result = dispatcher.overloads[self._signature.args]
        if cache:
            cache.write(self.name, _serialize.dumps((context.codegen().magic_tuple(), result._reduce())))
        self._ready(result)

    def _ready(self, result: Any) -> None:
        self._result, self.call = result, result.entry_point

    def _not_loaded(self, *arguments: Any) -> Any:
        raise RuntimeError(f"kernel {self.name} is not loaded")


def _context() -> Any:
    # All that loading machine code needs. The context's own refresh takes 0.2 s to declare every type and function to
    # the compiler, which compiling does anyway.
    context: Any = registry.cpu_target.target_context
    _runtime.rtsys.initialize(context)
    return context


KERNELS: list[Kernel] = []

# Both backends share these functions: they are compiled into the kernels that call them.
for _formula in vars(signals).values():
    if inspect.isfunction(_formula) and _formula.__module__ == signals.__name__:
        extending.register_jitable(**_HELPER)(_formula)


def kernel(*arguments: Any, returns: Any = types.void, fast: bool = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel; nothing is compiled until `compile`."""

    def declare(function: Callable[..., Any]) -> Kernel:
        KERNELS.append(Kernel(function, returns(*arguments), fast))
        return KERNELS[-1]

    return declare


def stage(of: Kernel) -> Callable[..., Any]:
    """A kernel as a function that other kernels call; compiled into them."""
    return numba.njit(of._function, fastmath=FAST if of._fast else False, **_HELPER)  # type: ignore[no-any-return]


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """`helper` for the float64 kernels, without fastmath."""
    return numba.njit(function, **_HELPER)  # type: ignore[no-any-return]


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call; compiled into them."""
    return numba.njit(function, fastmath=FAST, **_HELPER)  # type: ignore[no-any-return]
