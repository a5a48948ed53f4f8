"""Reads documents in a subprocess, with limited memory and time, no network and no other files.

A malicious file fails only its own ingest. The subprocess runs `main`, reads requests from standard input and ends with
it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import IO, BinaryIO

import msgspec
from msgspec import Struct

from recallite.documents.document import Limits
from recallite.errors import DocumentError, DocumentReason
from recallite.system.messages import install_command
from recallite.system.processes import (
    ending,
    ignore_interrupts,
    limit_memory_and_files,
    limit_processor_time,
    out_of_time,
    refusing,
)
from recallite_documents.detecting import Kind, Loaded, detect, load_text, too_long

_LENGTH_BYTES = 8
_NESTED = 20_000


class Request(Struct, frozen=True):
    """A document to read."""

    kind: Kind
    data: bytes
    limits: Limits
    password: str | None = None
    charset: str | None = None


class Failure(Struct, frozen=True, tag=True):
    """The DocumentError that stopped the reading of a document."""

    message: str
    reason: DocumentReason


Reply = Loaded | Failure
"""The result of a request."""


def send(stream: IO[bytes], message: Request | Reply) -> None:
    """Write a message with its length before it."""
    data = msgspec.msgpack.encode(message)
    stream.write(len(data).to_bytes(_LENGTH_BYTES, "little"))
    stream.write(data)
    stream.flush()


def received(stream: BinaryIO, longest: int | None = None) -> Iterator[bytes]:
    """Yield the messages of a stream until it ends; b"" in place of one that is longer than `longest`, the last."""
    while len(head := stream.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
        length = int.from_bytes(head, "little")
        if longest is not None and length > longest:
            yield b""
            return
        yield stream.read(length)


def main() -> None:
    """Serve requests until standard input ends."""
    requests = sys.stdin.buffer
    replies = os.fdopen(os.dup(1), "wb")
    # The output of a library must not mix with the replies.
    os.dup2(2, 1)
    ignore_interrupts()
    sys.setrecursionlimit(_NESTED)
    sys.dont_write_bytecode = True
    sys.addaudithook(refusing("the reader of documents"))
    waiting: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_receive_requests, args=(requests, waiting), daemon=True).start()
    limited = False
    while True:
        request = waiting.get()
        # If the system has no such limits the parent's timeout remains.
        limit_processor_time(request.limits.seconds)
        if not limited:
            limit_memory_and_files(request.limits.memory_mb * 1_000_000)
        limited = True
        send(replies, _answer(request))


def _receive_requests(stream: BinaryIO, waiting: queue.SimpleQueue[Request]) -> None:
    """Read requests; when the stream ends the parent is gone, and this process exits whatever it is doing."""
    for message in received(stream):
        waiting.put(msgspec.msgpack.decode(message, type=Request))
    os._exit(0)


def _answer(request: Request) -> Reply:
    try:
        return _load(request)
    except DocumentError as fault:
        return Failure(str(fault), fault.reason)
    except ImportError as reason:
        missing = f"{reason.name or 'a library'}, which reads {request.kind}, is missing"
        return Failure(f"{missing}: {install_command('documents')}", "parser_missing")
    except MemoryError:
        return Failure(f"it needs more than {request.limits.memory_mb:,} MB of memory to be read", "too_large")
    except RecursionError:
        return Failure("it is nested too deeply", "unreadable")
    except Exception as reason:  # a library on a damaged file
        message = f"it is damaged, or its reader has a fault: {type(reason).__name__}: {str(reason)[:300]}"
        return Failure(message, "unreadable")


def _load(request: Request) -> Loaded:
    """Load a document by the library for its format, imported when it is first needed."""
    limits = request.limits
    if request.kind == "pdf":
        from recallite_documents.pdf import load_pdf

        return load_pdf(request.data, request.password, limits.max_chars)
    if request.kind == "docx":
        from recallite_documents.docx import load_docx

        return load_docx(request.data, limits)
    # The parser reads plain text and Markdown itself.
    from recallite_documents.html import load_html

    return load_html(request.data, limits.max_chars, request.charset)


# The side of the caller.

# Not multiprocessing, which would run the caller's script again in the child.
_BOOT = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from recallite_documents.parser import main; main()"
# What Python needs to start, without secrets. Without HOME Python queries the user database, which may be remote.
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "TZ")
_BYTES_PER_CHAR = 8
_OVERHEAD_BYTES = 16_000_000


class _Worker:
    """A subprocess, and the thread that receives its replies."""

    def __init__(self, longest_reply: int) -> None:
        if not sys.executable:
            raise DocumentError("the process that reads documents cannot be started: where Python is, is unknown")
        paths = json.dumps([entry or os.getcwd() for entry in sys.path])
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        flags = ["-I", "-B"] if sys.dont_write_bytecode else ["-I"]
        try:
            self.process = subprocess.Popen(
                [sys.executable, *flags, "-c", _BOOT, paths], env=environment, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as reason:
            raise DocumentError(f"the process that reads documents cannot be started: {reason}") from reason
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests = self.process.stdin
        self.replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=_receive_replies, args=(self.process.stdout, self.replies, longest_reply), daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._thread.join()
        with contextlib.suppress(BrokenPipeError):
            self.requests.close()
        if self.process.stdout is not None:
            self.process.stdout.close()


def _receive_replies(stream: BinaryIO, replies: queue.SimpleQueue[bytes | None], longest: int) -> None:
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
        late = DocumentError(f"it takes longer than {self._limits.seconds:g} s to be read", "too_large")
        try:
            answer = worker.replies.get(timeout=self._limits.seconds)
        except queue.Empty:
            raise late from None
        if answer is None:
            code = worker.process.wait()
            if out_of_time(code):
                raise late
            most = f"{self._limits.memory_mb:,} MB of memory"
            raise DocumentError(f"its reader ended with {ending(code)}: it is damaged, or needs more than {most}")
        if not answer:
            raise too_long(self._limits.max_chars)
        return msgspec.msgpack.decode(answer, type=Reply)

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None
