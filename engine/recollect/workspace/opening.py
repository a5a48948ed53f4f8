"""The index of a workspace: opened when it is needed, made afresh when it is gone or damaged. It is derived."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.engine import Engine
from recollect.errors import (
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

if TYPE_CHECKING:
    from recollect.embedding.protocol import Embedder
    from recollect.llm.protocol import LanguageModel
    from recollect.remote.address import ModelAddress
    from recollect.workspace.config import MemoryConfig

__all__ = ["IndexFile"]

_BESIDE = ("", "-wal", "-shm", "-index")


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
        self._identity: tuple[int, int] | None = None
        self._closed = False
        self._runs = FolderLock(self.path.with_name(self.path.name + ".lock"))
        _make_folder(self.path.parent, private=self._own)

    @contextmanager
    def alone(self, timeout_seconds: float | None = None) -> Iterator[bool]:
        """Hold the lock of index runs in the folder; False when others held it all that time. None waits for good."""
        _make_folder(self.path.parent, private=self._own)
        with self._runs.held(timeout_seconds) as held:
            yield held

    def engine(self) -> Engine:
        """The engine on the file as it stands now: a file that was deleted or replaced is opened anew.

        Raises StoreClosed after `close`, and StoreReadOnly, StoreFull or StoreLocked where the disk says so.
        """
        with self._lock:
            if self._closed:
                raise StoreClosed(f"the workspace of {self.path} was closed: open a new one")
            if self._engine is not None and _identity(self.path) != self._identity:
                self._engine.close()
                self._engine = None
            if self._engine is None:
                self._engine = self._open()
                self._identity = _identity(self.path)
            return self._engine

    def discard(self, damaged: Engine) -> None:
        """Delete the file of an engine that found it damaged, unless that has been done."""
        with self._lock:
            if self._engine is not damaged:
                return
            self._engine = None
            same = _identity(self.path) == self._identity
            damaged.close()
            if same:
                _delete(self.path)

    def close(self) -> None:
        """Close the engine; a second time it does nothing."""
        with self._lock:
            self._closed = True
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    def _open(self) -> Engine:
        _make_folder(self.path.parent, private=self._own)
        try:
            return self._open_as_it_is()
        except StoreError as fault:
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

    def _open_as_it_is(self) -> Engine:
        return Engine(self.path, self.spec, self._settings, self._language_model)

    def _may_delete(self, fault: StoreError) -> bool:
        """Whether a file that cannot be opened is ours and of no use. What another path holds may be another's."""
        if isinstance(fault, StoreCorrupt | SchemaTooNew):
            return True
        if isinstance(fault, NotADatabase):
            return self._own and self.path.is_file()
        return type(fault) is StoreError and self.path.is_file()  # of a development version


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
        folder.mkdir(parents=True, exist_ok=True)
        if private and not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as fault:
        kind = StoreFull if fault.errno == 28 else StoreReadOnly
        raise kind(
            f"{folder} cannot be made: {fault.strerror}. The index goes elsewhere with db_path of the configuration"
        ) from fault


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        held = path.stat()
    except OSError:
        return None
    return held.st_dev, held.st_ino


def _delete(path: Path) -> None:
    for ending in _BESIDE:
        try:
            os.unlink(str(path) + ending)
        except FileNotFoundError:
            continue
        except OSError as fault:
            raise StoreReadOnly(f"{path}{ending} is damaged and cannot be deleted: {fault.strerror}") from fault
