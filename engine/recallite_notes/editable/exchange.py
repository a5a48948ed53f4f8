"""Export to a folder of Markdown, one file per scope and month, and import of the edits made there.

No file with unknown content is replaced.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct, structs

from recallite.engine import Engine
from recallite.errors import InvalidInput, RecalliteError
from recallite.model.checks import check_scope, check_time, join_scopes, now_us, to_datetime
from recallite.model.filters import Filter
from recallite.model.records import Record
from recallite.model.reports import Exported, FileTrouble, Restored
from recallite.remember import change, relations
from recallite.store.store import Progress
from recallite.store.transaction import Reader
from recallite.store.values import LinkRow, Month
from recallite.system.telemetry import traced
from recallite.transfer.importing import Batch, check_supersession, name_memories, put_supersession
from recallite.transfer.lines import Incoming, LinkLine, SupersessionLine, scope_within, written_time
from recallite_notes.editable.markdown import (
    Fields,
    Joined,
    MemoryFile,
    MemorySection,
    SupersededBy,
    changeable_fields,
    content_digest,
    decoded,
    fields_of,
    ids_of,
    is_memory_file,
    known_supersessions,
    moves_creation,
    parse_file,
    render_file,
    stored_fields,
    unstored_changes,
)
from recallite_notes.editable.safe_folder import OWN, Changed, FileEntry, Folder, FolderManifest, digest, store_identity

_UNSAFE = re.compile(r"[^\w-]+")
_MAX_NAME_CHARS = 60
FILE_CHARS = 2_000_000
"""The most characters of a file, unless it has a single memory."""
_OTHER_CHARS = 400
_FETCHED_TOGETHER = 1_000
_IMPORT_FIRST = "import the folder first, or export with overwrite"


class _File(Struct):
    """A file to write: its content, its manifest entry, and what it replaces."""

    path: str
    data: bytes
    entry: FileEntry
    old: bytes | None = None


class _Conflict(InvalidInput):
    """A file may not be replaced because of one of its lines."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@traced("export_folder", lambda done: {"memories": done.records})
def export_folder(
    engine: Engine,
    path: str | os.PathLike[str],
    filter: Filter,
    *,
    overwrite: bool = False,
    on_progress: Progress | None = None,
) -> Exported:
    """Write the memories that a filter admits, their scopes relative to its base, and remove files left without any.

    A file that differs from the store (a memory changed, added or removed since the last export or import) is a
    conflict and is kept, as is any file without memories; with `overwrite` only the latter. Chunks of documents are not
    exported. `on_progress(done, total)` counts memories.
    """
    folder = Folder(path, create=True)
    with folder.locked():
        folder.sweep()
        run = _Export(folder, FolderManifest(folder, store_identity(engine), filter.base), filter.base, overwrite)
        with engine.store.read() as reader:
            run.plan(reader, filter, on_progress)
        return run.carry_out()


class _Export:
    """One export: the files to write, the files left without memories, and conflicts."""

    def __init__(self, folder: Folder, known: FolderManifest, base: str, overwrite: bool) -> None:
        self._folder, self._known, self._base, self._overwrite = folder, known, base, overwrite
        self._files: list[_File] = []
        self._left: list[str] = []
        self._conflicts: list[FileTrouble] = []
        self._records = 0

    def plan(self, reader: Reader, filter: Filter, on_progress: Progress | None) -> None:
        """Compare the memories with the files of the folder."""
        months = reader.records.months(filter)
        total = sum(len(month.row_ids) for month in months)
        joined = Joined.of(reader, filter)
        paths = set()
        for month in months:
            for path, records in _files_of(reader, month, self._base):
                paths.add(path)
                scope, fields = scope_within(month.scope, self._base), joined.with_repeated(reader, records)
                sections = [(record.created_at, fields_of(record, fields), record.text) for record in records]
                data = render_file(scope, month.month, sections).encode()
                digests = {
                    own.id or "": content_digest(changeable_fields(scope, own, text)) for _, own, text in sections
                }
                file = _File(path, data, FileEntry((digest(data),), scope, digests))
                with self._refusing(path):
                    file.old = self._folder.read(path)
                    if file.old is not None and file.old != file.data:
                        self._check_replaceable(reader, file.old, file)
                    self._files.append(file)
                self._records += len(records)
                if on_progress is not None:
                    on_progress(self._records, total)
        for path, entry in self._known.files.items():
            scope = join_scopes(filter.base, entry.scope) or "/"
            within = (scope == selected or scope.startswith(selected + "/") for selected in filter.scopes)
            if path not in paths and (not filter.scopes or any(within)):
                self._left.append(path)

    @contextmanager
    def _refusing(self, path: str) -> Iterator[None]:
        """Record an unusable file as a conflict."""
        try:
            yield
        except Changed:
            reason = "it was changed while the export ran: run it again"
            self._conflicts.append(FileTrouble(path=path, reason=reason))
        except InvalidInput as fault:
            self._conflicts.append(FileTrouble(path=path, line=getattr(fault, "line", None), reason=str(fault)))

    def carry_out(self) -> Exported:
        """Write what is planned, and remove the files without memories."""
        changed = [file for file in self._files if file.old != file.data]
        entries = {**self._known.files, **{file.path: file.entry for file in self._files if file.old == file.data}}
        # The manifest is written first: files of an export that is killed are known to the next one.
        either = {
            file.path: FileEntry(
                (*file.entry.hashes, *([] if file.old is None else [digest(file.old)])),
                file.entry.scope, file.entry.memories,
            )
            for file in changed
        }  # fmt: skip
        self._known.write({**entries, **either})
        written, removed = [], []
        for file in changed:
            with self._refusing(file.path):
                self._folder.write(file.path, file.data, over=file.old)
                written.append(file.path)
                entries[file.path] = file.entry
        for path in self._left:
            with self._refusing(path):  # its memories are no longer in the store, or in another file
                old = self._folder.read(path)
                if old is not None:
                    is_ours = digest(old) in entries[path].hashes
                    if not is_ours and not (self._overwrite and is_memory_file(decoded(old))):
                        raise InvalidInput(
                            "its memories are no longer in the store, and it was changed: import it, or remove it"
                        )
                    self._folder.remove(path, over=old)
                    removed.append(path)
                del entries[path]
        self._known.write(entries)
        return Exported(
            records=self._records, written=tuple(written), unchanged=len(self._files) - len(changed),
            removed=tuple(removed), conflicts=tuple(self._conflicts),
        )  # fmt: skip

    def _check_replaceable(self, reader: Reader, old: bytes, new: _File) -> None:
        """Raise InvalidInput for a file with something that the store does not have, unless `overwrite` allows it."""
        before = self._known.files.get(new.path)
        if before is not None and digest(old) in before.hashes:
            return
        text = decoded(old)
        if not is_memory_file(text):
            raise InvalidInput("it is not a file of memories: move it, or export to another folder")
        if self._overwrite:
            return
        file = parse_file(text)
        ids = ids_of(file, self._base)
        known = {} if before is None else before.memories
        for line, reason in (*file.problems, *_unknown(reader, file, ids, self._base, known)):
            raise _Conflict(line, reason)
        removed = new.entry.memories.keys() - {*ids}
        gone = [public_id for public_id in known if public_id in removed]
        if gone:
            raise InvalidInput(
                f"{len(gone)} of its memories were removed ({gone[0]}): import the folder, which lists them and can "
                "forget them, or export with overwrite"
            )


def _unknown(
    reader: Reader, file: MemoryFile, ids: list[str], base: str, known: Mapping[str, str]
) -> Iterator[tuple[int, str]]:
    """The memories of a file that differ from the store's: the line of each, and the difference."""
    rows = reader.records.find_ids(ids, base)
    records = reader.records.by_row_ids(list(rows.values()))
    ends = reader.records.find_ids([link.target for section in file.sections for link in section.fields.links], base)
    superseded = known_supersessions(reader, base) if any(other.fields.superseded_by for other in file.sections) else ()
    seen: set[str] = set()
    for public_id, section in zip(ids, file.sections, strict=True):
        fields, line = section.fields, section.line
        if public_id in seen:
            yield line, "this memory is in the file twice: remove one, or the id of one if it is another memory"
        seen.add(public_id)
        if public_id not in rows:
            if known.get(public_id) != content_digest(changeable_fields(file.scope, fields, section.text)):
                yield line, "the store does not have this memory: import the folder first"
            continue  # else it was forgotten since
        record = records[rows[public_id]]
        if unstored_changes(record, file.scope, section, known.get(public_id), base):
            yield line, f"this memory differs from the store: {_IMPORT_FIRST}"
        if moves_creation(record, fields):
            yield line, "created_at cannot be changed: undo it, or export with overwrite"
        if any(
            (public_id, entry.new, check_time(entry.known_from, "known_from")) not in superseded
            for entry in fields.superseded_by
        ):
            yield line, f"the store does not have what supersedes this memory: {_IMPORT_FIRST}"
        stated = [(ends[link.target], link.type) for link in fields.links if link.target in ends]
        links = [LinkRow(rows[public_id], end, type, 0.0, 0) for end, type in stated]
        if len(links) < len(fields.links) or reader.links.missing(links):
            yield line, f"the store does not have a link of this memory: {_IMPORT_FIRST}"


def file_of(scope: str, month: str, part: int = 1) -> str:
    """The path of the file for a scope and a month such as "2026-03", or of one part of it.

    A segment that is not lower case, or has characters besides letters, digits, `_` and `-`, is simplified and gets a
    hash of itself: no two scopes share a folder, on any file system.
    """
    folders = []
    for segment in filter(None, scope.split("/")):
        plain = _UNSAFE.sub("-", unicodedata.normalize("NFC", segment).casefold())[:_MAX_NAME_CHARS]
        folders.append(plain if plain == segment else f"{plain}~{hashlib.sha256(segment.encode()).hexdigest()[:8]}")
    return "/".join([*folders, f"{month}.md" if part == 1 else f"{month}-part{part}.md"])


def _files_of(reader: Reader, month: Month, base: str) -> Iterator[tuple[str, list[Record]]]:
    """The files of a month with their memories. Later memories go to the last file, so the others do not change."""
    scope = scope_within(month.scope, base)
    part, size = 1, 0
    records: list[Record] = []
    for begin in range(0, len(month.row_ids), _FETCHED_TOGETHER):
        row_ids = month.row_ids[begin : begin + _FETCHED_TOGETHER]
        fetched = reader.records.by_row_ids(row_ids)
        for row_id in row_ids:
            chars = len(fetched[row_id].text) + _OTHER_CHARS
            if records and size + chars > FILE_CHARS:
                yield file_of(scope, month.month, part), records
                part, size, records = part + 1, 0, []
            records.append(fetched[row_id])
            size += chars
    yield file_of(scope, month.month, part), records


_FIELDS_OF_RECORDS = [name for name in Incoming.__struct_fields__ if name in Fields.__struct_fields__]


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
    export or import is left out, and comes back with `overwrite`. A memory that its file no longer has is missing, and
    forgotten with `forget_missing`. Files are not changed, and other Markdown in the folder is ignored.
    `on_progress(done, total)` counts files.
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
                f"{folder.root} has no file of memories: give a folder that an export has written. Other notes: "
                "recallite import --from obsidian FOLDER, recallite knowledge ingest FOLDER, or recallite workspace"
            )
        return run.finish(set(paths), forget_missing=forget_missing)


class _Import:
    """One import: what was read, and its outcome."""

    def __init__(self, engine: Engine, known: FolderManifest, base: str, overwrite: bool) -> None:
        self._engine, self._known, self._base, self._overwrite = engine, known, base, overwrite
        self._batch = Batch(engine, base, base)
        self._entries = dict(known.files)
        self._before = {id: content for entry in known.files.values() for id, content in entry.memories.items()}
        self._files = self._updated = self._unchanged = 0
        self._positions: dict[str, tuple[str, int]] = {}
        self._links: list[tuple[str, int, LinkLine]] = []
        self._superseded: list[tuple[str, int, str, SupersededBy]] = []
        self._unread: set[str] = set()
        self._left_out: set[str] = set()
        self._problems: list[FileTrouble] = []

    @property
    def has_files(self) -> bool:
        """Whether there are, or were, files of memories."""
        return bool(self._files or self._problems or self._known.files)

    @contextmanager
    def _reporting(self, path: str, line: int | None) -> Iterator[None]:
        try:
            yield
        except RecalliteError as fault:
            self._trouble(path, line, fault)

    def _trouble(self, path: str, line: int | None, reason: object) -> None:
        self._unread.add(path)
        self._problems.append(FileTrouble(path=_printable(path), line=line, reason=_printable(str(reason))))

    def read(self, folder: Folder, path: str) -> None:
        with self._reporting(path, None):
            data = folder.read(path)
            if data is None:
                return
            if not is_memory_file(text := decoded(data)):
                if path in self._known.files:
                    raise InvalidInput("it had memories, and no longer begins as such files do: repair its head")
                return
            self._files += 1
            if _printable(path) != path:
                raise InvalidInput("its name is not UTF-8: rename it")
            file = parse_file(text)
            check_scope(file.scope)
            for line, problem in file.problems:
                self._trouble(path, line, problem)
            before = len(self._problems)
            digests = self._take(path, file)
            if not file.problems and len(self._problems) == before:
                entry = self._entries.get(path)
                others = {} if entry is None else entry.memories
                self._entries[path] = FileEntry((digest(data),), file.scope, {**others, **digests})

    def _take(self, path: str, file: MemoryFile) -> dict[str, str]:
        """Store, update or skip each memory of a file; returns the digests of the valid ones, by id."""
        sections = self._with_ids(path, file)
        with self._engine.store.read() as reader:
            rows = reader.records.find_ids(list(sections), self._base)
            records = reader.records.by_row_ids(list(rows.values()))
        digests = {}
        for public_id, section in sections.items():
            with self._reporting(path, section.line):
                content = content_digest(changeable_fields(file.scope, section.fields, section.text))
                if public_id in rows:
                    self._compare(records[rows[public_id]], path, file.scope, section)
                elif self._was_forgotten(public_id, content):
                    self._left_out.add(public_id)
                    digests[public_id] = content
                    continue
                else:
                    fields = {name: getattr(section.fields, name) for name in _FIELDS_OF_RECORDS} | {
                        "id": public_id, "tags": section.fields.tags or (),
                        "updated_at": section.fields.updated_at or section.fields.created_at,
                    }  # fmt: skip
                    self._batch.add(Incoming(**fields, text=section.text, scope=file.scope), section.line)
                digests[public_id] = content
                links = [LinkLine(source=public_id, **structs.asdict(link)) for link in section.fields.links]
                self._links += [(path, section.line, link) for link in links]
                self._superseded += [(path, section.line, public_id, entry) for entry in section.fields.superseded_by]
            if self._batch.full():
                self._batch.write()
        return digests

    def _with_ids(self, path: str, file: MemoryFile) -> dict[str, MemorySection]:
        """The sections of a file by the ids of their memories in the store."""
        sections = {}
        file_ids = ids_of(file, self._base)
        with self._engine.store.read() as reader:
            names = name_memories(reader, file_ids, self._base)
        for section, file_id in zip(file.sections, file_ids, strict=True):
            public_id = names[file_id]
            if public_id in self._positions:
                other, line = self._positions[public_id]
                self._trouble(
                    path, section.line, f"the memory {public_id} is in {other}:{line} already: remove one of them, "
                    "or the id here if it is another memory",
                )  # fmt: skip
                continue
            self._positions[public_id] = path, section.line
            sections[public_id] = section
        return sections

    def _was_forgotten(self, public_id: str, content: str) -> bool:
        """Whether a memory that the store lacks was there at the last export or import, and may not come back."""
        before = None if self._overwrite else self._before.get(public_id)
        if before not in (None, content):
            raise InvalidInput(
                f"{public_id} was forgotten in the store, and changed here: remove it, or import with overwrite to "
                "store it again"
            )
        return before is not None

    def _compare(self, record: Record, path: str, scope: str, section: MemorySection) -> None:
        """Update a stored memory if its section differs and the store has nothing newer."""
        if moves_creation(record, section.fields):
            self._trouble(path, section.line, "created_at cannot be changed: it stays as it is in the store")
        before = self._before.get(record.id)
        changes = unstored_changes(record, scope, section, before, self._base)
        if not changes:
            self._unchanged += 1
            return
        if before is None:
            updated = check_time(section.fields.updated_at or section.fields.created_at, "updated_at")
            newer = updated is not None and to_datetime(updated) < record.updated_at
        else:
            newer = before != content_digest(stored_fields(record, self._base))
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
        missing = self._missing()
        forgotten = 0
        if forget_missing and missing:
            forgotten = change.forget(self._engine, missing, None, base=self._base).records
        entries = {}
        gone = set(missing) if forgotten else set()
        for path, entry in self._entries.items():
            if path in self._unread:  # one of its links may have failed after the entry was made
                if path not in self._known.files:
                    continue
                entry = self._known.files[path]
            left = {id: content for id, content in entry.memories.items() if id not in gone}
            if left or path in paths:
                entries[path] = FileEntry(entry.hashes, entry.scope, left)
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
        ends = {end for *_, link in self._links for end in (link.source, link.target)}
        with self._engine.store.read() as reader:
            names = name_memories(reader, ends, self._base)
            stored = reader.records.find_ids(list(names.values()), self._base)
        for path, line, link in self._links:
            if names[link.target] in self._left_out:
                continue
            with self._reporting(path, line):
                if names[link.target] not in stored:
                    raise InvalidInput(f"the link's end {link.target} is not a memory here")
                if names[link.source] in stored:
                    self._batch.add(link, line)
        self._batch.write()

    def _supersede(self) -> None:
        """Put memories in the place of others; what the store refuses is a problem of its section.

        Of what the store knows already, it also knows what became of it since.
        """
        if not self._superseded:
            return
        with self._engine.atomic() as writer:
            known = known_supersessions(writer, self._base)
            names = name_memories(writer, {entry.new for *_, entry in self._superseded}, self._base)
            for path, line, old, entry in self._superseded:
                new = names[entry.new]
                if new in self._left_out:
                    continue
                with self._reporting(path, line):
                    if (old, new, check_time(entry.known_from, "known_from")) not in known:
                        fields = structs.asdict(entry)
                        if entry.holds_from is None:
                            successor = writer.records.get(relations.find_row_id(writer, new, self._base))
                            fields["holds_from"] = written_time(successor.valid_from or successor.created_at)
                        if entry.known_from is None:
                            fields["known_from"] = written_time(to_datetime(now_us()))
                        stated = SupersessionLine(old=old, **fields)
                        put_supersession(writer, stated, check_supersession(stated), self._base)

    def _missing(self) -> list[str]:
        """Stored memories that a file had at the last export or import, and that no file has now.

        Files that could not be read in full are not counted: the memory may still be there.
        """
        gone = [
            public_id
            for path, entry in self._known.files.items()
            if path not in self._unread
            for public_id in entry.memories
            if public_id not in self._positions
        ]
        with self._engine.store.read() as reader:
            return sorted(reader.records.find_ids(gone, self._base))


def _printable(text: str) -> str:
    """A text in which bytes of file names that are not characters are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
