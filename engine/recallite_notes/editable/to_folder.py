"""Export to a folder of Markdown, one file per scope and month; no file with unknown content is replaced."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model.checks import check_time, join_scopes
from recallite.model.filters import Filter
from recallite.model.records import Record
from recallite.model.reports import Exported, FileTrouble
from recallite.store.store import Progress
from recallite.store.transaction import Reader
from recallite.store.values import LinkRow, Month
from recallite.system.tracing import traced
from recallite.transfer.line_types import scope_within
from recallite_notes.editable.manifest import FileEntry, FolderManifest, store_identity
from recallite_notes.editable.markdown import MemoryFile, decoded, is_memory_file, parse_file, render_file
from recallite_notes.editable.safe_folder import Changed, Folder, digest
from recallite_notes.editable.sections import (
    Joined,
    changeable_fields,
    content_digest,
    fields_of,
    ids_of,
    known_supersessions,
    moves_creation,
    unstored_changes,
)

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
    """One export: the files to write, those left without memories, and conflicts."""

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
                file = _rendered(path, month, records, joined.with_repeated(reader, records), self._base)
                with self._refusing(path):
                    file.old = self._folder.read(path)
                    if file.old is not None and file.old != file.data:
                        self._check_replaceable(reader, file.old, file)
                    self._files.append(file)
                self._records += len(records)
                if on_progress is not None:
                    on_progress(self._records, total)
        self._left = [path for path, entry in self._known.files.items() if path not in paths and _covers(filter, entry)]

    @contextmanager
    def _refusing(self, path: str) -> Iterator[None]:
        """Note what refuses the use of a file as a conflict."""
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
            with self._refusing(path):
                if self._remove(path, entries[path]):
                    removed.append(path)
                del entries[path]
        self._known.write(entries)
        return Exported(
            records=self._records, written=tuple(written), unchanged=len(self._files) - len(changed),
            removed=tuple(removed), conflicts=tuple(self._conflicts),
        )  # fmt: skip

    def _remove(self, path: str, entry: FileEntry) -> bool:
        """Remove a file whose memories are no longer in the store, or in another file; False if there is no file."""
        old = self._folder.read(path)
        if old is None:
            return False
        if digest(old) not in entry.hashes and not (self._overwrite and is_memory_file(decoded(old))):
            raise InvalidInput("its memories are no longer in the store, and it was changed: import it, or remove it")
        self._folder.remove(path, over=old)
        return True

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
            yield line, "the store does not have this memory: import the folder first"
            continue
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
        links = [
            LinkRow(rows[public_id], ends[link.target], link.type, 0.0, 0)
            for link in fields.links
            if link.target in ends
        ]
        if len(links) < len(fields.links) or reader.links.missing(links):
            yield line, f"the store does not have a link of this memory: {_IMPORT_FIRST}"


def file_of(scope: str, month: str, part: int = 1) -> str:
    """The path of the file for a scope and a month such as "2026-03", or of one part of it.

    A segment that is not lower case, or has characters besides letters, digits, `_` and `-`, is simplified and gets a
    hash of itself: no two scopes share a folder, on any file system.
    """
    name = f"{month}.md" if part == 1 else f"{month}-part{part}.md"
    return "/".join([*(_folder_name(segment) for segment in scope.split("/") if segment), name])


def _folder_name(segment: str) -> str:
    plain = _UNSAFE.sub("-", unicodedata.normalize("NFC", segment).casefold())[:_MAX_NAME_CHARS]
    if plain == segment:
        return plain
    return f"{plain}~{hashlib.sha256(segment.encode()).hexdigest()[:8]}"


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


def _rendered(path: str, month: Month, records: list[Record], joined: Joined, base: str) -> _File:
    scope = scope_within(month.scope, base)
    sections = [(record.created_at, fields_of(record, joined), record.text) for record in records]
    data = render_file(scope, month.month, sections).encode()
    digests = {fields.id or "": content_digest(changeable_fields(scope, fields, text)) for _, fields, text in sections}
    return _File(path, data, FileEntry((digest(data),), scope, digests))


def _covers(filter: Filter, entry: FileEntry) -> bool:
    scope = join_scopes(filter.base, entry.scope) or "/"
    return not filter.scopes or any(scope == selected or scope.startswith(selected + "/") for selected in filter.scopes)
