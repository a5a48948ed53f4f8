"""Export to a folder of Markdown, a file for each memory, and import of the edits made there.

No file with unknown content is replaced.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import structs

from recallite.engine import Engine
from recallite.errors import InvalidInput, RecalliteError
from recallite.model.checks import check_time, join_scopes, now_us, optional_datetime, to_datetime
from recallite.model.filters import Filter
from recallite.model.records import Record
from recallite.model.reports import Exported, FileTrouble, Restored
from recallite.remember import change, relations
from recallite.store.store import Progress
from recallite.store.transaction import Reader
from recallite.system.telemetry import traced
from recallite.transfer.lines import Incoming, LinkLine, SupersessionLine, written_time
from recallite.transfer.streaming import Batch, check_supersession, name_memories, put_supersession
from recallite_notes.editable.markdown import (
    Joined,
    MemoryFile,
    SupersededBy,
    changeable_fields,
    content_digest,
    decoded,
    file_of,
    is_memory_file,
    known_supersessions,
    parse,
    render,
    unnamed_id,
)
from recallite_notes.editable.safe_folder import OWN, Changed, FileEntry, Folder, FolderManifest, digest, store_identity

_UNSAFE = re.compile(r"[^\w-]+")
# Of four bytes at most each, within the 255 bytes that file systems allow.
_MAX_NAME_CHARS, _MAX_WORDS_CHARS = 60, 40
_FETCHED_TOGETHER = 1_000


@traced("export_folder", lambda done: {"memories": done.records})
def export_folder(
    engine: Engine,
    path: str | os.PathLike[str],
    filter: Filter,
    *,
    overwrite: bool = False,
    on_progress: Progress | None = None,
) -> Exported:
    """Write the memories that a filter admits, their scopes relative to its base, and remove the files of all others.

    A file that was changed since the last export or import is a conflict and is kept, as is any file that is not of a
    memory; with `overwrite` only the latter. Chunks of documents are not exported. `on_progress(done, total)` counts
    memories.
    """
    folder = Folder(path, create=True)
    with folder.locked():
        folder.sweep()
        run = _Export(folder, FolderManifest(folder, store_identity(engine), filter.base), overwrite)
        with engine.store.read() as reader:
            run.plan(reader, filter, on_progress)
        return run.carry_out()


class _Export:
    """One export: the files to write with what they replace, the files left without memories, and conflicts."""

    def __init__(self, folder: Folder, known: FolderManifest, overwrite: bool) -> None:
        self._folder, self._known, self._overwrite = folder, known, overwrite
        self._entries: dict[str, FileEntry] = {}
        self._changed: dict[str, tuple[bytes, bytes | None]] = {}
        self._left: list[str] = []
        self._conflicts: list[FileTrouble] = []

    def plan(self, reader: Reader, filter: Filter, on_progress: Progress | None) -> None:
        """Compare the memories with the files of the folder."""
        row_ids, joined, done = reader.records.editable_ids(filter), Joined(reader, filter), 0
        paths = {entry.id: path for path, entry in self._known.files.items()}
        for begin in range(0, len(row_ids), _FETCHED_TOGETHER):
            some = row_ids[begin : begin + _FETCHED_TOGETHER]
            records = reader.records.by_row_ids(some)
            for memory in joined.files({row_id: records[row_id] for row_id in some}):
                self._compare(memory, paths.get(memory.id or ""))
                done += 1
                if on_progress is not None:
                    on_progress(done, len(row_ids))
        for path, entry in self._known.files.items():
            scope = join_scopes(filter.base, entry.scope) or "/"
            within = (scope == selected or scope.startswith(selected.rstrip("/") + "/") for selected in filter.scopes)
            if path not in self._entries and (not filter.scopes or any(within)):
                self._left.append(path)

    def _compare(self, memory: MemoryFile, path: str | None) -> None:
        """Plan to write a memory if its file differs: the one that it has, unless its scope has changed."""
        if path is None or self._known.files[path].scope != memory.scope:
            path = path_of(memory)
        data = render(memory)
        self._entries[path] = FileEntry((digest(data),), memory.scope, memory.id or "", content_digest(memory))
        with self._refusing(path):
            old = self._folder.read(path)
            if old is not None and old != data:
                self._check_replaceable(path, old)
            if old != data:
                self._changed[path] = data, old

    def _check_replaceable(self, path: str, old: bytes) -> None:
        """Raise InvalidInput for a file with something that the store does not have, unless `overwrite` allows it."""
        known = self._known.files.get(path)
        if not old or (known is not None and digest(old) in known.hashes):  # a power failure may leave an empty file
            return
        if not is_memory_file(decoded(old)):
            raise InvalidInput("it is not a file of a memory: move it, or export to another folder")
        if not self._overwrite:
            raise InvalidInput("it was changed since the last export or import: import it, or export with overwrite")

    @contextmanager
    def _refusing(self, path: str) -> Iterator[None]:
        """Record an unusable file as a conflict."""
        try:
            yield
        except Changed:
            self._conflicts.append(FileTrouble(path=path, reason="it was changed while the export ran: run it again"))
        except InvalidInput as fault:
            self._conflicts.append(FileTrouble(path=path, reason=str(fault)))

    def carry_out(self) -> Exported:
        """Write what is planned, and remove the files without memories."""
        refused = {conflict.path for conflict in self._conflicts}
        unchanged = {path: entry for path, entry in self._entries.items() if path not in {*self._changed, *refused}}
        entries = {**self._known.files, **unchanged}
        # The manifest is written first: files of an export that is killed are known to the next one.
        either = dict(entries)
        for path, (_, old) in self._changed.items():
            entry = self._entries[path]
            either[path] = structs.replace(entry, hashes=(*entry.hashes, *([] if old is None else [digest(old)])))
        self._known.write(either)
        written, removed = [], []
        for path, (data, old) in self._changed.items():
            with self._refusing(path):
                self._folder.write(path, data, over=old, derived=True)
                written.append(path)
                entries[path] = self._entries[path]
        for path in self._left:
            with self._refusing(path):  # its memory is no longer in the store, or in another file
                old = self._folder.read(path)
                if old is not None:
                    self._check_replaceable(path, old)
                    self._folder.remove(path, over=old)
                    removed.append(path)
                del entries[path]
        self._folder.settle()
        self._known.write(entries)
        return Exported(
            records=len(self._entries), written=tuple(written), unchanged=len(unchanged), removed=tuple(removed),
            conflicts=tuple(self._conflicts),
        )  # fmt: skip


def path_of(memory: MemoryFile) -> str:
    """The path of the file for a new memory: folders of its scope, its day, its first words and a hash of its id.

    A segment of a scope that is not lower case, or has characters besides letters, digits, `_` and `-`, is simplified
    and gets a hash of itself: no two scopes share a folder, on any file system.
    """
    folders = []
    for segment in filter(None, memory.scope.split("/")):
        plain = _plain(segment)
        folders.append(plain if plain == segment else f"{plain}~{_hash(segment, 8)}")
    words = re.sub(r"\W+", "-", _plain(" ".join(memory.text.split(maxsplit=8)[:8])))[:_MAX_WORDS_CHARS].strip("-")
    parts = (memory.created_at or "")[:10], words, _hash(memory.id or "", 10)
    return "/".join([*folders, f"{'-'.join(filter(None, parts))}.md"])


def _plain(text: str) -> str:
    return _UNSAFE.sub("-", unicodedata.normalize("NFC", text).casefold())[:_MAX_NAME_CHARS]


def _hash(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


@traced("import_folder", lambda done: {"memories": done.created + done.updated})
def import_folder(
    engine: Engine,
    path: str | os.PathLike[str],
    *,
    base: str,
    overwrite: bool = False,
    forget_missing: bool = False,
    on_progress: Progress | None = None,
) -> Restored:
    """Store and update the memories of a folder's files, through a handle bound to the scope `base`.

    A memory whose id is in the store is updated if its file has changed. If the store has changed too, the store wins
    and the memory is listed as a problem; with `overwrite` the file wins. So a memory that was forgotten since the last
    export or import is left out, and comes back with `overwrite`. A memory whose file is gone is missing, and forgotten
    with `forget_missing`. Files are not changed, and other Markdown in the folder is ignored. `on_progress(done,
    total)` counts files.
    """
    folder = Folder(path)
    with folder.locked(optional=True):
        run = _Import(engine, FolderManifest(folder, store_identity(engine), base), base, overwrite)
        paths = list(folder.walk(".md"))
        for done, relative in enumerate(paths, 1):
            run.read(folder, relative)
            if on_progress is not None:
                on_progress(done, len(paths))
        if not run.has_files:
            raise InvalidInput(
                f"{folder.root} has no file of a memory: give a folder that an export has written. Other notes: "
                "recallite import --from obsidian FOLDER, recallite knowledge ingest FOLDER, or recallite workspace"
            )
        return run.finish(set(paths), forget_missing=forget_missing)


class _Import:
    """One import: what was read, and its outcome."""

    def __init__(self, engine: Engine, known: FolderManifest, base: str, overwrite: bool) -> None:
        self._engine, self._known, self._base, self._overwrite = engine, known, base, overwrite
        self._batch = Batch(engine, base, base)
        self._entries = dict(known.files)
        self._before = {entry.id: entry.content for entry in known.files.values()}
        self._updated = self._unchanged = 0
        self._paths: dict[str, str] = {}  # by the ids of their memories
        self._links: list[tuple[str, LinkLine]] = []
        self._superseded: list[tuple[str, str, SupersededBy]] = []
        self._unread: set[str] = set()
        self._left_out: set[str] = set()
        self._problems: list[FileTrouble] = []

    @property
    def has_files(self) -> bool:
        """Whether there are, or were, files of memories."""
        return bool(self._paths or self._problems or self._known.files)

    @contextmanager
    def _reporting(self, path: str) -> Iterator[None]:
        try:
            yield
        except RecalliteError as fault:
            self._unread.add(path)
            self._problems.append(FileTrouble(path=_printable(path), reason=_printable(str(fault))))

    def read(self, folder: Folder, path: str) -> None:
        """Store, update or skip the memory of a file."""
        with self._reporting(path):
            data = folder.read(path)
            memory = None if data is None else parse(decoded(data))
            if data is None or memory is None:
                if data is not None and path in self._known.files:
                    raise InvalidInput("it had a memory, and no longer begins as such a file does: repair its head")
                return
            if _printable(path) != path:
                raise InvalidInput("its name is not UTF-8: rename it")
            known = self._known.files.get(path)
            given_id = memory.id or (known.id if known else unnamed_id(memory, self._base))
            with self._engine.store.read() as reader:
                id = name_memories(reader, [given_id], self._base)[given_id]
                row_ids = reader.records.find_ids([id], self._base)
                record = reader.records.by_row_ids([*row_ids.values()])[row_ids[id]] if row_ids else None
            if (other := self._paths.setdefault(id, path)) != path:
                raise InvalidInput(
                    f"the memory {id} is in {other} already: remove one of them, or the id here if it is another memory"
                )
            content = content_digest(memory)
            if record is not None:
                self._compare(record, memory, content)
            elif self._was_forgotten(id, content):
                self._left_out.add(id)
            else:
                values = {name: getattr(memory, name) for name in _STORED}
                values |= {"id": id, "tags": memory.tags or (), "updated_at": memory.updated_at or memory.created_at}
                self._batch.add(Incoming(**values), 1)
            self._entries[path] = FileEntry((digest(data),), memory.scope, id, content)
            if id not in self._left_out:
                self._links += [(path, LinkLine(source=id, **structs.asdict(link))) for link in memory.links]
                self._superseded += [(path, id, entry) for entry in memory.superseded_by]
            if self._batch.full():
                self._batch.write()

    def _was_forgotten(self, id: str, content: str) -> bool:
        """Whether a memory that the store lacks was there at the last export or import, and may not come back."""
        before = None if self._overwrite else self._before.get(id)
        if before not in (None, content):
            raise InvalidInput(
                f"{id} was forgotten in the store, and changed here: remove it, or import with overwrite to store it "
                "again"
            )
        return before is not None

    def _compare(self, record: Record, memory: MemoryFile, content: str) -> None:
        """Update a stored memory if its file differs and the store has nothing newer."""
        created_at = optional_datetime(check_time(memory.created_at, "created_at"))
        if created_at not in (None, record.created_at):
            raise InvalidInput("created_at cannot be changed: undo it, or export with overwrite")
        before, stored = self._before.get(record.id), file_of(record, self._base)
        old, new = changeable_fields(stored), changeable_fields(memory)
        changes = {name: value for name, value in new.items() if value != old[name] and before != content}
        if not changes:
            self._unchanged += 1
            return
        if before is None:
            updated = check_time(memory.updated_at or memory.created_at, "updated_at")
            newer = updated is not None and to_datetime(updated) < record.updated_at
        else:
            newer = before != content_digest(stored)
        if newer and not self._overwrite:
            raise InvalidInput(
                f"{record.id} was changed in the store too ({', '.join(changes)}), which wins: import with "
                "overwrite to take the file's, or export with overwrite to take the store's"
            )
        change.update(self._engine, record.id, changes, base=self._base)
        self._updated += 1

    def finish(self, paths: set[str], *, forget_missing: bool) -> Restored:
        """Write what is left, the links last, and the manifest."""
        self._batch.write()
        self._link()
        self._supersede()
        # A memory whose file could not be read is not missing.
        gone = {entry.id for path, entry in self._known.files.items() if path not in self._unread} - self._paths.keys()
        with self._engine.store.read() as reader:
            missing = sorted(reader.records.find_ids([*gone], self._base))
        forgotten = 0
        if forget_missing and missing:
            forgotten = change.forget(self._engine, missing, None, base=self._base).records
        entries = {}
        for path, entry in self._entries.items():
            known = self._known.files.get(path) if path in self._unread else entry
            if known is None:
                continue
            is_gone = known.id in self._paths or (forgotten and known.id in missing)  # moved, or forgotten
            if path in paths or not is_gone:
                entries[path] = known
        try:
            self._known.write(entries)
        except InvalidInput as reason:
            self._problems.append(FileTrouble(path=OWN, reason=f"the manifest could not be written: {reason}"))
        return Restored(
            created=self._batch.stored, updated=self._updated, unchanged=self._unchanged + self._batch.skipped,
            links=self._batch.linked, missing=tuple(missing), forgotten=forgotten,
            left_out=tuple(sorted(self._left_out)), problems=tuple(self._problems),
        )  # fmt: skip

    def _link(self) -> None:
        """Make the links with both ends stored."""
        ends = {end for _, link in self._links for end in (link.source, link.target)}
        with self._engine.store.read() as reader:
            names = name_memories(reader, ends, self._base)
            stored = reader.records.find_ids(list(names.values()), self._base)
        for path, link in self._links:
            if names[link.target] in self._left_out:
                continue
            with self._reporting(path):
                if names[link.target] not in stored:
                    raise InvalidInput(f"the link's end {link.target} is not a memory here")
                if names[link.source] in stored:
                    self._batch.add(link, 1)
        self._batch.write()

    def _supersede(self) -> None:
        """Put memories in the place of others; what the store refuses is a problem of the file.

        Of what the store knows already, it also knows what became of it since.
        """
        if not self._superseded:
            return
        with self._engine.atomic() as writer:
            known = known_supersessions(writer, self._base)
            names = name_memories(writer, {entry.new for *_, entry in self._superseded}, self._base)
            for path, old, entry in self._superseded:
                new = names[entry.new]
                if new in self._left_out:
                    continue
                with self._reporting(path):
                    if (old, new, check_time(entry.known_from, "known_from")) not in known:
                        fields = structs.asdict(entry)
                        if entry.holds_from is None:
                            successor = writer.records.get(relations.find_row_id(writer, new, self._base))
                            fields["holds_from"] = written_time(successor.valid_from or successor.created_at)
                        if entry.known_from is None:
                            fields["known_from"] = written_time(to_datetime(now_us()))
                        stated = SupersessionLine(old=old, **fields)
                        put_supersession(writer, stated, check_supersession(stated), self._base)


_STORED = [name for name in Incoming.__struct_fields__ if name in MemoryFile.__struct_fields__]


def _printable(text: str) -> str:
    """A text in which bytes of file names that are not characters are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
