"""The subprocess in which libraries read documents: with limited memory and time, no network and no other files.

It is started by `recallite.documents.parser`, reads requests from standard input and ends with it.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import signal
import sys
import threading
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from recallite import errors
from recallite.documents.loaded import Kind, Limits, Loaded
from recallite.system.extras import install_command

LENGTH_BYTES = 8
_NESTED = 20_000
_FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "ftplib.")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


class Request(Struct, frozen=True):
    """A document to read."""

    kind: Kind
    data: bytes
    limits: Limits
    password: str | None = None
    charset: str | None = None


class Failure(Struct, frozen=True, tag=True):
    """Why a document was not read: the name of an error of `recallite.errors`, and its message."""

    error: str
    message: str


Reply = Loaded | Failure
"""The result of a request."""


def main() -> None:
    """Serve requests until standard input ends."""
    requests = sys.stdin.buffer
    replies = os.fdopen(os.dup(1), "wb")
    # The output of a library must not mix with the replies.
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setrecursionlimit(_NESTED)
    sys.dont_write_bytecode = True
    sys.addaudithook(_refuse)
    waiting: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, waiting), daemon=True).start()
    limited = False
    while True:
        request = waiting.get()
        _limit(request.limits, memory=not limited)
        limited = True
        reply = msgspec.msgpack.encode(_answer(request))
        replies.write(len(reply).to_bytes(LENGTH_BYTES, "little") + reply)
        replies.flush()


def _receive(stream: BinaryIO, waiting: queue.SimpleQueue[Request]) -> None:
    """Read requests; when the stream ends the parent is gone, and this process exits whatever it is doing."""
    decoder = msgspec.msgpack.Decoder(Request)
    while len(length := stream.read(LENGTH_BYTES)) == LENGTH_BYTES:
        waiting.put(decoder.decode(stream.read(int.from_bytes(length, "little"))))
    os._exit(0)


def _answer(request: Request) -> Reply:
    try:
        return _load(request)
    except errors.DocumentError as reason:
        return Failure(type(reason).__name__, str(reason))
    except ImportError as reason:
        missing = f"{reason.name or 'a library'}, which reads {request.kind}, is missing"
        return Failure("ParserMissing", f"{missing}: {install_command('documents')}")
    except MemoryError:
        return Failure("DocumentTooLarge", f"it needs more than {request.limits.memory_mb:,} MB of memory to be read")
    except RecursionError:
        return Failure("DocumentUnreadable", "it is nested too deeply")
    except Exception as reason:  # a library on a damaged file
        said = f"it is damaged, or its reader has a fault: {type(reason).__name__}: {str(reason)[:300]}"
        return Failure("DocumentUnreadable", said)


def _load(request: Request) -> Loaded:
    """Load a document by the library for its format, imported when it is first needed."""
    limits = request.limits
    if request.kind == "pdf":
        from recallite.documents.pdf import load_pdf

        return load_pdf(request.data, request.password, limits.max_chars)
    if request.kind == "docx":
        from recallite.documents.docx import load_docx

        return load_docx(request.data, limits)
    # The parser reads plain text and Markdown itself.
    from recallite.documents.html import load_html

    return load_html(request.data, limits.max_chars, request.charset)


def _limit(limits: Limits, *, memory: bool) -> None:
    """Limit the processor time of this request, after which the process ends with SIGXCPU, and with `memory` the memory
    taken beyond the present. Where the system has no such limits the parent's timeout remains.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    wanted = {resource.RLIMIT_CPU: math.ceil(used.ru_utime + used.ru_stime + limits.seconds) + 1}
    if memory:
        with open("/proc/self/statm") if os.path.exists("/proc/self/statm") else open(os.devnull) as status:
            stated = status.read().split()
        now = int(stated[0]) * resource.getpagesize() if stated else 0
        most = now + limits.memory_mb * 1_000_000
        wanted |= {resource.RLIMIT_AS: most, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0}
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        with contextlib.suppress(ValueError, OSError):  # macOS cannot limit address space
            resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook that refuses network, processes and writing files, whatever a document makes a library do."""
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"the reader of documents may not: {event}")
    if event == "open":
        mode, flags = arguments[1], arguments[2]
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & _WRITING):
            raise PermissionError("the reader of documents may not write files")
