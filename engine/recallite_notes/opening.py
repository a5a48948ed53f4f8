"""The index file of a workspace: opened on first use, and made again if it is missing or proven damaged."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from msgspec import structs

from recallite.embedding.protocol import Embedder
from recallite.engine import Engine
from recallite.errors import InvalidInput, StoreClosed, StoreError
from recallite.model.environment import ModelAddress, named_embedder
from recallite.model.settings import Settings
from recallite.remote import LanguageModel
from recallite.store.opening import files_beside, proven_damage, remove_database, rename_database
from recallite.system.files import FolderLock
from recallite_notes.config import WorkspaceConfig

# The JIT kernels take 60 MB and 0.1 s to load. They save 4 ms of a search that lists 4,000 files in 30 ms, 3 ms with
# 12,000 chunks.
_SMALL = 12_000
_FIXED = (
    "{} cannot be written: {}. Searches answer from what is indexed; to index, change permissions, or keep the index "
    "elsewhere with WorkspaceConfig(db_path=...)"
)
# Errors that may pass, and say nothing about the index or its folder.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EINTR, errno.EAGAIN)
_LINK = "{} is a symbolic link, which an index must not be: remove it, or use WorkspaceConfig(db_path=...)"
_DAMAGED = ".damaged-"
# A disk that damages every index does not fill up with them.
_KEPT = 3


class IndexFile:
    """The index file of a configuration, and the engine on it. Thread-safe."""

    def __init__(
        self, config: WorkspaceConfig, embedder: Embedder | str | None, language_model: LanguageModel | str | None
    ) -> None:
        self.path = config.index_path
        self.spec: Embedder | ModelAddress | str = "none"
        if embedder is not None:
            self.spec = named_embedder(embedder) if isinstance(embedder, str) else embedder
        elif config.embeds:
            model = config.embedding
            self.spec = named_embedder(
                model.model, api_base=model.api_base, api_key=model.api_key, timeout_seconds=model.timeout,
                batch_size=model.batch_size,
            )  # fmt: skip
        self._own = config.db_path is None
        self._language_model = language_model
        self._settings = Settings(durability="normal", profile="memweave")
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._identity: tuple[int, int] | None = None
        self._news: list[str] = []
        self._closed = False
        self._runs = FolderLock(self.path.with_name(self.path.name + ".lock"))
        self._making = FolderLock(self.path.with_name(self.path.name + ".making"))
        _make_folder(self.path.parent, private=self._own)

    @contextmanager
    def alone(self, timeout_seconds: float | None = None) -> Iterator[bool]:
        """Hold the lock of index runs; yields False if another run held it for the whole time. None waits forever.

        Raises StoreError if no lock is possible, or it fails for now.
        """
        _make_folder(self.path.parent, private=self._own)
        with self._holding(self._runs, timeout_seconds) as locked:
            yield locked

    @contextmanager
    def _holding(self, lock: FolderLock, timeout_seconds: float | None = None) -> Iterator[bool]:
        with ExitStack() as stack:
            try:
                locked = stack.enter_context(lock.held(timeout_seconds))
            except OSError as fault:
                where = fault.filename or self.path.parent
                raise _refused(fault, _FIXED.format(where, fault.strerror), where) from fault
            yield locked

    def engine(self, *, writing: bool = False) -> Engine:
        """The engine on the current file: one that was deleted or replaced is opened again.

        Raises StoreClosed after `close`, and StoreError if the disk says so.
        """
        with self._lock:
            if self._closed:
                raise StoreClosed(f"the workspace of {self.path} was closed: open a new one")
            if self._engine is not None and self._now() != self._identity:
                self._let_go(self._engine)
            if self._engine is None:
                self._engine = self._open()
                self._identity = self._now()
            if writing and self._engine.store.read_only:
                raise StoreError(_FIXED.format(self.path, "it or its folder is read-only"), "read_only")
            return self._engine

    def replace(self, engine: Engine, fault: StoreError) -> bool:
        """Close an engine that found damage. Where the damage is proven and the file is in the workspace's own folder,
        the file is moved aside and the next engine has a new index.

        False if the damaged file is kept.
        """
        with self._lock:
            if self._engine is not engine:
                return True
            same = self._now() == self._identity
            fixed = engine.store.read_only
            self._let_go(engine)
            if not same:
                return True
            reason = proven_damage(str(self.path), fault)
            if reason is None:
                return True
            if fixed or not self._own:
                return False
            with self._holding(self._making):
                if self._now() == self._identity:  # else another process has done it
                    self._move_aside(reason)
            return True

    def take_news(self) -> list[str]:
        """Take the news of the file since the last call."""
        with self._lock:
            news, self._news = self._news, []
            return news

    def close(self) -> None:
        """Close the engine. Can be called again."""
        with self._lock:
            self._closed = True
            if self._engine is not None:
                self._let_go(self._engine)

    def _let_go(self, engine: Engine) -> None:
        self._engine = None
        engine.close()

    def _now(self) -> tuple[int, int] | None:
        """The identity of the file; None if there is none.

        Where the system does not tell, it is taken as unchanged.
        """
        try:
            status = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return self._identity
        return status.st_dev, status.st_ino

    def _open(self) -> Engine:
        _make_folder(self.path.parent, private=self._own)
        try:
            return self._open_as_it_is()
        except StoreError as fault:
            if self._damage(fault) is None:
                raise
        # Another process may have found the same, and be making a new one.
        with self._holding(self._making):
            try:
                return self._open_as_it_is()
            except StoreError as fault:
                reason = self._damage(fault)
                if reason is None:
                    raise
            self._move_aside(reason)
            return self._open_as_it_is()

    def _damage(self, fault: StoreError) -> str | None:
        """The proven damage of a file in the workspace's own folder; None if there is none."""
        return proven_damage(str(self.path), fault) if self._own and os.path.isfile(self.path) else None

    def _move_aside(self, reason: str) -> None:
        aside = move_aside(self.path)
        self._news.append(f"the index was damaged ({reason}) and a new one is made; the damaged one is {aside}")

    def _open_as_it_is(self) -> Engine:
        if self._own:  # a folder from somebody else could point the index at any file
            for file in (self.path.parent, *files_beside(self.path)):
                if file.is_symlink():
                    raise InvalidInput(_LINK.format(file))
        engine = Engine(self.path, self.spec, self._settings, self._language_model)
        engine.tuning = structs.replace(engine.tuning, kernels_from=_SMALL)
        try:
            with engine.store.read() as reader:
                ours = reader.meta.is_index()
            if not ours and not engine.store.read_only:
                with engine.store.atomic() as writer:
                    ours = writer.meta.claim_as_index()
            if not ours:
                raise InvalidInput(
                    f"{self.path} holds memories or documents and is not the index of a workspace: give another path "
                    "in WorkspaceConfig(db_path=...), or move the file away; it was left as it is"
                )
        except BaseException:
            engine.close()
            raise
        return engine


def _make_folder(folder: Path, *, private: bool) -> None:
    """Make the folder of the index, with a .gitignore in the workspace's own."""
    try:
        if private and folder.is_symlink():
            raise InvalidInput(_LINK.format(folder))
        folder.mkdir(parents=True, exist_ok=True)
        if private and not os.path.lexists(folder / ".gitignore"):
            try:
                with open(folder / ".gitignore", "xb") as stream:
                    stream.write(b"*\n")
            except OSError:
                if not (folder / "index.db").exists():  # which can still be read
                    raise
    except OSError as fault:
        message = (
            f"{folder} cannot be made: {fault.strerror}. The index goes elsewhere with db_path of the configuration"
        )
        raise _refused(fault, message, folder) from fault


def _refused(fault: OSError, lasting: str, where: object) -> StoreError:
    """The error for what the system refused, with the message `lasting` unless the cause may pass."""
    if fault.errno in _PASSING:
        return StoreError(f"{where} cannot be used just now: {fault.strerror}. Try again; nothing was changed")
    full = fault.errno in (errno.ENOSPC, errno.EDQUOT)
    return StoreError(lasting, "full" if full else "read_only")


def move_aside(path: Path) -> Path:
    """Rename a damaged index and its WAL, and remove all but the newest few of these files; returns the new path.

    Raises StoreError if it cannot.
    """
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = path.with_name(f"{path.name}{_DAMAGED}{now}")
    try:
        rename_database(path, aside)
    except OSError as fault:
        raise StoreError(f"{path} is damaged and cannot be moved aside: {fault.strerror}", "read_only") from fault
    for old in moved_aside(path)[:-_KEPT]:
        remove_database(old)
    return aside


def moved_aside(path: Path) -> list[Path]:
    """The files that `move_aside` has renamed, oldest first."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        return []
    begin = path.name + _DAMAGED
    return [path.with_name(name) for name in sorted(names) if name.startswith(begin) and name.endswith("Z")]
