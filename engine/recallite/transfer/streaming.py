"""Export and import: memories, links and documents streamed out of one read transaction, and into one per batch.

An import checks line by line.
"""

from __future__ import annotations

import csv
import re
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from datetime import datetime
from typing import IO, Any

import msgspec
from msgspec import Struct, structs

from recallite.embedding.handle import Identity
from recallite.engine import Engine
from recallite.errors import InvalidInput, InvalidItem, RecalliteError
from recallite.model import checks
from recallite.model.authority import speaking_as
from recallite.model.checks import check_vectors
from recallite.model.filters import CHUNK_KIND, Filter
from recallite.model.records import Link, Record
from recallite.model.reports import Imported
from recallite.model.settings import WritePolicy
from recallite.remember.embed import are_unit, embed_rows, identity_for, insert_rows
from recallite.remember.pending import catch_up, start_comparing, waits_under
from recallite.remember.prepare import check_expiry, content_id, is_to_come, metadata_json, prepare
from recallite.remember.relations import LINK_TYPES, check_pair, check_reason
from recallite.store.columns import Row, RowColumns
from recallite.store.sql.record_reading import Version
from recallite.store.sql.relations import LinkRow, Occurrence, Supersession
from recallite.store.sql.vectors import EmbedderRow
from recallite.store.store import Progress
from recallite.store.transaction import Reader, Writer
from recallite.system.messages import shown
from recallite.system.telemetry import traced
from recallite.system.turnstile import StepSize
from recallite.transfer import lines

# A line may spell each character of a text as two escapes of six, and carry a megabyte of metadata and vectors.
_CHARS_PER_CHARACTER = 12
_OTHER_CHARS = 16_000_000
_MOST_WARNINGS = 1_000
# A batch of long texts ends before its items are all there.
_MAX_BATCH_CHARS = 16_000_000


@traced("import", lambda done: {"memories": done.records, "skipped": done.skipped})
def import_(
    engine: Engine,
    source: lines.Place,
    *,
    base: str,
    sight: str,
    format: str | None,
    batch_size: int | None,
    whole: bool,
    on_progress: Progress | None,
) -> Imported:
    """Store the memories of a file or text stream below the scope `base`; `on_progress(done, total)` counts lines.

    `sight` is the scope of the handle. A memory whose id exists there is skipped; one whose id exists elsewhere in the
    store silently gets another id. A memory without an id gets that of its content (`content_id`), so an import that
    was stopped goes on when it is run again. A `created_at` that is to come is taken as now, with a warning.

    InvalidItem names the line that stopped the import; batches before it are kept. Without a `batch_size` a batch takes
    10 to 20 ms to store; the `whole` may be one. A memory and its versions are in one batch.
    """
    line_format = lines.format_of(source, format)
    limit = engine.settings.max_text_chars
    with lines.reading(source, store=engine.store.path, count=on_progress is not None) as (stream, total):
        source_lines = lines.Lines(stream, max_chars=_CHARS_PER_CHARACTER * limit + _OTHER_CHARS)
        entries = lines.parse(line_format, source_lines, max_text_chars=limit)
        batch = Batch(engine, base, sight)
        while True:
            try:
                entry = next(entries, None)
                batch.add(entry, source_lines.number)
            except RecalliteError as reason:
                raise _at_line(source_lines.number, batch.stored, reason) from reason
            if entry is None or (not whole and batch.full(batch_size)):
                batch.write()
                if on_progress is not None:
                    on_progress(source_lines.number, total)
            if entry is None:
                start_comparing(engine)
                return Imported(
                    records=batch.stored, skipped=batch.skipped, links=batch.linked, warnings=tuple(batch.warnings),
                    warnings_total=batch.warnings_total,
                )  # fmt: skip


class _Item(Struct):
    """A version to store: its row, the id in the file, the vector given with it, or the vectors of an export."""

    line: int
    row: Row
    given_id: str
    vector: object
    parts: tuple[bytes, ...]


class Batch:
    """The entries of one transaction, and the counts of earlier ones."""

    def __init__(self, engine: Engine, base: str, sight: str) -> None:
        self._engine, self._step = engine, StepSize(first=64, least=32, rests=False)
        self._base, self._sight = base, sight
        self._embedder: lines.Embedder | None = None
        self._versions: list[_Item] = []  # closed versions, before the open one
        self._memories: list[list[_Item]] = []  # of each the closed versions, then the open one
        self._links: list[tuple[int, lines.LinkLine]] = []
        self._supersessions: list[tuple[int, lines.SupersessionLine, Supersession]] = []
        self._documents: list[IncomingDocument] = []
        self._chars = 0
        self.stored = self.skipped = self.linked = self.warnings_total = 0
        self.warnings: list[str] = []

    def full(self, batch_size: int | None = None) -> bool:
        """Whether the batch should be written; by the time that one takes if it may have any size."""
        return len(self) >= (batch_size or self._step.size) or self._chars >= _MAX_BATCH_CHARS

    def __len__(self) -> int:
        return len(self._memories) + len(self._links) + len(self._supersessions) + len(self._documents)

    def add(self, entry: lines.Entry | None, line: int) -> None:
        """Check one entry and keep it; None is the end."""
        match entry:
            case lines.Incoming():
                item = self._item(entry, line)
                self._chars += len(item.row.text)
                if self._versions and item.row.public_id != self._versions[0].row.public_id:
                    self._check_versions_complete()
                self._versions.append(item)
                if item.row.recorded_until is None:
                    self._memories.append(self._versions)
                    self._versions = []
                return
            case lines.Header():
                self._embedder = entry.embedder
            case lines.LinkLine():
                check_link(entry)
                self._links.append((line, entry))
            case lines.SupersessionLine():
                self._supersessions.append((line, entry, check_supersession(entry)))
            case lines.DocumentLine():
                self._documents.append(check_document(entry, self._base))
        self._check_versions_complete()

    def _check_versions_complete(self) -> None:
        if self._versions:
            waiting = self._versions[-1]
            raise InvalidInput(
                f"the version of {waiting.row.public_id} in line {waiting.line} is closed (recorded_until), "
                "and no open version follows it"
            )

    def _item(self, entry: lines.Incoming, line: int) -> _Item:
        settings, entry_in_file = self._engine.settings, entry
        created_at = checks.check_time(entry.created_at, "created_at")
        if created_at is not None and is_to_come(created_at, checks.now_us()):
            self.warnings_total += 1
            if len(self.warnings) < _MOST_WARNINGS:
                self.warnings.append(f"line {line}: created_at is {entry.created_at}, which is to come: taken as now")
            entry = structs.replace(entry, created_at=None)
        # A line that says whose word it is was exported: its source and context have had their say.
        with nullcontext() if entry.authority is None else speaking_as(entry.authority, declared=True):
            row = prepare(
                entry, base=self._base, max_text_chars=settings.max_text_chars, policy=settings.write_policy,
                exported=entry.id is not None,
            )  # fmt: skip
        if entry.id is None:
            row.public_id = content_id(entry_in_file, self._base)
        row.updated_at = checks.time_or(entry.updated_at, "updated_at", row.updated_at)
        row.recorded_from = checks.time_or(entry.recorded_from, "recorded_from", row.recorded_from)
        row.recorded_until = checks.check_time(entry.recorded_until, "recorded_until")
        row.valid_resolved |= checks.check_flag(entry.valid_resolved, "valid_resolved")
        if entry.expires_after is not None:
            moment, row.expires_after = check_expiry(entry.expires_after, checks.now_us())
            row.expires_at = moment if row.expires_at is None else row.expires_at
        if entry.base_importance is not None:
            row.base_importance = checks.check_unit(entry.base_importance, "base_importance")
        row.repeated = check_occurrences(entry.repeated, settings.max_text_chars, settings.write_policy)
        row.access_count = checks.check_count(entry.access_count, "access_count", minimum=0)
        row.accessed_at = checks.check_time(entry.accessed_at, "accessed_at")
        if row.access_count and row.accessed_at is None:
            row.accessed_at = row.updated_at
        if row.recorded_until is not None:
            if entry.id is None:
                raise InvalidInput("a closed version (recorded_until) needs the id of its memory")
            if row.recorded_until < row.recorded_from:
                raise InvalidInput("recorded_until is before recorded_from")
            row.access_count, row.accessed_at = 0, None
        if entry.vectors:
            check_parts(entry.vectors, self._embedder)
        return _Item(line, row, row.public_id, entry.vector, entry.vectors)

    def write(self) -> None:
        """Embed and store the batch, in one transaction: a turn of the background, before which others write."""
        engine, count = self._engine, len(self)
        if not count:  # after the last full one: what would fail here comes after all is stored
            return
        memories, links = self._memories, self._links
        supersessions, documents = self._supersessions, self._documents
        self._memories, self._links, self._supersessions, self._documents, self._chars = [], [], [], [], 0
        with engine.store.read() as reader:
            fresh = self._fresh(reader, memories)
        identity = self._embed([item for memory in fresh for item in memory])
        with engine.atomic(step=self._step) as writer:
            self._step.count = count
            fresh = self._fresh(writer, fresh)
            rows = [item.row for memory in fresh for item in memory]
            insert_rows(writer, [row for row in rows if row.named], identity)
            # What no export has an id for is compared as any write: its file says of nothing what it replaced.
            written = RowColumns.of(row for row in rows if not row.named)
            written.waits_under = waits_under(written, engine.write_policy)
            insert_rows(writer, written, identity)
            linked = self._write_links(writer, links)
            for line, entry, row in supersessions:
                try:
                    put_supersession(writer, entry, row, self._sight)
                except InvalidInput as reason:
                    raise _at_line(line, self.stored, reason) from reason
            for document in documents:
                put_document(writer, document, self._sight)
        engine.may_have_pending |= any(row.pending for row in rows)
        engine.may_have_uncompared |= written.waits_under is not None
        self.stored += len(fresh)
        self.skipped += len(memories) - len(fresh)
        self.linked += linked

    def _fresh(self, reader: Reader, memories: Sequence[list[_Item]]) -> list[list[_Item]]:
        """Memories with an id neither in the store nor earlier in the batch, with their new ids."""
        names = name_memories(reader, [memory[-1].given_id for memory in memories], self._sight)
        seen = {*reader.records.find_ids(list(names.values()), "/")}
        fresh = []
        for memory in memories:
            public_id = names[memory[-1].given_id]
            if public_id not in seen:
                seen.add(public_id)
                fresh.append(memory)
                for item in memory:
                    item.row.public_id = public_id
        return fresh

    def _embed(self, items: Sequence[_Item]) -> Identity | None:
        """Give each row its vectors: from the file if this store's embedder made them, else new ones."""
        engine = self._engine
        first = next((item for item in items if item.vector is not None), None)
        try:
            identity = identity_for(engine, None if first is None else first.vector)
        except InvalidInput as reason:
            raise _at_line(items[0].line if first is None else first.line, self.stored, reason) from reason
        if identity is None and self._embedder is not None and any(item.parts for item in items):
            identity = Identity(self._embedder.fingerprint, self._embedder.name, self._embedder.dimension)
        made_by = None if self._embedder is None else self._embedder.fingerprint
        keep = identity is not None and identity.fingerprint == made_by
        lacking = []
        for item in items:
            if keep and item.parts:
                item.row.vectors = item.parts
            elif item.vector is not None and identity is not None:
                try:
                    item.row.vectors = tuple(part.tobytes() for part in check_vectors(item.vector, identity.dimension))
                except RecalliteError as reason:
                    raise _at_line(item.line, self.stored, reason) from reason
            else:
                lacking.append(item.row)
        embed_rows(engine.embedder, lacking, [None] * len(lacking), identity)
        return identity

    def _write_links(self, writer: Writer, links: Sequence[tuple[int, lines.LinkLine]]) -> int:
        if not links:
            return 0
        ends = {end for _, link in links for end in (link.source, link.target)}
        names = name_memories(writer, ends, self._sight)
        ids = writer.records.find_ids(list(names.values()), self._sight)
        rows = []
        for line, link in links:
            for end in (link.source, link.target):
                if names[end] not in ids:
                    reason = InvalidInput(f"the link's end {shown(end)} is no memory here or in a line before")
                    raise _at_line(line, self.stored, reason)
            source, target = ids[names[link.source]], ids[names[link.target]]
            created_at = checks.time_or(link.created_at, "created_at", checks.now_us())
            rows.append(LinkRow(source, target, link.type, link.strength, created_at, link.reason))
        rows = writer.links.missing(rows)
        if rows:
            writer.links.put(rows)
        return len(rows)


def check_link(link: lines.LinkLine) -> None:
    """Refuse a link of an unknown type, or that cannot be stored."""
    if link.type not in LINK_TYPES:
        raise InvalidInput(f"type is {shown(link.type)}: use one of {', '.join(LINK_TYPES)}")
    checks.check_unit(link.strength, "strength")
    if link.source == link.target:
        raise InvalidInput(f"{shown(link.source)} cannot be linked to itself")
    for end in (link.source, link.target):
        checks.check_name(end, "a link's end")
    checks.check_time(link.created_at, "created_at")


def check_parts(parts: tuple[bytes, ...], embedder: lines.Embedder | None) -> None:
    """Refuse vectors that are not what an export has of this embedder."""
    if embedder is None:
        raise InvalidInput("the line has vectors, but no header before it says which embedder made them", "vector")
    for part in parts:
        if len(part) != 4 * embedder.dimension:
            raise InvalidInput(
                f"a vector has {len(part)} bytes: {embedder.dimension} float32 are {4 * embedder.dimension}", "vector"
            )
    if not are_unit(parts):
        raise InvalidInput("a vector is not of length 1: the line was changed or damaged", "vector")


def _at_line(number: int, stored: int, reason: RecalliteError) -> InvalidItem:
    return InvalidItem(number - 1, stored, reason, label=f"line {number}")


# Ids of imported memories: an import must not reveal ids that its handle cannot see.

_NAMESPACE = uuid.UUID("8f6b3b0a-58e5-5d1c-9d0e-6d1f3c5f7c11")


def name_memories(reader: Reader, ids: Collection[str], sight: str) -> dict[str, str]:
    """The id that each of these memories has, or will have, for a handle bound to the scope `sight`.

    It is the given one, unless a memory outside of `sight` has it: then it is another one, the same at every import.
    """
    names = {public_id: public_id for public_id in ids}
    if sight == "/":
        return names
    unsettled = list(names)
    while unsettled:
        every = [public_id for name in unsettled for public_id in (names[name], _another(names[name], sight))]
        visible = reader.records.find_ids(every, sight)
        taken = reader.records.find_ids(every, "/")
        next_round = []
        for name in unsettled:
            current, other = names[name], _another(names[name], sight)
            if current in visible or not (current in taken or other in visible):
                continue
            names[name] = other
            if other not in visible:
                next_round.append(name)
        unsettled = next_round
    return names


def _another(public_id: str, sight: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{sight}\n{public_id}"))


# Documents, supersessions and further times: checked when their line is read, and put when they are stored.

_HASH_BYTES = 32


class IncomingDocument(Struct, frozen=True):
    """A checked document of an import: its scope, and the columns of its row."""

    id: str
    scope: str
    source: str
    created_at: int
    columns: dict[str, Any]


def check_document(line: lines.DocumentLine, base: str) -> IncomingDocument:
    """The document of a line, as it will be stored. Raises InvalidInput."""
    try:
        digest = bytes.fromhex(line.content_hash)
    except ValueError:
        digest = b""
    if len(digest) != _HASH_BYTES:
        raise InvalidInput(f"content_hash is {shown(line.content_hash)}: give a SHA-256 in hexadecimal")
    now = checks.now_us()
    return IncomingDocument(
        id=checks.check_name(line.id, "id"),
        scope=checks.join_scopes(base, checks.check_scope(line.scope)) or "/",
        source=checks.check_name(line.source, "source"),
        created_at=checks.time_or(line.created_at, "created_at", now),
        columns={
            "title": None if line.title is None else checks.encodable(line.title, "title"),
            "media_type": checks.encodable(line.media_type, "media_type"),
            "content_hash": digest,
            "chunking": checks.encodable(line.chunking, "chunking"),
            "size_bytes": checks.check_count(line.size_bytes, "size_bytes", minimum=0),
            # What `stat` said is valid only on the machine of the export.
            "mtime_ns": None,
            "inode": None,
            "read_at": now,
            "metadata": metadata_json(checks.check_metadata(line.metadata)),
            "caller_metadata": metadata_json(checks.check_metadata(line.caller_metadata)),
            "problem": None,
            "updated_at": checks.time_or(line.updated_at, "updated_at", now),
        },
    )


def put_document(writer: Writer, document: IncomingDocument, sight: str) -> None:
    """Store a document that has chunks here, unless its source or its id has a document already."""
    public_id = document.id
    while writer.documents.with_id(public_id, "/") and not writer.documents.with_id(public_id, sight):
        public_id = _another(public_id, sight)  # as `name_memories` names memories
    if writer.documents.find(document.scope, document.source) or writer.documents.with_id(public_id, "/"):
        return
    columns = {**document.columns, "chunks": 0, "updated_at": document.created_at}
    writer.documents.put(document.scope, document.source, public_id, columns)
    row = writer.documents.find(document.scope, document.source)
    assert row is not None
    if chunks := len(writer.documents.chunks_of(row.source_id)):
        columns = {**document.columns, "chunks": chunks}  # created_at stays that of the first put
        writer.documents.put(document.scope, document.source, public_id, columns)
    else:
        writer.documents.delete([row])


def check_occurrences(
    repeated: Sequence[lines.OccurrenceLine], max_text_chars: int, policy: WritePolicy
) -> tuple[tuple[int, str | None], ...]:
    """The further times of a memory, checked, and redacted as `policy` says."""
    checked = []
    for occurrence in repeated:
        text = occurrence.text
        if text is not None:
            text = policy.clean(checks.check_text(text, max_text_chars, "repeated.text"))
        checked.append((checks.time_or(occurrence.at, "repeated.at", 0), text))
    return tuple(checked)


def check_supersession(entry: lines.SupersessionLine) -> Supersession:
    """A supersession of a file, checked; its ends are looked up when it is written."""
    for end in (entry.old, entry.new):
        checks.check_name(end, "an end of a supersession")
    holds_from, known_from = (checks.time_or(getattr(entry, name), name, 0) for name in ("holds_from", "known_from"))
    known_until = checks.check_time(entry.known_until, "known_until")
    reason, strength = check_reason(entry.reason), checks.check_unit(entry.strength, "strength")
    row = Supersession(0, 0, holds_from, known_from, known_until, reason, strength, entry.certain, entry.by_rule)
    if row.known_until is not None and row.known_until < row.known_from:
        raise InvalidInput("known_until is before known_from")
    return row


def put_supersession(writer: Writer, entry: lines.SupersessionLine, row: Supersession, sight: str) -> None:
    """Store a supersession between memories that are here by now, unless the store has it already."""
    names = name_memories(writer, {entry.old, entry.new}, sight)
    ids = writer.records.find_ids(list(names.values()), sight)
    for end in (entry.old, entry.new):
        if names[end] not in ids:
            raise InvalidInput(f"the end {shown(end)} is no memory here or in a line before")
    row = row._replace(old_id=ids[names[entry.old]], new_id=ids[names[entry.new]])
    if writer.supersessions.missing(row):
        check_pair(writer, row.old_id, row.new_id, standing=row.known_until is None)
        writer.supersessions.put([row])


# Export: versions, links, supersessions and documents streamed out of one read transaction.

_PROGRESS_EVERY = 500
# Whole runs of white space: those with a line break become one space.
_SPACE = re.compile(r"\s+")
_encode = msgspec.json.Encoder().encode


@traced("export", lambda count: {"memories": count})
def export(
    engine: Engine,
    target: lines.Place,
    filter: Filter,
    *,
    format: str | None,
    vectors: bool,
    on_progress: Progress | None,
) -> int:
    """Write the memories that a filter admits, their scopes relative to its base; returns how many.

    `on_progress(done, total)` counts memories.
    """
    line_format = lines.format_of(target, format)
    if filter.sessions:
        raise InvalidInput("messages of sessions are in no export: leave sessions out, or use store.backup or copy")
    with ExitStack() as opened:
        stream = opened.enter_context(lines.writing(target, store=engine.store.path))
        catch_up(engine)  # a file says what superseded what, not what waits to be compared
        reader = opened.enter_context(engine.store.read())
        embedder = reader.vectors.active_embedder()
        total = None if on_progress is None else reader.records.count(filter, 0, versions="open")
        with_vectors = embedder if vectors and line_format == "jsonl" else None
        done = 0

        def versions() -> Iterator[Version]:
            """Every version, with the accesses that are not written yet; open ones are counted."""
            nonlocal done
            for record, parts, repeated in reader.records.versions(filter, with_vectors):
                yield Version(engine.counted(record), parts, repeated)
                done += record.recorded_until is None
                if on_progress is not None and record.recorded_until is None and done % _PROGRESS_EVERY == 0:
                    on_progress(done, total)

        if line_format == "jsonl":
            for line in _json_lines(reader, filter, versions(), embedder):
                stream.write(_encode(line).decode() + "\n")
        elif line_format == "csv":
            _write_csv(stream, versions(), filter.base)
        else:
            for record, *_ in versions():
                if record.recorded_until is None:
                    stream.write(_SPACE.sub(_on_one_line, record.text.strip()) + "\n")
        if on_progress is not None:
            on_progress(done, total)
        return done


def _json_lines(
    reader: Reader, filter: Filter, versions: Iterator[Version], embedder: EmbedderRow | None
) -> Iterator[dict[str, Any]]:
    made_by = None if embedder is None else lines.Embedder(embedder.fingerprint, embedder.name, embedder.dimension)
    yield {"format": lines.FORMAT, "version": lines.VERSION, "embedder": made_by}
    for record, parts, repeated in versions:
        line = _fields(record, filter.base)
        if repeated:
            line["repeated"] = occurrence_lines(repeated)
        if parts:
            line["vectors"] = parts
        yield line
    for link in reader.links.between(filter):
        yield {"link": {"source": link.source, **link_fields(link)}}
    for pair in supersession_lines(reader, filter):
        yield {"supersession": pair}
    # The documents of the exported chunks; none if the filter has more than scopes and kinds.
    whole = filter.replaced(kinds=None).scopes_only and CHUNK_KIND in (filter.kinds or (CHUNK_KIND,))
    for scope in (filter.scopes or ("/",)) if whole else ():
        for row in reader.documents.in_scope(scope):
            yield {
                "document": lines.DocumentLine(
                    id=row.public_id, source=row.source, scope=lines.scope_within(row.scope, filter.base),
                    title=row.title, media_type=row.media_type, content_hash=row.content_hash.hex(),
                    chunking=row.chunking, size_bytes=row.size_bytes,
                    metadata=msgspec.json.decode(row.metadata) if row.metadata else None,
                    caller_metadata=msgspec.json.decode(row.caller_metadata) if row.caller_metadata else None,
                    created_at=lines.written_time(row.created_at), updated_at=lines.written_time(row.updated_at),
                )
            }  # fmt: skip


def _write_csv(stream: IO[str], versions: Iterator[Version], base: str) -> None:
    rows = csv.DictWriter(stream, lines.COLUMNS, extrasaction="ignore", lineterminator="\r\n")
    rows.writeheader()
    for record, *_ in versions:
        if record.recorded_until is None:
            row = _fields(record, base)
            tags = ";".join(record.tags)
            as_list = tags.startswith("[") or any(";" in tag or tag != tag.strip() for tag in record.tags)
            row["tags"] = _encode(record.tags).decode() if as_list else tags
            row["metadata"] = _encode(record.metadata).decode() if record.metadata else None
            row["pinned"] = "true" if record.pinned else "false"
            rows.writerow(row)


def _on_one_line(space: re.Match[str]) -> str:
    return " " if "\n" in space[0] or "\r" in space[0] else space[0]


def _fields(record: Record, base: str) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in lines.RECORD_FIELDS}
    times = {name: lines.written_time(value) for name, value in values.items() if isinstance(value, datetime)}
    return {**values, **times, "scope": lines.scope_within(record.scope, base)}


# What has lines of its own or is part of one, as in the files of `recallite_notes` too.


def link_fields(link: Link) -> dict[str, Any]:
    """The fields of a link as in files, without its source."""
    created_at = None if link.created_at is None else lines.written_time(link.created_at)
    return {"target": link.target, "type": link.type, "strength": link.strength, "created_at": created_at,
            "reason": link.reason}  # fmt: skip


def supersession_lines(reader: Reader, filter: Filter) -> Iterator[lines.SupersessionLine]:
    """The supersessions among the memories of an export, undone ones too."""
    for pair in reader.supersessions.between(filter):
        yield lines.SupersessionLine(
            pair.old, pair.new, lines.written_time(pair.holds_from), lines.written_time(pair.known_from),
            None if pair.known_until is None else lines.written_time(pair.known_until), pair.reason, pair.strength,
            bool(pair.certain), bool(pair.by_rule),
        )  # fmt: skip


def occurrence_lines(repeated: Sequence[Occurrence]) -> tuple[lines.OccurrenceLine, ...]:
    """The further times of a memory."""
    return tuple(lines.OccurrenceLine(lines.written_time(occurrence.at), occurrence.text) for occurrence in repeated)
