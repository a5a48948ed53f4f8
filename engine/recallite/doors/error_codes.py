"""The codes that stand for an error outside Python: one table for HTTP, the command line and MCP."""

from __future__ import annotations

from typing import NamedTuple

from recallite import errors
from recallite.errors import Reason, RecalliteError

__all__ = ["CODES", "INVALID_PARAMS", "Codes", "codes_of"]

INVALID_PARAMS = -32602
"""The code of JSON-RPC for what the caller can put right, who is then told the message."""
_INTERNAL = -32603


class Codes(NamedTuple):
    """The status of HTTP, the exit code of the command line and the error code of MCP."""

    status: int
    exit: int
    mcp: int = _INTERNAL


_WRONG = Codes(422, 2, INVALID_PARAMS)
_STORE, _LATER, _MODEL = Codes(500, 3), Codes(503, 3), Codes(503, 4)
_ROWS: tuple[tuple[type[RecalliteError], tuple[Reason | None, ...], Codes], ...] = (
    (errors.RecalliteError, (None,), Codes(500, 70)),
    (errors.InvalidInput, ("value", "text", "vector", "filter"), _WRONG),
    (errors.InvalidInput, ("authority",), Codes(403, 2, INVALID_PARAMS)),
    (errors.Conflict, ("exists", "superseded"), Codes(409, 2, INVALID_PARAMS)),
    (errors.InvalidItem, (None,), _WRONG),
    (errors.NotFound, (None,), Codes(404, 1, INVALID_PARAMS)),
    (errors.StoreError, ("failed", "full", "io", "denied", "unsupported", "newer_schema", "no_ciphers"), _STORE),
    (errors.StoreError, ("removed",), _LATER),
    (errors.StoreError, ("read_only",), Codes(403, 3)),
    (errors.StoreUnavailable, ("locked", "unreachable", "connection_lost", "timeout"), _LATER),
    (errors.StoreCorrupt, ("store", "message"), _STORE),
    (errors.StoreClosed, ("closed", "forked"), _LATER),
    (errors.NotADatabase, (None,), _STORE),
    (errors.WrongKey, (None,), _STORE),
    (errors.WriteUnknown, (None,), _STORE),
    (errors.EmbedderError, ("failed", "missing", "invalid_model"), _MODEL),
    (errors.EmbedderError, ("text_refused",), Codes(422, 4)),
    (errors.EmbedderMismatch, (None,), _MODEL),
    (errors.DocumentError, ("unreadable", "encrypted", "refused", "parser_missing"), Codes(422, 2)),
    (errors.DocumentError, ("too_large",), Codes(413, 2)),
    (errors.ServerError, ("failed", "unreachable"), Codes(500, 70)),
    (errors.AccessDenied, (None,), Codes(403, 70)),
    (errors.WorkerLost, (None,), Codes(500, 4)),
    (errors.LanguageModelError, (None,), Codes(502, 4)),
    (errors.KernelError, (None,), Codes(422, 4)),
)
CODES = {(kind, reason): codes for kind, reasons, codes in _ROWS for reason in reasons}
"""The codes of each class with each of its reasons, or None."""


def codes_of(fault: RecalliteError) -> Codes:
    """The codes of an error; one of a class of a caller has those of the class that it is derived from."""
    return next(CODES[kind, fault.reason] for kind in type(fault).__mro__ if (kind, fault.reason) in CODES)
