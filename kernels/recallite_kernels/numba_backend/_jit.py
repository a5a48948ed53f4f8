"""The declaration, loading and calling of kernels. Numba is not imported here, unless kernels are to be compiled.

Every kernel has one explicit signature, so exactly one specialisation exists. Arrays it only reads are declared
read-only, which accepts writable ones too. The contract has checked types before.

To be called, a kernel is linked from its object file (`recallite_kernels.native`). To be compiled, these modules are
imported once more by `_compile.with_numba`, which sets `compiles`: then what is declared here is declared to numba too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from recallite_kernels import contract, native
from recallite_kernels.arguments import Forest, Postings
from recallite_kernels.cache import Cache
from recallite_kernels.compiler_process import compiles
from recallite_kernels.groups import fields_of

_numba: Any = importlib.import_module("recallite_kernels.numba_backend._numba") if compiles() else None

_SCALARS = {
    contract.f32, contract.f64, contract.i8, contract.i32, contract.i64, contract.u8, contract.u16, contract.u32,
    contract.u64,
}  # fmt: skip


class Array(NamedTuple):
    """The type of a C-contiguous array."""

    dtype: str
    dimensions: int
    written: bool


class Group(NamedTuple):
    """The type of a group of arguments: a NamedTuple."""

    group: type
    fields: tuple[Any, ...]


def reads(dtype: str, dimensions: int) -> Array:
    return Array(dtype, dimensions, written=False)


def writes(dtype: str, dimensions: int) -> Array:
    return Array(dtype, dimensions, written=True)


I64, F64, NOTHING = "int64", "float64", "void"
F32_1, F32_2 = reads("float32", 1), reads("float32", 2)
F64_1, F64_2 = reads("float64", 1), reads("float64", 2)
I64_1, I64_2 = reads("int64", 1), reads("int64", 2)
U64_1, U64_2, U64_3 = reads("uint64", 1), reads("uint64", 2), reads("uint64", 3)
I8_2, I32_1, U8_1 = reads("int8", 2), reads("int32", 1), reads("uint8", 1)
U16_1, U16_2 = reads("uint16", 1), reads("uint16", 2)
OUT_F32, OUT_F32_2 = writes("float32", 1), writes("float32", 2)
OUT_F64 = writes("float64", 1)
OUT_I64, OUT_I64_2 = writes("int64", 1), writes("int64", 2)
OUT_U64, OUT_U64_2 = writes("uint64", 1), writes("uint64", 2)
OUT_I8_2, OUT_I32, OUT_U8 = writes("int8", 2), writes("int32", 1), writes("uint8", 1)
OUT_U16, OUT_U16_2 = writes("uint16", 1), writes("uint16", 2)


def type_of(group: Any) -> Any:
    """The type of a group of arguments, by its annotations."""
    if group in (int, float):
        return I64 if group is int else F64
    fields = []
    for _, kind, dimensions, written in fields_of(group):
        fields.append(Array(kind.name, dimensions, written) if kind in _SCALARS else type_of(kind))
    return Group(group, tuple(fields))


POSTINGS, FOREST = type_of(Postings), type_of(Forest)


class Kernel:
    """A function with one signature; `call` is its machine code once it is loaded or compiled.

    It is named as the function of `recallite_kernels.protocol.Backend` that calls it.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], returns: Any, fast: bool) -> None:
        self.name = function.__name__.strip("_")
        self.call: Callable[..., Any] = self._not_loaded
        self.function, self.arguments, self.returns, self.fast = function, arguments, returns, fast
        self._result: Any = None

    @property
    def loaded(self) -> bool:
        """Whether it can be called."""
        return self._result is not None

    def load(self, cache: Cache | None) -> bool:
        """Load it from the cache; whether it was there."""
        stored = cache.read(self.name) if cache else None
        if stored is not None:
            try:
                self._ready(stored)
            except Exception:  # a damaged file is compiled again, whatever is wrong with it
                self._result = None
        return self.loaded

    def compile(self, cache: Cache | None) -> None:
        """Compile it in this process, which imports numba, and store it in the cache."""
        compiler: Any = importlib.import_module("recallite_kernels.numba_backend._compile")
        content = compiler.with_numba()[self.name].compiled()
        if cache:
            cache.write(self.name, content)
        self._ready(content)
        if not self.loaded:
            raise RuntimeError("its machine code cannot be linked")

    def compiled(self) -> bytes:
        """Return its machine code, as `native.packed` has it; it must have been declared to numba."""
        content: bytes = _numba.compiled(self)
        return content

    def _ready(self, content: bytes) -> None:
        self._result = native.linked(self.name, content)
        if self._result is not None:
            self.call = self._result

    def _not_loaded(self, *arguments: Any) -> Any:
        raise RuntimeError(f"kernel {self.name} is not loaded")


KERNELS: list[Kernel] = []


def kernel(*arguments: Any, returns: Any = NOTHING, fast: bool = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel; nothing is compiled until `compile`."""

    def declare(function: Callable[..., Any]) -> Kernel:
        KERNELS.append(Kernel(function, arguments, returns, fast))
        return KERNELS[-1]

    return declare


def stage(of: Kernel) -> Callable[..., Any]:
    """A kernel as a function that other kernels call; compiled into them."""
    return helper(of.function) if of.fast else exact(of.function)


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """`helper` for the float64 kernels, without fastmath."""
    declared: Callable[..., Any] = _numba.function(function, fast=False) if _numba else function
    return declared


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call; compiled into them."""
    declared: Callable[..., Any] = _numba.function(function, fast=True) if _numba else function
    return declared


def intrinsic(name: str) -> Any:
    """A function of `_intrinsics`, which writes LLVM's own code; None if nothing is compiled."""
    if _numba is None:
        return None
    return getattr(importlib.import_module("recallite_kernels.numba_backend._intrinsics"), name)
