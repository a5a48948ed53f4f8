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


_ROWS: tuple[tuple[type[RecalliteError], tuple[Reason | None, ...], Codes], ...] = (
    (errors.RecalliteError, (None,), Codes(500, 70)),
    (errors.InvalidInput, (None,), Codes(422, 2, INVALID_PARAMS)),
    (errors.InvalidText, (None,), Codes(422, 2, INVALID_PARAMS)),
    (errors.InvalidVector, (None,), Codes(422, 2, INVALID_PARAMS)),
    (errors.InvalidFilter, (None,), Codes(422, 2, INVALID_PARAMS)),
    (errors.AlreadyExists, (None,), Codes(409, 2, INVALID_PARAMS)),
    (errors.AlreadySuperseded, (None,), Codes(409, 2, INVALID_PARAMS)),
    (errors.InvalidItem, (None,), Codes(422, 2, INVALID_PARAMS)),
    (errors.NotFound, (None,), Codes(404, 1, INVALID_PARAMS)),
    (errors.StoreError, (None,), Codes(500, 3)),
    (errors.NotADatabase, (None,), Codes(500, 3)),
    (errors.WrongKey, (None,), Codes(500, 3)),
    (errors.EncryptionMissing, (None,), Codes(500, 3)),
    (errors.SchemaTooNew, (None,), Codes(500, 3)),
    (errors.StoreReadOnly, (None,), Codes(403, 3)),
    (errors.StoreLocked, (None,), Codes(503, 3)),
    (errors.StoreFull, (None,), Codes(500, 3)),
    (errors.StoreIOError, (None,), Codes(500, 3)),
    (errors.StoreCorrupt, ("store", "message"), Codes(500, 3)),
    (errors.StoreUnreachable, (None,), Codes(503, 3)),
    (errors.ConnectionLost, (None,), Codes(503, 3)),
    (errors.StoreAccessDenied, (None,), Codes(500, 3)),
    (errors.StoreUnsupported, (None,), Codes(500, 3)),
    (errors.StoreTimeout, (None,), Codes(503, 3)),
    (errors.WriteUnknown, (None,), Codes(500, 3)),
    (errors.StoreClosed, (None,), Codes(503, 3)),
    (errors.ForkedProcess, (None,), Codes(500, 3)),
    (errors.EmbedderError, (None,), Codes(503, 4)),
    (errors.EmbedderMissing, (None,), Codes(503, 4)),
    (errors.EmbedderMismatch, (None,), Codes(503, 4)),
    (errors.TextRefused, (None,), Codes(422, 4)),
    (errors.ModelInvalid, (None,), Codes(503, 4)),
    (errors.DocumentError, ("unreadable", "encrypted", "refused", "parser_missing"), Codes(422, 2)),
    (errors.DocumentError, ("too_large",), Codes(413, 2)),
    (errors.ServerError, (None,), Codes(500, 70)),
    (errors.ServerUnreachable, (None,), Codes(500, 70)),
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
