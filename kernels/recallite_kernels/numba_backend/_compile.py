"""The program that compiles kernels into the cache: see `recallite_kernels.compiler_process`.

Alone in its process it may do what a library must not: it has numba optimise each kernel once, with all that it calls,
and not each helper as well, and it collects no garbage. That takes half the time.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from functools import cache as once
from typing import Any

from recallite_kernels import _system, cache, compiler_process, native

_PACKAGE = "recallite_kernels.numba_backend"
# Recalls go first where cores are few.
_NICENESS = 5
# Compiled to be called, not to be linked into other code: numba's own runtime.
_RUNTIME = "nrt"


@once
def with_numba() -> dict[str, Any]:
    """The kernels by name, declared to numba: the modules of this package are imported once more."""
    loaded = _taken()
    try:
        with compiler_process.compiling():
            importlib.import_module(_PACKAGE)
            jit: Any = importlib.import_module(f"{_PACKAGE}._jit")
        return {kernel.name: kernel for kernel in jit.KERNELS}
    finally:
        _taken()
        sys.modules.update(loaded)
        if _PACKAGE in loaded:  # importing it again made it an attribute of the package around it
            vars(sys.modules["recallite_kernels"])["numba_backend"] = loaded[_PACKAGE]


def _taken() -> dict[str, Any]:
    """Take the modules of this package out of those that are loaded."""
    names = [name for name in sys.modules if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]
    return {name: sys.modules.pop(name) for name in names}


def main() -> None:
    """Compile the kernels that are named as arguments, and print each name when the kernel is in the cache."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()
    _system.lower_priority(_NICENESS)
    kept_in, _ = cache.create()
    if kept_in is None:
        return
    called = {_RUNTIME}
    kernels = with_numba()
    _leave_helpers(called)
    for name in sys.argv[1:]:
        called.add(native.symbol(name))
        if kept_in.read(name) is None:  # another process may have compiled it
            kept_in.write(name, kernels[name].compiled())
        print(name, flush=True)


def _leave_helpers(called: set[str]) -> None:
    """Have numba make machine code of these libraries only; others stay as they are, to be linked into them."""
    from numba.core import codegen

    _codegen: Any = codegen  # without types of its own
    library, processor = _codegen.JITCodeLibrary, _codegen.JITCPUCodegen
    finalize, set_env = library.finalize, processor.set_env

    def finalize_if_called(self: Any) -> None:
        if self.name in called:
            finalize(self)
            return
        for other in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(other._reload_init)
            self._final_module.link_in(other._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def set_env_if_there(self: Any, name: str, environment: Any) -> None:
        if self._engine.is_symbol_defined(name):
            set_env(self, name, environment)

    library.finalize, processor.set_env = finalize_if_called, set_env_if_there


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)
