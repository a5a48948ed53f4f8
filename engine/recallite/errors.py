"""Every error that Recallite raises, under one base.

RecalliteError
├── InvalidInput (ValueError)          an argument is wrong: the message names it, its value and the remedy
│   ├── Conflict                       another record has this id, or supersedes this one
│   └── InvalidItem                    one item of a batch: carries its position and the error behind it
├── NotFound (KeyError)                no such record in this scope
├── StoreError                         the database file or server: read-only, full, refused, not supported
│   ├── StoreUnavailable               locked, unreachable or too slow for now: nothing was written, try again
│   ├── StoreCorrupt                   damaged, or changed by another program into what is none
│   ├── StoreClosed                    used after close(), or in a child after fork()
│   ├── NotADatabase                   a directory, a foreign file, not ours
│   ├── WrongKey                       the key of an encrypted file is wrong or missing, or a plain file is given one
│   └── WriteUnknown                   the server was lost during a commit: it is done or not, see the message
├── EmbedderError                      embedding failed, or no embedder can be loaded
│   └── EmbedderMismatch               the store holds vectors of another embedder
├── DocumentError                      a document cannot be ingested
├── ServerError                        a server that a `Client` asks: it failed, or gave no answer
│   └── AccessDenied                   a token is missing, unknown, expired, or may not do this
├── WorkerLost                         a worker process of a bulk run ended before its work was done
├── LanguageModelError                 a language model gave no usable answer
└── KernelError                        a kernel refused its arguments

The `reason` of an error tells apart what is caught as one: each class lists its reasons.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, get_args

__all__ = [
    "AccessDenied",
    "Conflict",
    "DocumentError",
    "EmbedderError",
    "EmbedderMismatch",
    "InvalidInput",
    "InvalidItem",
    "KernelError",
    "LanguageModelError",
    "NotADatabase",
    "NotFound",
    "RecalliteError",
    "ServerError",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreUnavailable",
    "WorkerLost",
    "WriteUnknown",
    "WrongKey",
]


InputReason: TypeAlias = Literal["value", "text", "vector", "filter", "authority"]
ConflictReason: TypeAlias = Literal["exists", "superseded"]
StoreReason: TypeAlias = Literal[
    "failed", "read_only", "removed", "full", "io", "denied", "unsupported", "newer_schema", "no_ciphers"
]
UnavailableReason: TypeAlias = Literal["locked", "unreachable", "connection_lost", "timeout"]
CorruptReason: TypeAlias = Literal["store", "message"]
ClosedReason: TypeAlias = Literal["closed", "forked"]
EmbedderReason: TypeAlias = Literal["failed", "missing", "invalid_model", "text_refused"]
DocumentReason: TypeAlias = Literal["unreadable", "too_large", "encrypted", "refused", "parser_missing"]
ServerReason: TypeAlias = Literal["failed", "unreachable"]
Reason: TypeAlias = (
    InputReason | ConflictReason | StoreReason | UnavailableReason | CorruptReason | ClosedReason | EmbedderReason
    | DocumentReason | ServerReason
)  # fmt: skip


class RecalliteError(Exception):
    """Base of all errors of Recallite. Of a class with `REASONS`, `reason` is one of these; else None."""

    REASONS: ClassVar[tuple[Reason, ...]] = ()

    def __init__(self, message: str = "", reason: Reason | None = None) -> None:
        super().__init__(message)
        self.reason = reason or next(iter(self.REASONS), None)


class InvalidInput(RecalliteError, ValueError):
    """An argument is wrong; nothing was written.

    - "text": it is empty, blank, too large or not encodable
    - "vector": it has the wrong dimension, or a NaN, infinite or all-zero value
    - "filter": a scope, a filter field or an operator is not known or malformed
    - "authority": a record is the word of a higher authority than the speaker's, who cannot change or forget it
    - "value": anything else
    """

    REASONS: ClassVar[tuple[Reason, ...]] = get_args(InputReason)


class Conflict(InvalidInput):
    """Another record is there already, which the message names.

    - "exists": it has the id that a new one was given
    - "superseded": it supersedes the one that was to be superseded
    """

    REASONS = get_args(ConflictReason)


class InvalidItem(InvalidInput):
    """One item of a batch is wrong; batches before it are stored.

    `position` is the item's place in the input, from 0; `stored` counts the items committed before it; `error` is what
    is wrong with it. The message calls it by `label`, e.g. "line 7", which is None where it has none.
    """

    REASONS = ()

    def __init__(self, position: int, stored: int, error: RecalliteError, label: str | None = None) -> None:
        super().__init__(
            f"{label or f'item {position}'}: {error} "
            f"({stored:,} memories before it are stored; nothing of its batch is)"
        )
        self.position = position
        self.stored = stored
        self.error = error
        self.label = label

    def __reduce__(self) -> tuple[object, ...]:
        return InvalidItem, (self.position, self.stored, self.error, self.label)


class NotFound(RecalliteError, KeyError):
    """No such record, or none that this scope may see."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class StoreError(RecalliteError):
    """The database file or server cannot do what was asked.

    - "read_only": the file cannot be written, or the database server or the rights of its user allow no writing
    - "removed": the file was removed or renamed while it was open
    - "full": the disk is full or the quota used up; the transaction was rolled back
    - "io": the disk or the system refused to open, read or write the file, which may be intact
    - "denied": the database server refuses the user, the password, the database, or a tenant
    - "unsupported": the database server is too old, or lacks UTF-8 or a right that a memory needs
    - "newer_schema": the file or schema was written by a newer version
    - "no_ciphers": a key is given and the installed SQLite has none; the message says how to install them
    - "failed": anything else
    """

    REASONS: ClassVar[tuple[Reason, ...]] = get_args(StoreReason)


class NotADatabase(StoreError):
    """The path is a directory, or a file or a database schema that Recallite did not write."""

    REASONS = ()


class WrongKey(StoreError):
    """A file is encrypted and the key is missing or another, or a key is given for a file that is not encrypted."""

    REASONS = ()


class StoreUnavailable(StoreError):
    """The store cannot be used for now; nothing was written, and the same call may succeed later.

    - "locked": another connection held the lock for longer than the timeout
    - "unreachable": the database server is not there, is starting or ending, or has no connection left
    - "connection_lost": a connection ended inside a transaction, which may be run again at once
    - "timeout": a statement took longer than `statement_timeout_ms` of the address allows
    """

    REASONS = get_args(UnavailableReason)


class StoreCorrupt(StoreError):
    """Something stored is not what was written.

    - "store": SQLite found damage in the file, or another program changed a row
    - "message": of a session, which the message names. The others can be read.
    """

    REASONS = get_args(CorruptReason)


class WriteUnknown(StoreError):
    """A commit went to a server or a WAL that was lost: the write is gone, or may be. The message says what to do."""

    REASONS = ()


class StoreClosed(StoreError):
    """The memory was "closed" before, or opened before fork() and used in the child process ("forked")."""

    REASONS = get_args(ClosedReason)


class EmbedderError(RecalliteError):
    """The embedder failed; the record, if any, is kept and marked pending.

    - "missing": no embedder can be loaded in this environment
    - "invalid_model": a model folder lacks a file, or a file is not what its manifest says
    - "text_refused": the embedder works and refuses one of these texts: too long, filtered, of no token. An `Embedder`
      may raise it. Which text it is is found out; its record is marked so, and is not tried again.
    - "failed": anything else
    """

    REASONS: ClassVar[tuple[Reason, ...]] = get_args(EmbedderReason)


class EmbedderMismatch(EmbedderError):
    """The store holds vectors of another embedder."""

    REASONS = ()


class DocumentError(RecalliteError):
    """A document cannot be ingested; what is stored of it, if anything, stays as it is.

    - "unreadable": it is absent, damaged, of no format that is read, has no text, or changes while it is read
    - "too_large": it needs more bytes, text, memory or time than the limits allow
    - "encrypted": its password is missing or wrong
    - "refused": a path or an address that may not be read from here
    - "parser_missing": the library that reads the format is not installed; the message says how to install it
    """

    REASONS = get_args(DocumentReason)
    reason: DocumentReason


class ServerError(RecalliteError):
    """A server refused a request, or failed at it, for a reason that lies in neither memory nor arguments.

    - "unreachable": it gave no answer; a write may have been done nevertheless
    - "failed": anything else
    """

    REASONS: ClassVar[tuple[Reason, ...]] = get_args(ServerReason)


class AccessDenied(ServerError):
    """A token is missing, unknown or expired, or does not allow what was asked."""

    REASONS = ()


class WorkerLost(RecalliteError):
    """A worker process was killed, or ran out of memory; what is stored stays, and the same run again does the rest."""


class LanguageModelError(RecalliteError):
    """A language model could not be reached, was out of budget, or gave no usable answer."""


class KernelError(RecalliteError, ValueError):
    """A kernel refused its arguments."""


CLASSES: dict[str, type[RecalliteError]] = {name: globals()[name] for name in __all__}
"""Every class by its name."""


def plain(error: BaseException) -> RecalliteError:
    """The error as one of a class of this module, of text and numbers alone: any process can unpickle it."""
    if isinstance(error, InvalidItem):
        return InvalidItem(error.position, error.stored, plain(error.error), label=error.label)
    kind = next((CLASSES[kind.__name__] for kind in type(error).__mro__ if kind.__module__ == __name__), RecalliteError)
    return kind(str(error), getattr(error, "reason", None))
