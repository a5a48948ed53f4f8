"""The backend that answers: chosen once at import, handed over from Python to JIT kernel by kernel.

`RECALLITE_KERNELS=numba|python`, else numba where it can be found. Importing this imports no numba: until a kernel is
loaded the python backend answers in its place, so that no call waits for the compiler. `start_background` loads the
kernels of a recall; the others are loaded, or compiled, when they are first asked for.
Kernels that are in the cache are loaded by LLVM alone; numba is imported where they are compiled, in another process.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from recallite_kernels import _system, cache, compiler_process, native, python_backend
from recallite_kernels.contract import KernelError
from recallite_kernels.protocol import NAMES, Backend

# Below the engine's logger, and silent where that is: the kernels are part of what `recallite` tells.
_log = logging.getLogger("recallite.kernels")
_log.addHandler(logging.NullHandler())
_NOT_LOADED = "not compiled yet; warmup compiles them"
_RETRY_SECONDS = 60.0
_IN_PYTHON = "kernels run in Python, which takes longer: %s"
# What a recall calls.
_OF_RECALL = ("recall",)

_answering: Any = SimpleNamespace(**{name: getattr(python_backend, name) for name in NAMES})
active = cast(Backend, _answering)


class KernelStatus(NamedTuple):
    """The `active` backend, the `selected` one, and why they differ or where compiled code is kept (`reason`).

    The JIT is active when every kernel of a recall is loaded.
    """

    active: str
    selected: str
    compiled: bool
    reason: str


def _choose() -> tuple[str, str]:
    wanted = os.environ.get("RECALLITE_KERNELS", "")
    if wanted not in ("", "numba", "python"):
        raise KernelError(f"RECALLITE_KERNELS: {wanted!r}; wanted numba or python, or leave it unset")
    if wanted == "python":
        return "python", "RECALLITE_KERNELS=python"
    if importlib.util.find_spec("numba") is not None:
        return "numba", _NOT_LOADED
    if wanted == "numba":
        raise KernelError("RECALLITE_KERNELS: 'numba', but numba is not installed; run: pip install numba")
    _log.warning(_IN_PYTHON, "numba is not installed")
    return "python", "numba is not installed"


_selected, _reason = _choose()
_compiled = _may_compile = False
_short = False  # whether the last attempt failed for want of files, memory or processes, which may pass
_seconds: dict[str, float] = {}
_loaded: set[str] = set()
_threads: set[threading.Thread] = set()
_compiler: compiler_process.CompilerProcess | None = None
_stop = threading.Event()
_loader = threading.Lock()  # one loader at a time
_step = threading.RLock()  # held while LLVM or numba works; fork waits for it


def status() -> KernelStatus:
    """The active backend and why it is."""
    reason = "compiled and cached, but not loaded by this process" if _reason == _NOT_LOADED and cached() else _reason
    return KernelStatus("numba" if _compiled else "python", _selected, _compiled, reason)


def cached() -> bool:
    """Whether the kernels of a recall are in the cache for this source, numba and machine; does not import numba."""
    if _selected != "numba":
        return False
    stored = cache.existing()
    return stored is not None and stored.complete()


def warmup(on_progress: Callable[[str, int, int], None] | None = None) -> dict[str, float]:
    """Load every kernel from the cache, or compile it: those of a recall first.

    on_progress(kernel, done, total) is called after each. Returns the seconds each took, "import" being LLVM's
    own; empty where the python backend is chosen. Raises KernelError if numba cannot be used.
    """
    if _selected == "numba":
        _load((*_OF_RECALL, *(name for name in NAMES if name not in _OF_RECALL)), on_progress)
        if not _compiled:
            raise KernelError(f"warmup: {_reason}")
    return dict(_seconds)


def start_background(compile: bool = False) -> threading.Thread | None:
    """Load the JIT kernels of a recall in a daemon thread if they are cached, or with compile=True in any case.

    They are compiled in a process of their own where there is an interpreter to start. The python backend answers
    meanwhile. Other kernels are loaded if they are cached; with compile=True they are compiled when they are first
    asked for. At interpreter exit the process is ended, and the thread after the kernel it is at. Returns the thread,
    or None if there is nothing to do.
    """
    global _reason, _may_compile
    if _selected != "numba" or _compiled or not (compile or cached()):
        return None
    running = next((thread for thread in _threads if thread.is_alive()), None)
    if running is not None:
        return running
    _stop.clear()
    _reason, _may_compile = "being loaded in the background", compile
    return _started(_load_for_recall)


def _started(work: Callable[..., None], *arguments: Any) -> threading.Thread:
    """A daemon thread that the end of the process waits for."""
    _hook_exit()
    thread = threading.Thread(target=work, args=arguments, name="recallite-kernels", daemon=True)
    thread.start()
    _threads.add(thread)
    return thread


def _load_for_recall() -> None:
    _load(_OF_RECALL)
    while _short and not _stop.wait(_RETRY_SECONDS):
        _load(_OF_RECALL)
    if _compiled and not _stop.is_set():
        _load(NAMES, compile=False)
        with _loader:  # another thread may not hand one over meanwhile
            for name in _others():
                setattr(_answering, name, _asking(name))


def _others() -> list[str]:
    """The compiled functions that are not loaded yet."""
    jit: Any = importlib.import_module("recallite_kernels.numba_backend._jit")
    return [kernel.name for kernel in jit.KERNELS if kernel.name not in _loaded] if _may_compile else []


def _asking(name: str) -> Callable[..., Any]:
    """Python's function, which has the kernel compiled when it is called first."""
    python: Callable[..., Any] = getattr(python_backend, name)
    first = threading.Lock()

    def answer(*arguments: Any) -> Any:
        if first.acquire(blocking=False) and not _stop.is_set():
            with contextlib.suppress(RuntimeError):  # no thread left
                _started(_load, (name,))
        return python(*arguments)

    return answer


def _load(
    names: Iterable[str], on_progress: Callable[[str, int, int], None] | None = None, compile: bool = True
) -> None:
    """Load these kernels, or compile them if that is wanted, and let each answer as soon as it is there."""
    global _compiled, _reason, _short
    with _loader:
        _short = False
        try:
            backend, every, kept_in, why_not = _prepare()
        except Exception as error:
            _reason, _short = f"numba cannot be used: {type(error).__name__}: {error}", isinstance(error, OSError)
            _log.warning(_IN_PYTHON, _reason)
            return
        wanted = [every[name] for name in names if name in every and not every[name].loaded]
        began = time.perf_counter()
        for done, kernel in enumerate(_as_loaded(wanted, kept_in, compile), 1):
            if isinstance(kernel, str):
                _reason = kernel
                if not _stop.is_set():
                    _log.warning(_IN_PYTHON, _reason)
                return
            _seconds[kernel.name] = time.perf_counter() - began
            began = time.perf_counter()
            _hand_over(kernel.name, backend)
            if on_progress is not None:
                on_progress(kernel.name, done, len(wanted))
        if not _compiled and all(every[name].loaded for name in _OF_RECALL if name in every):
            if kept_in is not None and not kept_in.complete():
                kept_in.mark_complete()
            _compiled = True
            _reason = f"kept in {kept_in.folder}" if kept_in else f"compiled in memory only: {why_not}"
            _log.info("kernels ready in %.1f s, %s", sum(_seconds.values()), _reason)


def _as_loaded(wanted: list[Any], kept_in: cache.Cache | None, compile: bool) -> Iterator[Any]:
    """Each kernel as soon as it is loaded; a text, why not, as the last."""
    global _short
    missing = []
    for kernel in wanted:
        if _stop.is_set():
            yield "stopped before every kernel was loaded"
            return
        with _step:
            loaded = kernel.load(kept_in)
        if loaded:
            yield kernel
        else:
            missing.append(kernel)
    if not compile:
        return
    if kept_in is not None and missing:
        yield from _compiled_elsewhere({kernel.name: kernel for kernel in missing}, kept_in)
    for kernel in missing:
        if kernel.loaded:
            continue
        if _stop.is_set():
            yield "stopped before every kernel was loaded"
            return
        try:
            with _step:
                kernel.compile(kept_in)
        except Exception as error:
            _short = isinstance(error, OSError)
            yield f"kernel {kernel.name} cannot be compiled: {type(error).__name__}: {error}"
            return
        yield kernel
        time.sleep(0.001)  # a fork that waits for _step gets it: a lock is not handed over by itself


def _compiled_elsewhere(missing: dict[str, Any], kept_in: cache.Cache) -> Iterator[Any]:
    """Each kernel as soon as another process has compiled it; fewer, or none, where that fails."""
    global _compiler
    program = compiler_process.interpreter()
    if program is None:
        return
    try:
        with _step:
            if _stop.is_set():
                return
            _compiler = compiler_process.CompilerProcess(program, list(missing))
    except (OSError, ValueError):  # no processes may be started here, or no more of them
        return
    for name in _compiler.compiled():
        with _step:
            loaded = name in missing and missing[name].load(kept_in)
        if loaded:
            yield missing[name]
    _compiler = None


def _hand_over(name: str, backend: Any) -> None:
    """Let a loaded kernel answer."""
    _loaded.add(name)
    setattr(_answering, name, getattr(backend, name))


def _prepare() -> tuple[Any, dict[str, Any], cache.Cache | None, str]:
    """Load LLVM and the JIT backend, and find the cache: read-only is enough if it is complete."""
    began = time.perf_counter()
    with _step:
        native.prepare()
        backend = importlib.import_module("recallite_kernels.numba_backend")
        jit: Any = importlib.import_module("recallite_kernels.numba_backend._jit")
        if not _stop.is_set():
            _hook_exit()
    _seconds.setdefault("import", time.perf_counter() - began)
    kept_in = cache.existing()
    why_not = ""
    if kept_in is None or not kept_in.complete():
        kept_in, why_not = cache.create()
    if kept_in is not None:
        kept_in.remove_abandoned()
    return backend, {kernel.name: kernel for kernel in jit.KERNELS}, kept_in, why_not


def _hook_exit() -> None:
    # Exit hooks run last in, first out: ours must run before those that numba registers when it is imported.
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)


def _at_exit() -> None:
    _stop.set()
    with _step:
        compiler = _compiler
    if compiler is not None:
        compiler.end()
    for thread in _threads - {threading.current_thread()}:
        thread.join()


def _after_fork_in_child() -> None:
    # Only the forking thread exists here. It held _step, so LLVM was idle, but the loader thread is gone.
    global _compiler, _loader, _step, _reason
    if _threads and not _compiled:
        _reason = "the process forked before the kernels were loaded; warmup loads them"
    if _compiler is not None:
        _compiler.forget()
    _compiler = None
    _threads.clear()
    _loader, _step = threading.Lock(), threading.RLock()


_system.around_fork(before=lambda: _step.acquire(), after=lambda: _step.release(), in_child=_after_fork_in_child)
