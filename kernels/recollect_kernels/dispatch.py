"""Which backend answers: chosen once at import, switched from Python to JIT when every kernel is ready.

`RECOLLECT_KERNELS=numba|python`, else numba where it can be found. Importing this imports no numba: until
`warmup` or `start_background` has loaded all kernels, the python backend answers, so that a first call never waits
for the compiler.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from recollect_kernels import cache, python_backend
from recollect_kernels.contract import KernelError
from recollect_kernels.protocol import Backend

active: Backend = cast(Backend, python_backend)
_NOT_LOADED = "not compiled yet; warmup compiles them"


@dataclass(frozen=True, slots=True)
class KernelStatus:
    """The `active` backend, the `chosen` one, and why they differ or where compiled code is kept (`reason`)."""

    active: str
    chosen: str
    compiled: bool
    reason: str


def _choose() -> tuple[str, str]:
    wanted = os.environ.get("RECOLLECT_KERNELS", "")
    if wanted not in ("", "numba", "python"):
        raise KernelError(f"RECOLLECT_KERNELS: {wanted!r}; wanted numba or python, or leave it unset")
    if wanted == "python":
        return "python", "RECOLLECT_KERNELS=python"
    if importlib.util.find_spec("numba") is not None:
        return "numba", _NOT_LOADED
    if wanted == "numba":
        raise KernelError("RECOLLECT_KERNELS: 'numba', but numba is not installed; run: pip install numba")
    return "python", "numba is not installed"


_chosen, _reason = _choose()
_compiled = False
_seconds: dict[str, float] = {}
_thread: threading.Thread | None = None
_stop = threading.Event()
_loader = threading.Lock()  # one loader at a time
_step = threading.RLock()  # held while numba works; fork waits for it


def status() -> KernelStatus:
    """Which backend is active and why."""
    reason = "compiled and cached, but not loaded by this process" if _reason == _NOT_LOADED and cached() else _reason
    return KernelStatus("numba" if _compiled else "python", _chosen, _compiled, reason)


def cached() -> bool:
    """Whether every kernel is in the cache for this source, numba and machine; does not import numba."""
    if _chosen != "numba":
        return False
    found = cache.existing()
    return found is not None and found.complete()


def warmup(on_progress: Callable[[str, int, int], None] | None = None) -> dict[str, float]:
    """Load every kernel from the cache or compile it, then switch to the JIT backend.

    on_progress(kernel, done, total) is called after each. Returns the seconds each took, "import" being numba's
    own; empty where the python backend is chosen. Raises KernelError if numba cannot be used.
    """
    if _chosen == "numba":
        _load(on_progress)
        if not _compiled:
            raise KernelError(f"warmup: {_reason}")
    return dict(_seconds)


def start_background(compile: bool = False) -> threading.Thread | None:
    """Load the JIT backend in a daemon thread if it is cached, or with compile=True in any case.

    The python backend answers meanwhile. At interpreter exit the thread ends after the kernel it is at. Returns
    the thread, or None if there is nothing to do.
    """
    global _thread, _reason
    if _chosen != "numba" or _compiled or not (compile or cached()):
        return None
    if _thread is None or not _thread.is_alive():
        _stop.clear()
        _reason = "being loaded in the background"
        _hook_exit()
        _thread = threading.Thread(target=_load, name="recollect-kernels", daemon=True)
        _thread.start()
    return _thread


def _load(on_progress: Callable[[str, int, int], None] | None = None) -> None:
    global active, _compiled, _reason
    with _loader:
        if _compiled:
            return
        try:
            backend, kernels, kept_in, why_not = _prepare()
        except Exception as error:
            _reason = f"numba cannot be used: {type(error).__name__}: {error}"
            return
        compiling = kept_in is None or not kept_in.complete()
        for done, kernel in enumerate(kernels, 1):
            if _stop.is_set():
                _reason = "stopped before every kernel was loaded"
                return
            began = time.perf_counter()
            try:
                with _step:
                    kernel.load(kept_in)
            except Exception as error:
                _reason = f"kernel {kernel.name} cannot be compiled: {type(error).__name__}: {error}"
                return
            _seconds[kernel.name] = time.perf_counter() - began
            if compiling:
                time.sleep(0.001)  # a fork that waits for _step gets it: a lock is not handed over by itself
            if on_progress is not None:
                on_progress(kernel.name, done, len(kernels))
        if kept_in is not None and not kept_in.complete():
            kept_in.mark_complete()
        active = backend
        _compiled = True
        _reason = f"kept in {kept_in.folder}" if kept_in else f"compiled in memory only: {why_not}"


def _prepare() -> tuple[Backend, list[Any], cache.Cache | None, str]:
    """Import numba and the JIT backend, and find the cache: read-only is enough if it is complete."""
    began = time.perf_counter()
    with _step:
        numba: Any = importlib.import_module("numba")
        if numba.config.DISABLE_JIT:
            raise RuntimeError("NUMBA_DISABLE_JIT is set")
        backend = cast(Backend, importlib.import_module("recollect_kernels.numba_backend"))
        jit: Any = importlib.import_module("recollect_kernels.numba_backend._jit")
        if not _stop.is_set():
            _hook_exit()
    _seconds["import"] = time.perf_counter() - began
    kept_in = cache.existing()
    why_not = ""
    if kept_in is None or not kept_in.complete():
        kept_in, why_not = cache.create()
    if kept_in is not None:
        kept_in.remove_abandoned()
    return backend, jit.KERNELS, kept_in, why_not


def _hook_exit() -> None:
    # Exit hooks run last in, first out: ours must run before those that numba registers when it is imported.
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)


def _at_exit() -> None:
    _stop.set()
    if _thread is not None and _thread is not threading.current_thread():
        _thread.join()


def _after_fork_in_child() -> None:
    # Only the forking thread exists here. It held _step, so numba was idle, but the loader thread is gone.
    global _thread, _loader, _step, _reason
    if _thread is not None and not _compiled:
        _reason = "the process forked before the kernels were loaded; warmup loads them"
    _thread = None
    _loader, _step = threading.Lock(), threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _step.acquire(),
        after_in_parent=lambda: _step.release(),
        after_in_child=_after_fork_in_child,
    )
