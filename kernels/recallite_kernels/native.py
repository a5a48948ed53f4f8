"""Kernels as machine code in object files, which LLVM links into the process: calling them imports no numba.

Numba makes them (`numba_backend/_numba.py`). It takes 0.3 s to import and is needed only to compile.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

FAILED, NO_ARRAY = -(2**62), -(2**62) - 1
"""Returned by the function of an object file if the kernel raised, and if an argument is not such an array."""

_target: Any = None
_linkers: list[Any] = []  # one for each kernel that was linked: they own its memory


def symbol(name: str) -> str:
    """The name of a kernel's function in its object file."""
    return f"recallite_kernel_{name}"


def prepare() -> None:
    """Load LLVM. Raises ImportError, or what else keeps it from being used."""
    global _target
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise RuntimeError("NUMBA_DISABLE_JIT is set")
    if _target is not None:
        return
    import llvmlite.binding as llvm

    if sys.platform == "win32":
        import numba  # noqa: F401  # names to LLVM the functions of C that the system's library lacks
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    _target = llvm.Target.from_triple(llvm.get_process_triple())


def packed(code: bytes, needs: list[str]) -> bytes:
    """Return what is kept of a kernel: the processor that it is for, the functions that it calls, the object file."""
    return "\n".join([_processor(), " ".join(needs), ""]).encode() + code


def linked(name: str, content: bytes) -> Callable[..., int] | None:
    """Link a kernel that was `packed`; None if it is for another processor, or calls a function that is missing."""
    import llvmlite.binding as llvm

    processor, needs, code = content.split(b"\n", 2)
    if processor.decode() != _processor():
        return None
    # The linker takes the machine over; before there is a linker LLVM finds no functions of this process.
    machine = _target.create_target_machine(jit=True, codemodel="jitdefault")
    linker = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    # LLVM ends the process if one is missing.
    if any(llvm.address_of_symbol(needed) is None for needed in needs.decode().split()):
        return None
    linker.add_object_file(llvm.ObjectFileRef.from_data(code))
    linker.finalize_object()
    _linkers.append(linker)
    address = linker.get_function_address(symbol(name))
    function = ctypes.PYFUNCTYPE(ctypes.c_longlong, ctypes.py_object, ctypes.py_object)(address)

    def call(*arguments: Any) -> int:
        returned: int = function(arguments, np.ndarray)
        if returned <= FAILED:
            raise _refusal(name, returned)
        return returned

    return call


def _refusal(name: str, returned: int) -> Exception:
    if returned == NO_ARRAY:
        return TypeError(f"kernel {name}: an argument is no array, or has other dimensions")
    return RuntimeError(f"kernel {name} failed")


def _processor() -> str:
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
