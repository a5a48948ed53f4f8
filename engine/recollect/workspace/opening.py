"""The index of a workspace: opened when it is needed, made afresh when it is gone or damaged. It is derived."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from recollect.engine import Engine
from recollect.errors import (
    InvalidInput,
    NotADatabase,
    SchemaTooNew,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from recollect.locks import FolderLock
from recollect.settings import Settings, named_embedder
from recollect.store import purpose

if TYPE_CHECKING:
    from recollect.embedding.protocol import Embedder
    from recollect.llm.protocol import LanguageModel
    from recollect.remote.address import ModelAddress
    from recollect.workspace.config import MemoryConfig

__all__ = ["IndexFile"]

_BESIDE = ("", "-wal", "-shm", "-index")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FIXED = (
    "{} cannot be written: {}. Searches answer from what is indexed; to index, change permissions, or keep the index "
    "elsewhere with MemoryConfig(db_path=...)"
)
_LINK = "{} is a symbolic link, and no index is kept behind one: remove it, or use MemoryConfig(db_path=...)"


class IndexFile:
    """The file that a configuration names, and the engine on it. Thread-safe."""

    def __init__(
        self, config: MemoryConfig, embedder: Embedder | str | None, language_model: LanguageModel | None
    ) -> None:
        self.path = config.index_path
        self.spec: Embedder | ModelAddress | str = _embedder_of(config) if embedder is None else embedder
        self._own = config.db_path is None
        self._language_model = language_model
        self._settings = Settings(durability="normal", profile="memweave")
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._identity: tuple[int, ...] | None = None
        self._copy: TemporaryDirectory[str] | None = None
        self._closed = False
        self._runs = FolderLock(self.path.with_name(self.path.name + ".lock"))
        _make_folder(self.path.parent, private=self._own)

    @contextmanager
    def alone(self, timeout_seconds: float | None = None) -> Iterator[bool]:
        """Hold the lock of index runs in the folder; False when others held it all that time. None waits for good.

        Raises StoreReadOnly where there can be no lock.
        """
        _make_folder(self.path.parent, private=self._own)
        with ExitStack() as stack:
            try:
                held = stack.enter_context(self._runs.held(timeout_seconds))
            except OSError as fault:
                raise StoreReadOnly(_FIXED.format(fault.filename or self.path.parent, fault.strerror)) from fault
            yield held

    def engine(self, *, writing: bool = False) -> Engine:
        """The engine on the file as it stands now: a file that was deleted or replaced is opened anew. One that cannot
        be written is read from a copy, unless it is for `writing`.

        Raises StoreClosed after `close`, and StoreReadOnly, StoreFull or StoreLocked where the disk says so.
        """
        with self._lock:
            if self._closed:
                raise StoreClosed(f"the workspace of {self.path} was closed: open a new one")
            if self._engine is not None and self._now() != self._identity:
                self._let_go(self._engine)
            if self._engine is None:
                self._engine = self._open()
                self._identity = self._now()
            if writing and self._copy is not None:
                raise StoreReadOnly(_FIXED.format(self.path, "it or its folder is read-only"))
            return self._engine

    def discard(self, damaged: Engine) -> bool:
        """Delete the file of an engine that found it damaged, unless that has been done; False where it stays, because
        it is not in the workspace's own folder.
        """
        with self._lock:
            if self._engine is not damaged:
                return True
            same = self._now() == self._identity
            copied = self._copy is not None
            self._let_go(damaged)
            if same and self._own and not copied:
                _delete(self.path)
            return not same or (self._own and not copied)

    def close(self) -> None:
        """Close the engine; a second time it does nothing."""
        with self._lock:
            self._closed = True
            if self._engine is not None:
                self._let_go(self._engine)

    def _let_go(self, engine: Engine) -> None:
        self._engine = None
        engine.close()
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def _now(self) -> tuple[int, ...] | None:
        """Which file stands there; of one that was copied, also what it says."""
        return _identity(self.path, of_content=self._copy is not None)

    def _open(self) -> Engine:
        _make_folder(self.path.parent, private=self._own)
        try:
            return self._open_as_it_is()
        except StoreError as fault:
            if self._is_fixed(fault):
                return self._open_copy()
            if not self._may_delete(fault):
                raise
        # Another process may have seen the same and be opening a fresh one.
        with FolderLock(self.path.with_name(self.path.name + ".making")).held():
            try:
                return self._open_as_it_is()
            except StoreError as fault:
                if not self._may_delete(fault):
                    raise
            _delete(self.path)
            return self._open_as_it_is()

    def _is_fixed(self, fault: StoreError) -> bool:
        """Whether a file is there that can be read and not written. SQLite writes beside the file even to read it."""
        if not self.path.is_file():
            return False
        fixed = not all(os.access(each, os.W_OK) for each in (self.path, self.path.parent))
        return isinstance(fault, StoreReadOnly) or (type(fault) is StoreError and fixed)

    def _open_copy(self) -> Engine:
        self._copy = TemporaryDirectory(prefix="recollect-")
        copy = Path(self._copy.name) / "index.db"
        try:
            for ending in ("", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(str(self.path) + ending, str(copy) + ending)
            return self._open_as_it_is(copy)
        except BaseException as fault:
            self._copy.cleanup()
            self._copy = None
            if isinstance(fault, OSError):
                raise StoreReadOnly(f"{self.path} can be neither written nor read: {fault.strerror}") from fault
            raise

    def _open_as_it_is(self, copy: Path | None = None) -> Engine:
        if self._own:
            _refuse_links(self.path)
        engine = Engine(copy or self.path, self.spec, self._settings, self._language_model)
        try:
            with engine.store.read() as connection:
                ours = purpose.is_index(connection)
            if not ours:
                with engine.store.atomic() as connection:
                    ours = purpose.claim_as_index(connection)
            if not ours:
                raise InvalidInput(
                    f"{self.path} holds memories or documents and is no index of a workspace: give another path "
                    "in MemoryConfig(db_path=...), or move the file away; it was left as it is"
                )
        except BaseException:
            engine.close()
            raise
        return engine

    def _may_delete(self, fault: StoreError) -> bool:
        """Whether a file that cannot be opened is in our own folder and an index, or damaged beyond reading."""
        if not (self._own and self.path.is_file()):
            return False
        if isinstance(fault, StoreCorrupt):
            return True
        if isinstance(fault, NotADatabase | SchemaTooNew) or type(fault) is StoreError:
            return purpose.look(str(self.path)) != "other"
        return False


def _embedder_of(config: MemoryConfig) -> ModelAddress | str:
    if not config.embeds:
        return "none"
    chosen = config.embedding
    return named_embedder(
        chosen.model, api_base=chosen.api_base, api_key=chosen.api_key,
        timeout_seconds=chosen.timeout, batch_size=chosen.batch_size,
    )  # fmt: skip


def _make_folder(folder: Path, *, private: bool) -> None:
    """Make the folder of the index; the workspace's own says to version control that it is none of its business."""
    try:
        if private and folder.is_symlink():
            raise InvalidInput(_LINK.format(folder))
        folder.mkdir(parents=True, exist_ok=True)
        if private and not os.path.lexists(folder / ".gitignore"):
            try:
                _write_new(folder / ".gitignore", b"*\n")
            except OSError:
                if not (folder / "index.db").exists():  # which may be read all the same
                    raise
    except OSError as fault:
        kind = StoreFull if fault.errno == 28 else StoreReadOnly
        raise kind(
            f"{folder} cannot be made: {fault.strerror}. The index goes elsewhere with db_path of the configuration"
        ) from fault


def _write_new(path: Path, data: bytes) -> None:
    descriptor = os.open(path, _NEW, 0o644)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _refuse_links(path: Path) -> None:
    """A link may stand in a folder that somebody else has given: what it points at is no index of it."""
    for each in (path.parent, *(Path(str(path) + ending) for ending in _BESIDE)):
        if each.is_symlink():
            raise InvalidInput(_LINK.format(each))


def _identity(path: Path, *, of_content: bool) -> tuple[int, ...] | None:
    try:
        held = path.stat()
    except OSError:
        return None
    return (held.st_dev, held.st_ino, *((held.st_mtime_ns, held.st_size) if of_content else ()))


def _delete(path: Path) -> None:
    for ending in _BESIDE:
        try:
            os.unlink(str(path) + ending)
        except FileNotFoundError:
            continue
        except OSError as fault:
            raise StoreReadOnly(f"{path}{ending} is damaged and cannot be deleted: {fault.strerror}") from fault
