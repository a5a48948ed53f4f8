"""Every error that Recallite raises, under one base.

RecalliteError
├── InvalidInput (ValueError)          an argument is wrong: the message names it, its value and the remedy
│   ├── InvalidText                    empty, blank, NUL, lone surrogates, too large
│   ├── InvalidVector                  wrong dimension, NaN, infinity, zero
│   ├── InvalidFilter                  unknown field or operator, malformed scope
│   ├── AlreadyExists                  a record has this id already
│   ├── AlreadySuperseded              another record stands in the place of this one already
│   └── InvalidItem                    one item of a batch: carries its position and the error behind it
├── NotFound (KeyError)                no such record in this scope
├── StoreError                         the database file or server
│   ├── NotADatabase                   a directory, a foreign file, not ours
│   ├── WrongKey                       the key of an encrypted file is wrong or missing, or a plain file is given one
│   ├── EncryptionMissing              a key is given, and SQLite without ciphers is installed
│   ├── SchemaTooNew                   written by a newer Recallite
│   ├── StoreReadOnly                  the file or its folder cannot be written
│   ├── StoreLocked                    another process holds the write lock for longer than the timeout
│   ├── StoreFull                      no space left on the disk, or in the quota
│   ├── StoreIOError                   the disk failed, or the system had no descriptors or memory left
│   ├── StoreCorrupt                   a damaged page, or a row that another program has changed into what is none
│   ├── StoreUnreachable               the database server is not there, is ending, or was lost before a commit
│   │   └── ConnectionLost             a connection ended inside a transaction: it may be run again at once
│   ├── StoreAccessDenied              the database server refuses the user or the password
│   ├── StoreUnsupported               the database server lacks what a memory needs, or may not be given it
│   ├── StoreTimeout                   a statement took longer than it may
│   ├── WriteUnknown                   the database server was lost during a commit: it is done or not, see the message
│   └── StoreClosed                    used after close()
├── ForkedProcess                      opened before fork(), used in the child
├── EmbedderError                      embedding failed
│   ├── EmbedderMissing                no embedder can be loaded here
│   ├── EmbedderMismatch               the store holds vectors of another embedder
│   ├── TextRefused                    the embedder works, and refuses these texts
│   └── ModelInvalid                   a model file is absent, damaged or not what its manifest says
├── DocumentError                      a document cannot be ingested
├── ServerError                        a server that a `Client` asks
│   ├── AccessDenied                   a token is missing, unknown, expired, or may not do this
│   └── ServerUnreachable              no answer: whether a write was done is not known, see the message
├── WorkerLost                         a worker process of a bulk run ended before its work was done
├── LanguageModelError                 a language model gave no usable answer
└── KernelError                        a kernel refused its arguments
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, get_args

__all__ = [
    "AccessDenied",
    "AlreadyExists",
    "AlreadySuperseded",
    "ConnectionLost",
    "DocumentError",
    "EmbedderError",
    "EmbedderMismatch",
    "EmbedderMissing",
    "EncryptionMissing",
    "ForkedProcess",
    "InvalidFilter",
    "InvalidInput",
    "InvalidItem",
    "InvalidText",
    "InvalidVector",
    "KernelError",
    "LanguageModelError",
    "ModelInvalid",
    "NotADatabase",
    "NotFound",
    "RecalliteError",
    "SchemaTooNew",
    "ServerError",
    "ServerUnreachable",
    "StoreAccessDenied",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreIOError",
    "StoreLocked",
    "StoreReadOnly",
    "StoreTimeout",
    "StoreUnreachable",
    "StoreUnsupported",
    "TextRefused",
    "WorkerLost",
    "WriteUnknown",
    "WrongKey",
]


CorruptReason: TypeAlias = Literal["store", "message"]
DocumentReason: TypeAlias = Literal["unreadable", "too_large", "encrypted", "refused", "parser_missing"]
Reason: TypeAlias = CorruptReason | DocumentReason


class RecalliteError(Exception):
    """Base of all errors of Recallite. Of a class with `REASONS`, `reason` is one of these; else None."""

    REASONS: ClassVar[tuple[Reason, ...]] = ()

    def __init__(self, message: str = "", reason: Reason | None = None) -> None:
        super().__init__(message)
        self.reason = reason or next(iter(self.REASONS), None)


class InvalidInput(RecalliteError, ValueError):
    """An argument is wrong; nothing was written."""


class InvalidText(InvalidInput):
    """A text is empty, blank, too large or not encodable."""


class InvalidVector(InvalidInput):
    """A vector has the wrong dimension or a NaN, infinite or all-zero value."""


class InvalidFilter(InvalidInput):
    """A scope, a filter field or an operator is not known or malformed."""


class AlreadyExists(InvalidInput):
    """A record has the id already that a new one was given."""


class AlreadySuperseded(InvalidInput):
    """A record is superseded by another already, which the message names."""


class InvalidItem(InvalidInput):
    """One item of a batch is wrong; batches before it are stored.

    `position` is the item's place in the input, from 0; `stored` counts the items committed before it; `error` is what
    is wrong with it. The message calls it by `label`, e.g. "line 7", which is None where it has none.
    """

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
    """The database file or server cannot do what was asked."""


class NotADatabase(StoreError):
    """The path is a directory, or a file or a database schema that Recallite did not write."""


class WrongKey(StoreError):
    """A file is encrypted and the key is missing or another, or a key is given for a file that is not encrypted."""


class EncryptionMissing(StoreError):
    """A key is given and the installed SQLite has no ciphers; the message says how to install them."""


class SchemaTooNew(StoreError):
    """The file or schema was written by a newer version."""


class StoreReadOnly(StoreError):
    """The file cannot be written, or the database server or the rights of its user allow no writing."""


class StoreLocked(StoreError):
    """Another connection held the lock for longer than the timeout."""


class StoreFull(StoreError):
    """The disk is full or the quota used up; the transaction was rolled back."""


class StoreIOError(StoreError):
    """The disk or the system refused to open, read or write the file, which may be intact."""


class StoreCorrupt(StoreError):
    """Something stored is not what was written.

    - "store": SQLite found damage in the file, or another program changed a row
    - "message": of a session, which the message names. The others can be read.
    """

    REASONS = get_args(CorruptReason)


class StoreUnreachable(StoreError):
    """The database server is not there, is starting or ending, or has no connection left; nothing was written."""


class ConnectionLost(StoreUnreachable):
    """A connection to the database server ended inside a transaction, which is undone: nothing was written."""


class StoreAccessDenied(StoreError):
    """The database server refuses the user, the password or the database."""


class StoreUnsupported(StoreError):
    """The database server is too old, or lacks pgvector, UTF-8 or a right that a memory needs; nothing was changed."""


class StoreTimeout(StoreError):
    """A statement took longer than `statement_timeout_ms` of the address allows; its transaction was rolled back."""


class WriteUnknown(StoreError):
    """A commit went to a server or a WAL that was lost: the write is gone, or may be. The message says what to do."""


class StoreClosed(StoreError):
    """The memory was closed before."""


class ForkedProcess(RecalliteError):
    """A memory opened before fork() was used in the child process."""


class EmbedderError(RecalliteError):
    """The embedder failed; the record, if any, is kept and marked pending."""


class EmbedderMissing(EmbedderError):
    """No embedder can be loaded in this environment."""


class EmbedderMismatch(EmbedderError):
    """The store holds vectors of another embedder."""


class TextRefused(EmbedderError):
    """The embedder works and refuses one of these texts: too long, filtered, of no token.

    An `Embedder` may raise it. Which text it is is found out; its record is marked so, and is not tried again.
    """


class ModelInvalid(EmbedderError):
    """A model folder lacks a file, or a file is not what its manifest says."""


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
    """A server refused a request, or failed at it, for a reason that lies in neither memory nor arguments."""


class AccessDenied(ServerError):
    """A token is missing, unknown or expired, or does not allow what was asked."""


class ServerUnreachable(ServerError):
    """The server gave no answer; a write may have been done nevertheless."""


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
