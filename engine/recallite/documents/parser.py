"""Reads documents in a subprocess: a malicious file fails only its own ingest."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from typing import BinaryIO

import msgspec

from recallite.documents.detecting import detect
from recallite.documents.loaded import Limits, Loaded, too_long
from recallite.documents.plain import load_text
from recallite.documents.reader_process import Failure, Reply, Request, received, send
from recallite.errors import DocumentError
from recallite.system.processes import ending, out_of_time

# Not multiprocessing, which would run the caller's script again in the child.
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from recallite.documents.reader_process import main; main()"
)  # What Python needs to start, without secrets. Without HOME Python queries the user database, which may be remote.
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "TZ")
_BYTES_PER_CHAR = 8
_OVERHEAD_BYTES = 16_000_000
_REPLIES: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


class _Worker:
    """A subprocess, and the thread that receives its replies."""

    def __init__(self, longest_reply: int) -> None:
        if not sys.executable:
            raise DocumentError("the process that reads documents cannot be started: where Python is, is unknown")
        paths = json.dumps([entry or os.getcwd() for entry in sys.path])
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOT, paths], env=environment, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as reason:
            raise DocumentError(f"the process that reads documents cannot be started: {reason}") from reason
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests = self.process.stdin
        self.replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=_receive, args=(self.process.stdout, self.replies, longest_reply), daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        self._thread.join()
        with contextlib.suppress(BrokenPipeError):
            self.requests.close()
        if self.process.stdout is not None:
            self.process.stdout.close()


def _receive(stream: BinaryIO, replies: queue.SimpleQueue[bytes | None], longest: int) -> None:
    for message in received(stream, longest):
        replies.put(message)
        if not message:
            return
    replies.put(None)


class Parser:
    """Extracts the text of documents. Use it as a context manager, from any thread; one document is read at a time.

    Plain text and Markdown are read here, everything else in a subprocess, which is started for the first document,
    reads the next ones too, and is replaced after a crash, a timeout or a document that was too large.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._worker: _Worker | None = None

    def __enter__(self) -> Parser:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child process. Again, it does nothing."""
        with self._lock:
            self._end()

    def load(
        self, data: bytes, name: str, *, media_type: str | None = None, charset: str | None = None,
        password: str | None = None,
    ) -> Loaded:  # fmt: skip
        """Return the text of a document with this name; a server may have declared `media_type` and `charset`.

        Raises DocumentError.
        """
        if len(data) > self._limits.max_bytes:
            raise DocumentError(f"it has {len(data):,} bytes; the limit is {self._limits.max_bytes:,}", "too_large")
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
            # What such a document has taken is not all given back: the next one would lack the memory.
            if isinstance(reply, Failure) and reply.reason == "too_large":
                self._end()
        if isinstance(reply, Failure):
            raise DocumentError(reply.message, reply.reason)
        return reply

    def _ask(self, request: Request) -> Reply:
        if self._worker is None:
            self._worker = _Worker(self._limits.max_chars * _BYTES_PER_CHAR + _OVERHEAD_BYTES)
        worker = self._worker
        with contextlib.suppress(BrokenPipeError):  # it has ended; the reply says how
            send(worker.requests, request)
        try:
            answer = worker.replies.get(timeout=self._limits.seconds)
        except queue.Empty:
            raise DocumentError(f"it takes longer than {self._limits.seconds:g} s to be read", "too_large") from None
        if answer is None:
            raise self._crashed(worker)
        if not answer:
            raise too_long(self._limits.max_chars)
        return _REPLIES.decode(answer)

    def _crashed(self, worker: _Worker) -> Exception:
        code = worker.process.wait()
        if out_of_time(code):
            return DocumentError(f"it takes longer than {self._limits.seconds:g} s to be read", "too_large")
        return DocumentError(
            f"its reader ended with {ending(code)}: it is damaged, or needs more than {self._limits.memory_mb:,} MB of "
            "memory"
        )

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None
