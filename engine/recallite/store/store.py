"""The base of all stores: transactions that hold repositories, and maintenance."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from recallite.errors import InvalidInput, StoreClosed
from recallite.model.reports import ErasureReceipt, Verification
from recallite.store.sql.repository import INSIDE

if TYPE_CHECKING:
    from recallite.store.sql.maintenance import Erased
    from recallite.store.transaction import Reader, Writer

Progress = Callable[[int, int | None], None]
COMPARING, EMBEDDING = "comparing", "embedding"
"""Work in the background that one process does for all: comparing memories, and embedding those that wait."""


class Store(ABC):
    """A store that is open in this process.

    `path` names it in messages; `snapshot_path` is where the snapshot of an in-memory index may be kept, if anywhere.
    `confined_to` is the scope to which a server confines the user, None for no one.
    """

    path: str
    snapshot_path: str | None = None
    confined_to: str | None = None
    read_only = False
    """Whether it can only be read, as its files are where nothing can be written."""
    in_memory = False
    """Whether the data is lost when the store is closed."""
    reads_scopes = False
    """Whether what an index of one scope needs can be read by itself."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._closed = False
        # Called when the connections to a file are closed: the next ones may find another file.
        self.on_let_go: Callable[[], object] = lambda: None

    @property
    def encrypted(self) -> bool:
        """Whether the store is encrypted."""
        return False

    @property
    def closed(self) -> bool:
        """True after `close`, and in a forked child process."""
        return self._closed or os.getpid() != self._process

    @property
    @abstractmethod
    def nested(self) -> bool:
        """Inside `atomic()`: whether an outer transaction may still roll it back."""

    @abstractmethod
    def read(self) -> AbstractContextManager[Reader]:
        """A read transaction; it does not wait for writers."""

    @abstractmethod
    def atomic(self, *, wait: bool = True, locks: Sequence[str] | None = None) -> AbstractContextManager[Writer]:
        """A write transaction; a savepoint inside another of the same thread.

        A writer that names what it reads and writes in `locks`, by scopes and ids, lets other writers run at the same
        time, if the store can; else one thread writes at a time. Without `wait`, StoreUnavailable is raised at once if
        another process is writing.
        """

    def doing(self, work: str) -> AbstractContextManager[bool]:
        """Do some work that one does for all, if nobody does it; yields whether that is so."""
        return nullcontext(True)

    def is_done_elsewhere(self, work: str) -> bool:
        """Whether another process, or another thread, does this work."""
        return False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A write transaction in which `read` of the same thread sees what was written."""
        with self.atomic() as writer:
            if self.in_transaction:
                yield
                return
            self._share(True)
            try:
                writer.began = writer.changes.commit()
                yield
                self.check_usable()
            finally:
                self._share(False)
                writer.began = None

    @property
    @abstractmethod
    def in_transaction(self) -> bool:
        """Whether this thread is inside `transaction`."""

    @property
    @abstractmethod
    def writing(self) -> bool:
        """Whether this thread is inside a write transaction, for which others wait."""

    @abstractmethod
    def _share(self, inside: bool) -> None:
        """Note that this thread enters or leaves `transaction`."""

    def check_usable(self) -> None:
        """Raise StoreClosed unless the store may be used."""
        if os.getpid() != self._process:
            raise StoreClosed(
                f"{self.path} was opened before fork(): its connections do not survive it. "
                "Open a new Memory in the child process",
                "forked",
            )
        if self._closed:
            raise StoreClosed(f"{self.path} was closed: open a new Memory")

    def check_outside(self) -> None:
        """Refuse what a database does not do inside `transaction`, and what would end it."""
        self.check_usable()
        if self.in_transaction:
            raise InvalidInput(INSIDE)

    @abstractmethod
    def close(self) -> None:
        """Release everything. A second call, or one in a forked child, does nothing."""

    def let_go(self) -> bool:
        """Close connections that leave files beside the store, until the next use; False where they are in use."""
        return True

    def drop_snapshot(self) -> None:
        """Remove a snapshot of the index that whoever purges a record cannot remove itself."""
        return

    def size(self) -> int:
        """About how many records there are, versions included."""
        with self.read() as reader:
            return reader.records.last_id()

    @abstractmethod
    def stats(self, scope: str) -> dict[str, Any]:
        """Counts and versions, as `Stats` names them; counts are of `scope` and its descendants."""

    @abstractmethod
    def verify(self, on_progress: Progress | None = None) -> Verification:
        """Compare everything derived with the records; nothing is changed."""

    @abstractmethod
    def rebuild(self, on_progress: Progress | None = None) -> None:
        """Derive everything from the records again. Damaged vectors are removed; their records wait for others."""

    @abstractmethod
    def vacuum(self) -> int:
        """Remove what nothing refers to and free its space; returns how many bytes."""

    @abstractmethod
    def backup(self, target: str | os.PathLike[str], on_progress: Progress | None = None) -> str:
        """Copy the store, as of one commit, to a new file; returns its path. The file appears only when it is complete.

        Raises InvalidInput if the path exists, even if it was made during the copy, and StoreError, which names
        the target, if it cannot be written.
        """

    def sealed(self, data: bytes) -> bytes:
        """The content of a file for other devices: encrypted if the store is."""
        return data

    def unsealed(self, data: bytes, path: str) -> bytes | None:
        """The data that were `sealed` by a store with the same key; None if it is not whole. Raises WrongKey."""
        return data

    @abstractmethod
    def rekey(self, key: str | None) -> None:
        """Encrypt the store with another key, or (None) decrypt it; all of it or nothing.

        Raises StoreUnavailable if another connection is open.
        """

    @abstractmethod
    def prove_erasure(self, erased: Erased) -> ErasureReceipt:
        """Compact the store and search all of its files for the bytes of what was erased."""
