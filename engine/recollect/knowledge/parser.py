"""Reads documents in a process of its own, so that a hostile file harms nothing but its own reading."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from types import TracebackType
from typing import BinaryIO

import msgspec

from recollect import errors
from recollect.errors import DocumentTooLarge, DocumentUnreadable
from recollect.knowledge.detecting import detect
from recollect.knowledge.loaded import Limits, Loaded
from recollect.knowledge.plain import load_text
from recollect.knowledge.worker import LENGTH_BYTES, Reply, Request

__all__ = ["Parser"]

# Not multiprocessing, which runs the caller's own script again in the child.
_BOOT = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from recollect.knowledge.worker import main; main()"
# What starting Python needs, and no secrets. Without HOME Python asks the system's user database, which may be remote.
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "TZ")
_BYTES_PER_CHAR = 8
_OVERHEAD_BYTES = 16_000_000


class _Worker:
    """A process, and the thread that receives what it answers."""

    def __init__(self, longest_reply: int) -> None:
        if not sys.executable:
            raise DocumentUnreadable("the process that reads documents cannot be started: where Python is, is unknown")
        paths = json.dumps([entry or os.getcwd() for entry in sys.path])
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOT, paths], env=environment, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as reason:
            raise DocumentUnreadable(f"the process that reads documents cannot be started: {reason}") from reason
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests = self.process.stdin
        self.replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=_receive, args=(self.process.stdout, self.replies, longest_reply), daemon=True
        )
        self._thread.start()

    def end(self) -> int:
        """End the process; returns how it ended, if it had, as `Popen.returncode`."""
        self.process.kill()
        code = self.process.wait()
        self._thread.join()
        with contextlib.suppress(BrokenPipeError):
            self.requests.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


def _receive(stream: BinaryIO, replies: queue.SimpleQueue[bytes | None], longest: int) -> None:
    while len(head := stream.read(LENGTH_BYTES)) == LENGTH_BYTES:
        length = int.from_bytes(head, "little")
        if length > longest:
            replies.put(b"")
            return
        replies.put(stream.read(length))
    replies.put(None)


class Parser:
    """Makes text of documents. Use it as a context manager, from any threads; one document is read at a time.

    Plain text and Markdown are read here, everything else in a child process: it is started for the first document,
    serves the next ones, and is replaced after it has crashed or used up its time.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._worker: _Worker | None = None

    def __enter__(self) -> Parser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child process. Again, it does nothing."""
        with self._lock:
            self._end()

    def load(
        self, data: bytes, name: str, *, media_type: str | None = None, charset: str | None = None,
        password: str | None = None,
    ) -> Loaded:  # fmt: skip
        """The text of a document of this name; `media_type` and `charset` are what a server said of it.

        Raises the errors under DocumentError.
        """
        if len(data) > self._limits.max_bytes:
            raise DocumentTooLarge(f"it has {len(data):,} bytes; the limit is {self._limits.max_bytes:,}")
        kind = detect(data, name, media_type)
        if kind in ("markdown", "text"):
            return load_text(data, self._limits.max_chars, markdown=kind == "markdown", charset=charset)
        request = Request(kind, data, self._limits, password, charset)
        with self._lock:
            try:
                reply = self._ask(request)
            except BaseException:
                self._end()
                raise
        if reply.loaded is not None:
            return reply.loaded
        assert reply.failure is not None
        raise getattr(errors, reply.failure.error)(reply.failure.message)

    def _ask(self, request: Request) -> Reply:
        if self._worker is None:
            self._worker = _Worker(self._limits.max_chars * _BYTES_PER_CHAR + _OVERHEAD_BYTES)
        worker = self._worker
        message = msgspec.msgpack.encode(request)
        with contextlib.suppress(BrokenPipeError):  # it has died; the reply says how
            worker.requests.write(len(message).to_bytes(LENGTH_BYTES, "little"))
            worker.requests.write(message)
            worker.requests.flush()
        try:
            answer = worker.replies.get(timeout=self._limits.seconds)
        except queue.Empty:
            raise DocumentTooLarge(f"it takes longer than {self._limits.seconds:g} s to be read") from None
        if answer is None:
            raise self._crashed(worker)
        if not answer:
            raise DocumentTooLarge(f"its text is longer than {self._limits.max_chars:,} characters")
        return msgspec.msgpack.decode(answer, type=Reply)

    def _crashed(self, worker: _Worker) -> Exception:
        code = worker.process.wait()
        if code == -getattr(signal, "SIGXCPU", 0):
            return DocumentTooLarge(f"it takes longer than {self._limits.seconds:g} s to be read")
        ended = f"signal {-code}" if code < 0 else f"code {code}"
        return DocumentUnreadable(
            f"its reader ended with {ended}: it is damaged, or needs more than {self._limits.memory_mb:,} MB of memory"
        )

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None
