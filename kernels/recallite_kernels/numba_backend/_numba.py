"""The declarations of this package as numba has them: types, functions, and the machine code of a kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numba
from numba import extending
from numba.core import registry, types

from recallite_kernels import native, signals
from recallite_kernels.numba_backend._entry import object_code

# Parts of numba without types of their own.
_types: Any = types
_registry: Any = registry

# All fastmath flags. Reassociation lets float32 sums vectorise; without "nnan" and "ninf", since those would remove the
# tests for NaN. float64 kernels use none: their results, and so their ties, are those of the definition to the bit.
_FAST = {"reassoc", "contract", "arcp", "nsz"}
# Kernels allocate nothing, so that Numba has no references to count. Nothing but kernels calls helpers, and `_entry`
# calls kernels: without wrappers that take Python objects they compile in half the time.
_OPTIONS: dict[str, Any] = {
    "nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True, "no_cpython_wrapper": True,
}  # fmt: skip

# Both backends share these functions: they are compiled into the kernels that call them.
for _formula in vars(signals).values():
    if inspect.isfunction(_formula) and _formula.__module__ == signals.__name__:
        extending.register_jitable(**_OPTIONS)(_formula)


def function(of: Callable[..., Any], *, fast: bool) -> Any:
    """Declare a function that numba compiles into those that call it."""
    return numba.njit(of, fastmath=_FAST if fast else False, **_OPTIONS)


def type_of(kind: Any) -> Any:
    """Numba's type for one of `_jit`."""
    if isinstance(kind, str):
        return getattr(_types, kind)
    if hasattr(kind, "group"):
        return _types.NamedTuple([type_of(field) for field in kind.fields], kind.group)
    return _types.Array(getattr(_types, kind.dtype), kind.dimensions, "C", readonly=not kind.written)


def compiled(kernel: Any) -> bytes:
    """Compile a kernel to machine code, as `native.packed` has it."""
    dispatcher, arguments = function(kernel.function, fast=kernel.fast), tuple(map(type_of, kernel.arguments))
    dispatcher.compile(type_of(kernel.returns)(*arguments))
    context = _registry.cpu_target.target_context
    return native.packed(*object_code(context, dispatcher.overloads[arguments], native.symbol(kernel.name)))
