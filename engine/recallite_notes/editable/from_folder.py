"""Import of a folder of Markdown: exported memories come back, and edits of the files become updates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import structs

from recallite.engine import Engine
from recallite.errors import InvalidInput, RecalliteError
from recallite.model.checks import check_scope, check_time, now_us, to_datetime
from recallite.model.records import Record
from recallite.model.reports import FileTrouble, Restored
from recallite.remember import change
from recallite.remember.supersession import row_id
from recallite.store.store import Progress
from recallite.store.transaction import Writer
from recallite.system.tracing import traced
from recallite.transfer.importing import Batch
from recallite.transfer.line_types import Incoming, LinkLine, SupersessionLine, written_time
from recallite.transfer.naming import name_memories
from recallite.transfer.supersessions import check_supersession, put_supersession
from recallite_notes.editable.manifest import FileEntry, FolderManifest, store_identity
from recallite_notes.editable.markdown import (
    Fields,
    MemoryFile,
    Section,
    SupersededBy,
    decoded,
    is_memory_file,
    parse_file,
)
from recallite_notes.editable.safe_folder import OWN, Folder, digest
from recallite_notes.editable.sections import (
    changeable_fields,
    content_digest,
    ids_of,
    known_supersessions,
    moves_creation,
    stored_fields,
    unstored_changes,
)

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
    and the memory is listed as a problem; with `overwrite` the file wins. A memory that its file no longer has is
    missing, and forgotten with `forget_missing`. Files are not changed, and other Markdown in the folder is ignored.
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
        self._places: dict[str, tuple[str, int]] = {}
        self._links: list[tuple[str, int, LinkLine]] = []
        self._superseded: list[tuple[str, int, str, SupersededBy]] = []
        self._unread: set[str] = set()
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
        """Read one file."""
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
                else:
                    self._batch.add(_incoming(public_id, file.scope, section), section.line)
                digests[public_id] = content
                links = [LinkLine(source=public_id, **structs.asdict(link)) for link in section.fields.links]
                self._links += [(path, section.line, link) for link in links]
                self._superseded += [(path, section.line, public_id, entry) for entry in section.fields.superseded_by]
            if self._batch.full():
                self._batch.write()
        return digests

    def _with_ids(self, path: str, file: MemoryFile) -> dict[str, Section]:
        """The sections of a file by the ids of their memories in the store."""
        sections = {}
        file_ids = ids_of(file, self._base)
        with self._engine.store.read() as reader:
            names = name_memories(reader, file_ids, self._base)
        for section, file_id in zip(file.sections, file_ids, strict=True):
            public_id = names[file_id]
            if public_id in self._places:
                other, line = self._places[public_id]
                self._trouble(
                    path, section.line, f"the memory {public_id} is in {other}:{line} already: remove one of them, "
                    "or the id here if it is another memory",
                )  # fmt: skip
                continue
            self._places[public_id] = path, section.line
            sections[public_id] = section
        return sections

    def _compare(self, record: Record, path: str, scope: str, section: Section) -> None:
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
            links=self._batch.linked, missing=tuple(missing), forgotten=forgotten, problems=tuple(self._problems),
        )  # fmt: skip

    def _link(self) -> None:
        """Make the links whose two ends are stored."""
        ends = {end for *_, link in self._links for end in (link.source, link.target)}
        with self._engine.store.read() as reader:
            names = name_memories(reader, ends, self._base)
            stored = reader.records.find_ids(list(names.values()), self._base)
        for path, line, link in self._links:
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
                with self._reporting(path, line):
                    if (old, names[entry.new], check_time(entry.known_from, "known_from")) not in known:
                        stated = SupersessionLine(old=old, **self._completed(writer, entry, names[entry.new]))
                        put_supersession(writer, stated, check_supersession(stated), self._base)

    def _completed(self, writer: Writer, entry: SupersededBy, new: str) -> dict[str, Any]:
        fields = structs.asdict(entry)
        if entry.holds_from is None:
            successor = writer.records.get(row_id(writer, new, self._base))
            fields["holds_from"] = written_time(successor.valid_from or successor.created_at)
        if entry.known_from is None:
            fields["known_from"] = written_time(to_datetime(now_us()))
        return fields

    def _missing(self) -> list[str]:
        """Stored memories that a file had at the last export or import, and that no file has now.

        Files that could not be read in full are not counted: the memory may still be there.
        """
        gone = [
            public_id
            for path, entry in self._known.files.items()
            if path not in self._unread
            for public_id in entry.memories
            if public_id not in self._places
        ]
        with self._engine.store.read() as reader:
            return sorted(reader.records.find_ids(gone, self._base))


def _printable(text: str) -> str:
    """A text in which bytes of file names that are not characters are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def _incoming(public_id: str, scope: str, section: Section) -> Incoming:
    fields = section.fields
    values = {name: getattr(fields, name) for name in _FIELDS_OF_RECORDS}
    return Incoming(
        **{**values, "id": public_id, "tags": fields.tags or (), "updated_at": fields.updated_at or fields.created_at},
        text=section.text, scope=scope,
    )  # fmt: skip
