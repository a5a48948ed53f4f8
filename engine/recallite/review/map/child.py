"""Starting the child process that computes a map, and hearing from it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING

import msgspec
import numpy as np

from recallite.review.map.map_process import LENGTH_BYTES, Computed, Failed, Job, Reply, Told
from recallite.system.cpus import usable_cpus
from recallite.system.processes import background_options, ending
from recallite_kernels.cache import private_folder
from recallite_kernels.compiler_process import interpreter

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Not multiprocessing, which would run the caller's script again in the child.
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from recallite.review.map.map_process import main; main()"
)
# What Python needs to start, without secrets. Without HOME Python queries the user database, which may be remote.
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "TZ")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
_REPLIES: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


class MapFailed(Exception):
    """The child has computed no map; the message says why."""


def umap_installed() -> bool:
    """Whether umap-learn is installed; imports nothing of it."""
    return importlib.util.find_spec("umap") is not None and importlib.util.find_spec("numba") is not None


class Child:
    """One child process, for one map. `end` may be called from any thread; then `result` raises MapFailed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    @property
    def pid(self) -> int | None:
        """The number of the process, while there is one."""
        return None if self._process is None else self._process.pid

    def send(self, job: Job, blocks: Iterable[NDArray[np.float32]]) -> None:
        """Start the process, and give it vectors in blocks of rows. Raises MapFailed where it cannot be started."""
        process = self._start()
        assert process.stdin is not None
        encoded = msgspec.msgpack.encode(job)
        alive = _sent(process.stdin, len(encoded).to_bytes(LENGTH_BYTES, "little") + encoded)
        for block in blocks:
            if not alive:
                break
            alive = _sent(process.stdin, np.ascontiguousarray(block, dtype="<f4").tobytes())

    def result(self, told: Callable[[str, float], object]) -> tuple[str, NDArray[np.float32]]:
        """The method used and the points float32 (n, 2), when the process has them. Raises MapFailed."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        for reply in _replies(process.stdout):
            if isinstance(reply, Computed):
                return reply.method, np.frombuffer(reply.points, dtype="<f4").reshape(-1, 2)
            if isinstance(reply, Failed):
                raise MapFailed(reply.reason)
            told(reply.stage, reply.share)
        raise MapFailed("it was stopped" if self._ended else self._how_it_ended(process))

    def _start(self) -> subprocess.Popen[bytes]:
        program = interpreter()
        if program is None:
            raise MapFailed("the process that computes the map cannot be started: there is no Python interpreter")
        paths = json.dumps([entry or os.getcwd() for entry in sys.path])
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        environment |= dict.fromkeys(_THREADS, str(usable_cpus()))
        folder = private_folder("projection")
        if folder is not None:
            environment["NUMBA_CACHE_DIR"] = str(folder)
        with self._lock:
            if self._ended:
                raise MapFailed("it was stopped")
            try:
                self._process = subprocess.Popen(
                    [program, "-I", "-c", _BOOT, paths], env=environment, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **background_options(),
                )  # fmt: skip
            except OSError as reason:
                raise MapFailed(f"the process that computes the map cannot be started: {reason}") from reason
            return self._process

    def end(self) -> None:
        """End the process, if there is one, and wait for that."""
        with self._lock:
            self._ended, process = True, self._process
        if process is None:
            return
        with contextlib.suppress(OSError):
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    @staticmethod
    def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
        return f"the process that computes the map ended with {ending(process.wait())}"


def _sent(stream: IO[bytes], data: bytes) -> bool:
    """Whether the child has taken it; otherwise it has ended, and how is said later."""
    try:
        stream.write(data)
        stream.flush()
    except (OSError, ValueError):
        return False
    return True


def _replies(stream: IO[bytes]) -> Iterator[Told | Computed | Failed]:
    with contextlib.suppress(ValueError, OSError):  # the stream was closed by `end`
        while len(head := stream.read(LENGTH_BYTES)) == LENGTH_BYTES:
            length = int.from_bytes(head, "little")
            body = stream.read(length)
            if len(body) < length:
                return
            yield _REPLIES.decode(body)
