"""Export to a folder of Markdown, one file per scope and month; no file with unknown content is replaced."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, field

from recollect.checks import check_time, join_scopes, to_datetime
from recollect.engine import Engine
from recollect.errors import InvalidInput
from recollect.exchange.folder import Changed, Folder, digest
from recollect.exchange.lines import scope_within
from recollect.exchange.manifest import (
    FileEntry,
    FolderManifest,
    changeable_fields,
    content_digest,
    fields_of,
    store_identity,
)
from recollect.exchange.markdown import MemoryFile, decoded, is_memory_file, parse_file, render_file
from recollect.records import Link, Record
from recollect.reports import Exported, FileTrouble
from recollect.store.protocol import Reader
from recollect.store.values import Month

if TYPE_CHECKING:
    from recollect.filters import Filter

__all__ = ["derived_id", "export_folder", "file_of"]

Progress = Callable[[int, int | None], None]
_PLAIN = re.compile(r"[^\w-]+")
_MAX_NAME_CHARS = 60
FILE_CHARS = 2_000_000
"""A file has at most so many characters, unless it has a single memory."""
_OTHER_CHARS = 400
_FETCHED_TOGETHER = 1_000


class _File(Struct):
    """A file to write: what it replaces, its content, and its manifest entry."""

    path: str
    old: bytes | None
    data: bytes
    entry: FileEntry


class _Plan(Struct):
    """What an export will do: files to write, files that are up to date already, and conflicts."""

    known: dict[str, FileEntry]
    files: list[_File] = field(default_factory=list)
    current: dict[str, FileEntry] = field(default_factory=dict)
    conflicts: list[FileTrouble] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    records: int = 0


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
        return _export(engine, folder, chosen, overwrite, on_progress)


def _export(engine: Engine, folder: Folder, chosen: Filter, overwrite: bool, on_progress: Progress | None) -> Exported:
    base = chosen.base
    known = FolderManifest(folder, store_identity(engine), base)
    plan = _Plan(known.files)
    with engine.store.read() as reader:
        months = reader.records.months(chosen)
        total = sum(len(month.row_ids) for month in months)
        links: dict[str, list[Link]] = {}
        for link in reader.links.between(chosen, chunks=False):
            links.setdefault(link.source, []).append(link)
        for month in months:
            for path, records in _files_of(reader, month, base):
                _add(plan, reader, folder, path, _rendered(month, records, links, base), base, overwrite)
                plan.records += len(records)
                if on_progress is not None:
                    on_progress(plan.records, total)
    left = [path for path, entry in known.files.items() if path not in plan.paths and _covers(chosen, entry)]
    return _carry_out(folder, known, plan, left, overwrite=overwrite)


def _add(
    plan: _Plan,
    reader: Reader,
    folder: Folder,
    path: str,
    rendered: tuple[bytes, FileEntry],
    base: str,
    overwrite: bool,
) -> None:
    """Plan one file."""
    data, entry = rendered
    plan.paths.add(path)
    try:
        old = folder.read(path)
        if old == data:
            plan.current[path] = entry
        elif conflict := _conflict(reader, path, old, entry, plan.known.get(path), base, overwrite):
            plan.conflicts.append(conflict)
        else:
            plan.files.append(_File(path, old, data, entry))
    except InvalidInput as reason:
        plan.conflicts.append(FileTrouble(path=path, reason=str(reason)))


def _carry_out(folder: Folder, known: FolderManifest, plan: _Plan, left: list[str], *, overwrite: bool) -> Exported:
    """Write what is planned, and remove the files that are `left` without memories."""
    entries = {**known.files, **plan.current}
    # The manifest is written first: files of an export that is killed are known to the next one.
    either = {
        file.path: FileEntry(
            (*file.entry.hashes, *([] if file.old is None else [digest(file.old)])),
            file.entry.scope, file.entry.memories,
        )
        for file in plan.files
    }  # fmt: skip
    known.write({**entries, **either})
    written, removed = [], []
    for file in plan.files:
        if conflict := _written(folder, file):
            plan.conflicts.append(conflict)
        else:
            written.append(file.path)
            entries[file.path] = file.entry
    for path in left:
        try:
            if _removed(folder, path, entries[path], overwrite=overwrite):
                removed.append(path)
            del entries[path]
        except InvalidInput as reason:
            plan.conflicts.append(FileTrouble(path=path, reason=str(reason)))
    known.write(entries)
    return Exported(
        records=plan.records, written=tuple(written), unchanged=len(plan.current), removed=tuple(removed),
        conflicts=tuple(plan.conflicts),
    )  # fmt: skip


def file_of(scope: str, month: str, part: int = 1) -> str:
    """The path of the file for a scope and a month such as "2026-03", or of one part of it.

    A segment that is not lower case, or has characters besides letters, digits, `_` and `-`, is simplified and gets a
    hash of itself: no two scopes share a folder, on any file system.
    """
    name = f"{month}.md" if part == 1 else f"{month}-part{part}.md"
    return "/".join([*(_folder_name(segment) for segment in scope.split("/") if segment), name])


def derived_id(base: str, scope: str, context: str | None, text: str) -> str:
    """The id of a memory that was written by hand: the same at each import while its text is unchanged.

    It depends on the scope `base` of the handle, so that it reveals nothing about other scopes.
    """
    key = "\x00".join((join_scopes(base, scope) or "/", context or "", text))
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


def _rendered(month: Month, records: list[Record], links: dict[str, list[Link]], base: str) -> tuple[bytes, FileEntry]:
    """The file of these memories of a month, and its entry."""
    scope = scope_within(month.scope, base)
    sections = [(record.created_at, fields_of(record, links.get(record.id, [])), record.text) for record in records]
    data = render_file(scope, month.month, sections).encode()
    digests = {fields.id or "": content_digest(changeable_fields(scope, fields, text)) for _, fields, text in sections}
    return data, FileEntry((digest(data),), scope, digests)


def _conflict(
    reader: Reader,
    path: str,
    old: bytes | None,
    entry: FileEntry,
    before: FileEntry | None,
    base: str,
    overwrite: bool,
) -> FileTrouble | None:
    """Why a file may not be replaced; None where the store has all of it, or `overwrite` allows it."""
    if old is None or (before is not None and digest(old) in before.hashes):
        return None
    text = decoded(old)
    if not is_memory_file(text):
        return FileTrouble(path=path, reason="it is not a file of memories: move it, or export to another folder")
    if overwrite:
        return None
    file = parse_file(text)
    for line, reason in file.problems:
        return FileTrouble(path=path, line=line, reason=reason)
    return _unknown(reader, path, file, before, base) or _taken_out(path, file, entry, before, base)


def _unknown(reader: Reader, path: str, file: MemoryFile, before: FileEntry | None, base: str) -> FileTrouble | None:
    """The first memory of a file that the store does not have, or has otherwise."""
    ids = _ids(file, base)
    rows = reader.records.find_ids(ids, base)
    records = reader.records.by_row_ids(list(rows.values()))
    ends = reader.records.find_ids([link.target for section in file.sections for link in section.fields.links], base)
    seen: set[str] = set()
    for public_id, section in zip(ids, file.sections, strict=True):
        if public_id in seen:
            return FileTrouble(
                path=path, line=section.line,
                reason="this memory is in the file twice: remove one, or the id of one if it is another memory",
            )  # fmt: skip
        seen.add(public_id)
        if public_id not in rows:
            return FileTrouble(
                path=path, line=section.line, reason="the store does not have this memory: import the folder first"
            )
        record = records[rows[public_id]]
        stored = content_digest(changeable_fields(scope_within(record.scope, base), fields_of(record, []), record.text))
        now = content_digest(changeable_fields(file.scope, section.fields, section.text))
        if now != stored and (before is None or before.memories.get(public_id) != now):
            return FileTrouble(
                path=path, line=section.line,
                reason="this memory differs from the store: import the folder first, or export with overwrite",
            )  # fmt: skip
        created = check_time(section.fields.created_at, "created_at")
        if created is not None and to_datetime(created) != record.created_at:
            return FileTrouble(
                path=path, line=section.line, reason="created_at cannot be changed: undo it, or export with overwrite"
            )
        targets = [(ends.get(link.target), link.type) for link in section.fields.links]
        known = [(rows[public_id], target, type, 0.0, 0) for target, type in targets if target is not None]
        if len(known) < len(targets) or reader.links.missing(known):
            return FileTrouble(
                path=path, line=section.line,
                reason="the store does not have a link of this memory: import the folder first, or export with "
                "overwrite",
            )  # fmt: skip
    return None


def _ids(file: MemoryFile, base: str) -> list[str]:
    return [
        section.fields.id or derived_id(base, file.scope, section.fields.context, section.text)
        for section in file.sections
    ]


def _taken_out(
    path: str, file: MemoryFile, entry: FileEntry, before: FileEntry | None, base: str
) -> FileTrouble | None:
    """That memories were removed from a file which the store still has."""
    held = set(_ids(file, base))
    gone = [] if before is None else [each for each in before.memories if each in entry.memories and each not in held]
    if not gone:
        return None
    return FileTrouble(
        path=path,
        reason=f"{len(gone)} of its memories were removed ({gone[0]}): import the folder, which lists them and can "
        "forget them, or export with overwrite",
    )


def _written(folder: Folder, file: _File) -> FileTrouble | None:
    try:
        folder.write(file.path, file.data, over=file.old)
    except Changed:
        return FileTrouble(path=file.path, reason="it was changed while the export ran: run it again")
    except InvalidInput as reason:
        return FileTrouble(path=file.path, reason=str(reason))
    return None


def _removed(folder: Folder, path: str, entry: FileEntry, *, overwrite: bool) -> bool:
    """Remove a file whose memories are no longer in the store, or in another file; False where there is no file.

    Raises InvalidInput where it has changed since.
    """
    old = folder.read(path)
    if old is None:
        return False
    if digest(old) not in entry.hashes and not (overwrite and is_memory_file(decoded(old))):
        raise InvalidInput("its memories are no longer in the store, and it was changed: import it, or remove it")
    try:
        folder.remove(path, over=old)
    except Changed:
        raise InvalidInput("it was changed while the export ran: run it again") from None
    return True


def _covers(chosen: Filter, entry: FileEntry) -> bool:
    """Whether the filter covers the scope of a file."""
    scope = join_scopes(chosen.base, entry.scope) or "/"
    return not chosen.scopes or any(scope == each or scope.startswith(each + "/") for each in chosen.scopes)
