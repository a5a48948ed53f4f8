"""Export to a folder of Markdown, one file per scope and month; no file with unknown content is replaced."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model.checks import check_time, join_scopes, to_datetime
from recallite.model.records import Record
from recallite.model.reports import Exported, FileTrouble
from recallite.notes.editable.manifest import (
    FileEntry,
    FolderManifest,
    Joined,
    changeable_fields,
    content_digest,
    fields_of,
    known_supersessions,
    store_identity,
    stored_fields,
)
from recallite.notes.editable.markdown import MemoryFile, Section, decoded, is_memory_file, parse_file, render_file
from recallite.notes.editable.safe_folder import Changed, Folder, digest
from recallite.store.protocol import Progress, Reader
from recallite.store.values import LinkRow, Month
from recallite.system.tracing import traced
from recallite.transfer.line_types import scope_within

if TYPE_CHECKING:
    from recallite.model.filters import Filter


_PLAIN = re.compile(r"[^\w-]+")
_MAX_NAME_CHARS = 60
FILE_CHARS = 2_000_000
"""A file has at most so many characters, unless it has a single memory."""
_OTHER_CHARS = 400
_FETCHED_TOGETHER = 1_000
_CHANGED = "it was changed while the export ran: run it again"


class _File(Struct):
    """A file to write: what it replaces, its content, and its manifest entry."""

    path: str
    old: bytes | None
    data: bytes
    entry: FileEntry


@traced("export_folder", lambda done: {"memories": done.records})
def export_folder(
    engine: Engine,
    folder: Folder,
    chosen: Filter,
    *,
    overwrite: bool = False,
    on_progress: Progress | None = None,
) -> Exported:
    """Write the memories that a filter admits, their scopes relative to its base, and remove files left without any.

    A file that differs from the store (a memory changed, added or removed since the last export or import) is a
    conflict and is kept, as is any file without memories; with `overwrite` only the latter. Chunks of documents are not
    exported. `on_progress(done, total)` counts memories.
    """
    with folder.locked():
        folder.sweep()
        run = _Export(folder, FolderManifest(folder, store_identity(engine), chosen.base), chosen.base, overwrite)
        with engine.store.read() as reader:
            run.plan(reader, chosen, on_progress)
        return run.carry_out()


class _Export:
    """One export: the files to write, those that are up to date already, those left without memories, and conflicts."""

    def __init__(self, folder: Folder, known: FolderManifest, base: str, overwrite: bool) -> None:
        self._folder, self._known, self._base, self._overwrite = folder, known, base, overwrite
        self._files: list[_File] = []
        self._current: dict[str, FileEntry] = {}
        self._left: list[str] = []
        self._conflicts: list[FileTrouble] = []
        self._records = 0

    def plan(self, reader: Reader, chosen: Filter, on_progress: Progress | None) -> None:
        """Compare the memories with the files of the folder."""
        months = reader.records.months(chosen)
        total = sum(len(month.row_ids) for month in months)
        joined = Joined.of(reader, chosen)
        paths = set()
        for month in months:
            for path, records in _files_of(reader, month, self._base):
                paths.add(path)
                self._add(reader, path, *_rendered(month, records, joined.with_repeated(reader, records), self._base))
                self._records += len(records)
                if on_progress is not None:
                    on_progress(self._records, total)
        self._left = [path for path, entry in self._known.files.items() if path not in paths and _covers(chosen, entry)]

    def _add(self, reader: Reader, path: str, data: bytes, entry: FileEntry) -> None:
        try:
            old = self._folder.read(path)
            if old == data:
                self._current[path] = entry
            elif conflict := self._conflict(reader, old, entry, self._known.files.get(path)):
                self._refuse(path, *conflict)
            else:
                self._files.append(_File(path, old, data, entry))
        except InvalidInput as reason:
            self._refuse(path, None, reason)

    def _refuse(self, path: str, line: int | None, reason: object) -> None:
        self._conflicts.append(FileTrouble(path=path, line=line, reason=str(reason)))

    def carry_out(self) -> Exported:
        """Write what is planned, and remove the files without memories."""
        entries = {**self._known.files, **self._current}
        # The manifest is written first: files of an export that is killed are known to the next one.
        either = {
            file.path: FileEntry(
                (*file.entry.hashes, *([] if file.old is None else [digest(file.old)])),
                file.entry.scope, file.entry.memories,
            )
            for file in self._files
        }  # fmt: skip
        self._known.write({**entries, **either})
        written, removed = [], []
        for file in self._files:
            try:
                self._folder.write(file.path, file.data, over=file.old)
                written.append(file.path)
                entries[file.path] = file.entry
            except Changed:
                self._refuse(file.path, None, _CHANGED)
            except InvalidInput as reason:
                self._refuse(file.path, None, reason)
        for path in self._left:
            try:
                if self._removed(path, entries[path]):
                    removed.append(path)
                del entries[path]
            except InvalidInput as reason:
                self._refuse(path, None, reason)
        self._known.write(entries)
        return Exported(
            records=self._records, written=tuple(written), unchanged=len(self._current), removed=tuple(removed),
            conflicts=tuple(self._conflicts),
        )  # fmt: skip

    def _removed(self, path: str, entry: FileEntry) -> bool:
        """Remove a file whose memories are no longer in the store, or in another file; False where there is no file.

        Raises InvalidInput where it has changed since.
        """
        old = self._folder.read(path)
        if old is None:
            return False
        if digest(old) not in entry.hashes and not (self._overwrite and is_memory_file(decoded(old))):
            raise InvalidInput("its memories are no longer in the store, and it was changed: import it, or remove it")
        try:
            self._folder.remove(path, over=old)
        except Changed:
            raise InvalidInput(_CHANGED) from None
        return True

    def _conflict(
        self, reader: Reader, old: bytes | None, entry: FileEntry, before: FileEntry | None
    ) -> tuple[int | None, str] | None:
        """Line and reason why a file may not be replaced; None where the store has all of it, or `overwrite` allows it.

        Raises InvalidInput where the whole file is the reason.
        """
        if old is None or (before is not None and digest(old) in before.hashes):
            return None
        text = decoded(old)
        if not is_memory_file(text):
            raise InvalidInput("it is not a file of memories: move it, or export to another folder")
        if self._overwrite:
            return None
        file = parse_file(text)
        if file.problems:
            return file.problems[0]
        ids = ids_of(file, self._base)
        if unknown := self._unknown(reader, file, ids, before):
            return unknown
        stored = entry.memories.keys() - set(ids)
        if gone := [] if before is None else [each for each in before.memories if each in stored]:
            raise InvalidInput(
                f"{len(gone)} of its memories were removed ({gone[0]}): import the folder, which lists them and can "
                "forget them, or export with overwrite"
            )
        return None

    def _unknown(
        self, reader: Reader, file: MemoryFile, ids: list[str], before: FileEntry | None
    ) -> tuple[int, str] | None:
        """The first memory of a file that the store does not have, or has otherwise: its line, and how it differs."""
        rows = reader.records.find_ids(ids, self._base)
        records = reader.records.by_row_ids(list(rows.values()))
        targets = [link.target for section in file.sections for link in section.fields.links]
        ends = reader.records.find_ids(targets, self._base)
        superseded = (
            known_supersessions(reader, self._base)
            if any(section.fields.superseded_by for section in file.sections)
            else set()
        )
        seen: set[str] = set()

        def difference(public_id: str, section: Section) -> str | None:
            if public_id in seen:
                return "this memory is in the file twice: remove one, or the id of one if it is another memory"
            seen.add(public_id)
            if public_id not in rows:
                return "the store does not have this memory: import the folder first"
            record, fields = records[rows[public_id]], section.fields
            now = content_digest(changeable_fields(file.scope, fields, section.text))
            if now != content_digest(stored_fields(record, self._base)) and (
                before is None or before.memories.get(public_id) != now
            ):
                return "this memory differs from the store: import the folder first, or export with overwrite"
            created = check_time(fields.created_at, "created_at")
            if created is not None and to_datetime(created) != record.created_at:
                return "created_at cannot be changed: undo it, or export with overwrite"
            if any(
                (public_id, each.new, check_time(each.known_from, "known_from")) not in superseded
                for each in fields.superseded_by
            ):
                return (
                    "the store does not have what supersedes this memory: import the folder first, or export with "
                    "overwrite"
                )
            known = [
                LinkRow(rows[public_id], ends[link.target], link.type, 0.0, 0)
                for link in fields.links
                if link.target in ends
            ]
            if len(known) < len(fields.links) or reader.links.missing(known):
                return (
                    "the store does not have a link of this memory: import the folder first, or export with overwrite"
                )
            return None

        for public_id, section in zip(ids, file.sections, strict=True):
            if reason := difference(public_id, section):
                return section.line, reason
        return None


def file_of(scope: str, month: str, part: int = 1) -> str:
    """The path of the file for a scope and a month such as "2026-03", or of one part of it.

    A segment that is not lower case, or has characters besides letters, digits, `_` and `-`, is simplified and gets a
    hash of itself: no two scopes share a folder, on any file system.
    """
    name = f"{month}.md" if part == 1 else f"{month}-part{part}.md"
    return "/".join([*(_folder_name(segment) for segment in scope.split("/") if segment), name])


def ids_of(file: MemoryFile, base: str) -> list[str]:
    """The id of each memory of a file; one that was written by hand gets the same at each import, while its text is
    unchanged.

    Such an id depends on the scope `base` of the handle, so that it reveals nothing about other scopes.
    """
    scope = join_scopes(base, file.scope) or "/"
    return [section.fields.id or _derived_id(scope, section) for section in file.sections]


def _derived_id(scope: str, section: Section) -> str:
    key = "\x00".join((scope, section.fields.context or "", section.text))
    return f"md-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def _folder_name(segment: str) -> str:
    plain = _PLAIN.sub("-", unicodedata.normalize("NFC", segment).casefold())[:_MAX_NAME_CHARS]
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
        found = reader.records.by_row_ids(row_ids)
        for row_id in row_ids:
            chars = len(found[row_id].text) + _OTHER_CHARS
            if records and size + chars > FILE_CHARS:
                yield file_of(scope, month.month, part), records
                part, size, records = part + 1, 0, []
            records.append(found[row_id])
            size += chars
    yield file_of(scope, month.month, part), records


def _rendered(month: Month, records: list[Record], joined: Joined, base: str) -> tuple[bytes, FileEntry]:
    """The file of these memories of a month, and its entry."""
    scope = scope_within(month.scope, base)
    sections = [(record.created_at, fields_of(record, joined), record.text) for record in records]
    data = render_file(scope, month.month, sections).encode()
    digests = {fields.id or "": content_digest(changeable_fields(scope, fields, text)) for _, fields, text in sections}
    return data, FileEntry((digest(data),), scope, digests)


def _covers(chosen: Filter, entry: FileEntry) -> bool:
    """Whether the filter covers the scope of a file."""
    scope = join_scopes(chosen.base, entry.scope) or "/"
    return not chosen.scopes or any(scope == each or scope.startswith(each + "/") for each in chosen.scopes)
