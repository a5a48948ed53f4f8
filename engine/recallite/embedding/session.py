"""ONNX Runtime sessions: one per model file and process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recallite.embedding.model_folder import ModelFolder, verified_sha256
from recallite.errors import EmbedderError
from recallite.system.cpus import preemptions, saturates_int8, usable_cpus
from recallite.system.parallel import run_tasks
from recallite.system.processes import after_fork
from recallite_models.runtime import load_onnxruntime

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Tokens per batch, padding included. Chat turns per second on one core: one text 305, 128 tokens 368, 256 381, 512 365,
# 1,024 366, 4,096 309: beyond 512 the activations no longer fit into the second-level cache.
BATCH_TOKENS = 256


# A query's matrices are small: more than two cores do not help.
_QUERY_THREADS = 2
_LONGEST_PAUSE = 32


class Runtime:
    """Sessions and their tokenizer. Thread-safe; a forked child gets new ones from `runtime`.

    Bulk work runs several batches in parallel on a session with one intra-op thread. A single query uses a session with
    two threads, which spin only while it runs: 17 tokens take 1.35 ms, against 1.9 with one thread and 1.8 with two
    threads that do not spin. On a busy machine, though, one of the threads waits for the other to be scheduled: 17.5 ms
    with five busy processes on two AVX2 cores, against 8.6 ms on one thread. The system reports this (`preemptions`:
    median 4.0 ms for runs without, 17.6 ms with), and queries then use one thread for a while.

    The first session takes 24 MB, 11 of them of the mapped file of weights, the second 12. Each is opened when first
    needed; `queries_first` says which one that is.
    """

    def __init__(self, folder: ModelFolder, *, queries_first: bool = False) -> None:
        self._folder = folder
        self._threads = usable_cpus()
        first = _QUERY_THREADS if queries_first and self._threads >= _QUERY_THREADS else 1
        # Hash the files while the session is constructed: both release the GIL.
        hashed: Future[str] = Future()
        thread = threading.Thread(target=_fill, args=(hashed, lambda: verified_sha256(folder)))
        thread.start()
        try:
            session, self.tokenizer = _open(folder, first)
        except Exception:
            thread.join()
            hashed.result()  # report a damaged file as such, not as a parse error
            raise
        self.sha256 = hashed.result()
        self.inputs = frozenset(entry.name for entry in session.get_inputs())
        self.outputs = {entry.name: entry.shape for entry in session.get_outputs()}
        self._sessions = {first: session}
        self._query_lock = threading.Lock()
        self._pause, self._next_pause = 0, 1
        self._lock = threading.Lock()

    def run(self, outputs: list[str], feeds: dict[str, NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        """Compute these outputs of one batch, and nothing else. Raises EmbedderError."""
        return _run(self._session(1), outputs, feeds)

    def run_query(self, outputs: list[str], feeds: dict[str, NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        """`run` for a single query. One caller at a time gets two cores; concurrent callers get one."""
        if self._threads < _QUERY_THREADS or not self._query_lock.acquire(blocking=False):
            return self.run(outputs, feeds)
        try:
            if self._pause:
                self._pause -= 1
                return self.run(outputs, feeds)
            session = self._session(_QUERY_THREADS)
            before = preemptions()
            results = _run(session, outputs, feeds)
            if preemptions() == before:
                self._next_pause = max(1, self._next_pause // 2)
            else:
                self._pause, self._next_pause = self._next_pause, min(2 * self._next_pause, _LONGEST_PAUSE)
            return results
        finally:
            self._query_lock.release()

    def spread(
        self,
        batches: Sequence[NDArray[np.int64]],
        work: Callable[[NDArray[np.int64]], None],
        tick: Callable[[int], None],
    ) -> None:
        """Run `work` on every batch on all usable cores; the caller's thread calls `tick` with the rows done so far."""
        lock, done = threading.Lock(), 0

        def one(batch: NDArray[np.int64]) -> None:
            nonlocal done
            work(batch)
            with lock:
                done += len(batch)

        run_tasks([partial(one, batch) for batch in batches], lambda: tick(done))
        tick(done)

    def _session(self, threads: int) -> Any:
        """The session with this many threads, opened at the first call."""
        session = self._sessions.get(threads)
        if session is not None:
            return session
        with self._lock:
            if threads not in self._sessions:
                self._sessions[threads] = _open_session(self._folder, threads)
            return self._sessions[threads]


def _run(session: Any, outputs: list[str], feeds: dict[str, NDArray[np.int64]]) -> list[NDArray[np.float32]]:
    try:
        results: list[NDArray[np.float32]] = session.run(outputs, feeds)
    except Exception as reason:
        raise EmbedderError(f"the model failed on a batch: {reason}") from reason
    return results


def _fill(future: Future[str], work: Callable[[], str]) -> None:
    try:
        future.set_result(work())
    except BaseException as reason:
        future.set_exception(reason)


def _open(folder: ModelFolder, threads: int) -> tuple[Any, Any]:
    """A session with this many threads, and the tokenizer."""
    try:
        load_onnxruntime()
        from tokenizers import Tokenizer
    except ImportError as reason:
        raise EmbedderError(
            f"cannot embed without {reason.name}: pip install onnxruntime tokenizers, "
            'or use Settings(embedder="none") for keyword search alone',
            "missing",
        ) from reason
    try:
        tokenizer = Tokenizer.from_file(str(folder.tokenizer))
        tokenizer.no_padding()
        tokenizer.no_truncation()
    except Exception as reason:
        raise EmbedderError(
            f"{folder.tokenizer} is no tokenizer that can be read: {reason}", "invalid_model"
        ) from reason
    return _open_session(folder, threads), tokenizer


def _open_session(folder: ModelFolder, threads: int) -> Any:
    onnxruntime = load_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0" if threads == 1 else "1")
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = 3
    # The shipped graph is already optimised: levels above "basic" would fuse Add and LayerNormalization into the slower
    # SkipLayerNormalization. A user's own graph gets every optimisation.
    levels = onnxruntime.GraphOptimizationLevel
    final = folder.sha256 is not None
    options.graph_optimization_level = levels.ORT_ENABLE_BASIC if final else levels.ORT_ENABLE_ALL
    disabled: list[str] = []
    if saturates_int8():
        # Unsigned weights: exact without VNNI, half the speed on a CPU with it. Needs the extended level. Signed
        # weights scaled so that no adjacent pair overflows are as exact and 1.13 to 1.2 times as fast on AVX2, which
        # is worth doing with the next model, not worth recomputing every stored vector.
        options.add_session_config_entry("session.x64quantprecision", "1")
        if final:
            options.graph_optimization_level = levels.ORT_ENABLE_EXTENDED
            disabled = ["SkipLayerNormFusion"]
    try:
        session = onnxruntime.InferenceSession(
            # Without enable_fallback=0 a model that fails to load is tried twice, with a printed message.
            str(folder.model), options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled,
            enable_fallback=0,
        )  # fmt: skip
    except Exception as reason:
        raise EmbedderError(f"{folder.model} cannot be loaded by ONNX Runtime: {reason}", "invalid_model") from reason
    return session


_Key = tuple[Path, int, int]
_runtimes: dict[_Key, Runtime] = {}
_lock = threading.Lock()


def runtime(folder: ModelFolder, *, queries_first: bool = False) -> Runtime:
    """The runtime of this model file, shared by the process; see `Runtime` for `queries_first`."""
    status = folder.model.stat()
    key = (folder.model.resolve(), status.st_mtime_ns, status.st_size)
    with _lock:
        if key not in _runtimes:
            _runtimes[key] = Runtime(folder, queries_first=queries_first)
        return _runtimes[key]


def _forget_after_fork() -> None:
    """A forked child has none of the parent's threads and opens its own sessions."""
    global _lock
    _lock = threading.Lock()
    _abandoned.extend(_runtimes.values())
    _runtimes.clear()


# Never destroyed: closing a session in the child would wait for threads that exist only in the parent.
_abandoned: list[Runtime] = []

after_fork(_forget_after_fork)
