"""The child process that computes a map: vectors come by standard input, coordinates leave by standard output.

It opens no connection and no store, starts no process, and writes files only into the cache folder of compiled code
that it is given. It ends with its parent, whatever ends that: then its standard input ends.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from recallite.system.confinement import refusing
from recallite.system.processes import ignore_interrupts, lower_priority

LENGTH_BYTES = 8


class Job(Struct, frozen=True):
    """What to compute; the vectors follow, float32 and of unit length, in rows."""

    method: str
    vectors: int
    dimension: int


class Told(Struct, frozen=True, tag=True):
    """At which stage it is, and which share of that is done."""

    stage: str
    share: float


class Computed(Struct, frozen=True, tag=True):
    """The method used, and float32 coordinates (n, 2) in rows."""

    method: str
    points: bytes


class Failed(Struct, frozen=True, tag=True):
    """Why there is no map."""

    reason: str


Reply = Told | Computed | Failed
"""What the child says."""


def main() -> None:
    """Compute the one map that is asked for."""
    requests = sys.stdin.buffer
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not mix with the replies
    ignore_interrupts()
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    lower_priority()
    cache = os.environ.get("NUMBA_CACHE_DIR")
    _confine(cache)
    job = msgspec.msgpack.decode(_framed(requests), type=Job)
    data = _exactly(requests, 4 * job.vectors * job.dimension)
    threading.Thread(target=_end_with_parent, args=(requests,), daemon=True).start()

    def say(reply: Reply) -> None:
        message = msgspec.msgpack.encode(reply)
        replies.write(len(message).to_bytes(LENGTH_BYTES, "little") + message)
        replies.flush()

    try:
        say(_compute(job, data, lambda stage, share: say(Told(stage, share)), compiles_to_disk=cache is not None))
    except MemoryError:
        say(Failed(f"{job.vectors:,} vectors need more memory than there is"))
    except Exception as fault:  # of a library
        say(Failed(f"{type(fault).__name__}: {str(fault)[:300]}"))


def _compute(job: Job, data: bytearray, told: Any, *, compiles_to_disk: bool) -> Computed:
    import numpy as np

    from recallite.review.map.layout import lay_out

    if not compiles_to_disk and job.method == "umap":
        from numba.core.dispatcher import Dispatcher

        # Otherwise numba would keep compiled code beside the libraries, or refuse to compile.
        Dispatcher.enable_caching = lambda self: None  # type: ignore[method-assign]
    vectors = np.frombuffer(data, dtype="<f4").reshape(job.vectors, job.dimension)
    method, points = lay_out(vectors, job.method, told)
    return Computed(method, points.astype("<f4").tobytes())


def _framed(stream: BinaryIO) -> bytes:
    return bytes(_exactly(stream, int.from_bytes(_exactly(stream, LENGTH_BYTES), "little")))


def _exactly(stream: BinaryIO, count: int) -> bytearray:
    """So many bytes; the process exits where the stream ends before, for then the parent is gone."""
    data = bytearray(count)
    view = memoryview(data)
    while view:
        done = stream.readinto(view)  # type: ignore[attr-defined]
        if not done:
            os._exit(1)
        view = view[done:]
    return data


def _end_with_parent(stream: BinaryIO) -> None:
    while stream.read(1):
        pass
    os._exit(1)


def _confine(cache: str | None) -> None:
    """From now on refuse network, processes, and writing files outside the cache folder."""
    inside = None if cache is None else os.path.join(os.path.realpath(cache), "")

    def may_write(path: int | str | bytes) -> bool:
        # A descriptor was opened before, or by what was allowed.
        if path == os.devnull or isinstance(path, int):
            return True
        return inside is not None and os.path.realpath(os.fsdecode(path)).startswith(inside)

    sys.addaudithook(refusing("the process that computes a map", may_write=may_write))
