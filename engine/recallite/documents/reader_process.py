"""The subprocess in which libraries read documents: with limited memory and time, no network and no other files.

It is started by `recallite.documents.parser`, reads requests from standard input and ends with it.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Iterator
from typing import IO, BinaryIO

import msgspec
from msgspec import Struct

from recallite.documents.loaded import Kind, Limits, Loaded
from recallite.errors import DocumentError, DocumentReason
from recallite.system.messages import install_command
from recallite.system.processes import ignore_interrupts, limit_memory_and_files, limit_processor_time, refusing

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
    threading.Thread(target=_receive, args=(requests, waiting), daemon=True).start()
    limited = False
    while True:
        request = waiting.get()
        # If the system has no such limits the parent's timeout remains.
        limit_processor_time(request.limits.seconds)
        if not limited:
            limit_memory_and_files(request.limits.memory_mb * 1_000_000)
        limited = True
        send(replies, _answer(request))


def _receive(stream: BinaryIO, waiting: queue.SimpleQueue[Request]) -> None:
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
        from recallite.documents.pdf import load_pdf

        return load_pdf(request.data, request.password, limits.max_chars)
    if request.kind == "docx":
        from recallite.documents.docx import load_docx

        return load_docx(request.data, limits)
    # The parser reads plain text and Markdown itself.
    from recallite.documents.html import load_html

    return load_html(request.data, limits.max_chars, request.charset)
