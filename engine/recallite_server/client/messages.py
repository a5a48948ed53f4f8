"""Requests of a client, and values made from answers. Nothing here opens a connection."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import numpy as np
from numpy.typing import NDArray

from recallite import errors
from recallite.doors.calls import HitsAnswer, in_json
from recallite.doors.operation import Operation
from recallite.doors.operations import PREFIX, SCOPE_HEADER
from recallite.errors import InvalidInput, RecalliteError, ServerError
from recallite.model import checks
from recallite.model.records import Hits
from recallite.system.messages import shown

_SHOWN_CHARS = 200
BYTES = "application/octet-stream"
"""The content type of a document or an import."""


class Sent(NamedTuple):
    """A request. `reads` says that it may be sent again."""

    method: str
    path: str
    body: bytes | None = None
    reads: bool = False
    content_type: str = "application/json"


class _Failure(msgspec.Struct):
    type: str
    message: str
    reason: Any = None
    position: int = 0
    stored: int = 0
    label: str | None = None
    item: _Failure | None = None

    def as_error(self) -> RecalliteError:
        if self.item is not None:
            return errors.InvalidItem(self.position, self.stored, self.item.as_error(), label=self.label)
        kind = errors.CLASSES.get(self.type, ServerError)
        return kind(self.message, self.reason if self.reason in kind.REASONS else None)


class _Failed(msgspec.Struct):
    error: _Failure


def asked(operation: Operation, *args: Any, **kwargs: Any) -> Sent:
    """The request for a call. Raises InvalidInput for what no request can hold, and TypeError as the call would."""
    fields = {name: value for name, value in operation.bind(*args, **kwargs).items() if value is not ...}
    path = PREFIX + operation.path
    if "{id}" in path:
        id = fields.pop("id")
        if not isinstance(id, str) or not id:
            raise InvalidInput(f"id is {shown(id)}: give a str")
        path = path.replace("{id}", quote(checks.encodable(id, "id"), safe=""))
    if operation.in_body:
        return Sent(operation.method, path, _encoded(fields), not operation.writes(fields))
    needed = {name: value for name, value in fields.items() if value != operation.fields[name][1]}
    return Sent(operation.method, _with_query(path, needed), None, operation.reads)


def _with_query(path: str, fields: Mapping[str, Any]) -> str:
    """A path with fields as its query."""
    pairs = [pair for name, value in fields.items() for pair in _pairs(name, value)]
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _pairs(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """A field in a query: lists are repeated, objects are JSON, None is empty."""
    if value is None:
        yield name, ""
        return
    plain = msgspec.json.decode(_encoded(value))
    for part in plain if isinstance(plain, list) else [plain]:
        yield name, part if isinstance(part, str) else msgspec.json.encode(part).decode()


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except (TypeError, UnicodeEncodeError, RecursionError) as fault:
        raise InvalidInput(f"an argument cannot be sent as JSON: {fault}") from None


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # an array
        return value.tolist()
    if isinstance(value, Iterable):
        return [*value]
    raise TypeError(f"{shown(value)} has no form in JSON")


def answered(operation: Operation, status: int, content: bytes) -> Any:
    """The value of an answer. Raises the error that the server answered, by its own class."""
    value = _decoded(status, content, in_json(operation.returns))
    if isinstance(value, HitsAnswer):
        return value.as_hits()
    return [part.as_hits() for part in value] if operation.returns == list[Hits] else value


def _decoded(status: int, content: bytes, kind: Any) -> Any:
    """The JSON of a successful answer as a type. Raises the error of any other."""
    check_status(status, content)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise ServerError(f"the answer is not that of this version of Recallite ({fault})") from None


def check_status(status: int, content: bytes) -> None:
    """Raise the error of an answer that is none of success; a redirect is followed nowhere."""
    if not 200 <= status < 300:
        raise failure(status, content)


def failure(status: int, content: bytes) -> RecalliteError:
    """The error that an answer tells of."""
    try:
        failed = msgspec.json.decode(content, type=_Failed).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = content[:_SHOWN_CHARS].decode("utf-8", "replace")
        return ServerError(f"the server answered {status}: {text}")
    return failed.as_error()


def unreachable(url: str, sent: Sent, fault: Exception) -> ServerError:
    """The error for a request without an answer."""
    doubt = "" if sent.reads else "; what was asked may have been done: look before you ask again"
    return ServerError(f"{url} gave no answer ({type(fault).__name__}: {fault}){doubt}", "unreachable")


def check_token(token: object) -> dict[str, str]:
    """The headers with a token; none without one."""
    if token is None:
        return {}
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
        raise InvalidInput("token is none: give what `recallite token create` printed")
    return {"Authorization": f"Bearer {token.strip()}"}


def check_url(url: object) -> str:
    """The address of a server, without a slash at its end."""
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isascii() and url.isprintable() else None
        known = parts is not None and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or parts is None:
        raise InvalidInput(f"url is {shown(url)}: give an address such as http://127.0.0.1:7333")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput("url has a user, query or fragment: give the token as token=")
    return str(url).rstrip("/")


def scope_header(scope: str) -> dict[str, str]:
    """The header that narrows a request to a scope."""
    return {} if scope == "/" else {SCOPE_HEADER: quote(scope, safe="/")}


def arrays(vectors: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    """Vectors as `Memory.vectors` gives them."""
    return {id: np.asarray(parts, dtype=np.float32) for id, parts in vectors.items()}


def batches(items: Iterable[object], size: int) -> Iterator[builtins.list[object]]:
    """The items in lists of at most `size`."""
    checks.check_stream(items)
    rest = iter(items)
    while batch := [*islice(rest, size)]:
        yield [item if isinstance(item, str) else fields_of(item) for item in batch]


def fields_of(item: object) -> Any:
    """A memory to be stored as the fields that were given."""
    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, msgspec.Struct):
        defaults = item.__struct_defaults__
        named = item.__struct_fields__[len(item.__struct_fields__) - len(defaults) :]
        absent = {name for name, value in zip(named, defaults, strict=True) if getattr(item, name) is value}
        return {name: getattr(item, name) for name in item.__struct_fields__ if name not in absent}
    return item


def document(source: object, name: str | None) -> tuple[bytes, str]:
    """The bytes and the name of a document: those of a file, which this process reads, or bytes with their name."""
    if isinstance(source, bytes | bytearray | memoryview):
        if name is None:
            raise InvalidInput("the document has no name: give name=, which tells its format, such as 'report.pdf'")
        return bytes(source), name
    path = checks.check_path(source, "source")
    try:
        return path.read_bytes(), name or path.name
    except OSError as fault:
        raise errors.DocumentError(f"{path} cannot be read: {fault.strerror or fault}") from None


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when the block ends; nothing is left of it if the block raises."""
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
            part = Path(file.name)
            try:
                yield file
                file.flush()
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
    except OSError as fault:
        raise InvalidInput(f"target {path} cannot be written: {fault.strerror or fault}") from None


def format_of(path: Path, format: str | None) -> str:
    """The format of an export or import: the one given, else by the extension of the file."""
    known = {".csv": "csv", ".txt": "text"}
    return format or known.get(path.suffix.lower(), "jsonl")
