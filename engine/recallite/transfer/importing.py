"""Import: a stream of memories and links, a transaction a batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from msgspec import Struct, structs

from recallite.embedding.handle import Identity
from recallite.engine import Engine
from recallite.errors import InvalidInput, InvalidItem, RecalliteError
from recallite.model import checks
from recallite.model.authority import speaking_as
from recallite.model.checks import check_vectors
from recallite.model.reports import Imported
from recallite.remember.embed import are_unit, embed_rows, identity_for, insert_rows
from recallite.remember.pending import comparing_policies, start_comparing
from recallite.remember.prepare import check_expiry, content_id, is_to_come, prepare
from recallite.remember.relations import LINK_TYPES
from recallite.store.store import Progress
from recallite.store.transaction import Reader, Writer
from recallite.store.values import LinkRow, Row, Supersession
from recallite.system.messages import shown
from recallite.system.telemetry import traced
from recallite.system.turnstile import StepSize
from recallite.transfer.lines import (
    DocumentLine,
    Embedder,
    Entry,
    Header,
    Incoming,
    IncomingDocument,
    Lines,
    LinkLine,
    Place,
    SupersessionLine,
    check_document,
    check_occurrences,
    check_supersession,
    format_of,
    name_memories,
    parse,
    put_document,
    put_supersession,
    reading,
)

# A line may spell each character of a text as two escapes of six, and carry a megabyte of metadata and vectors.
_CHARS_PER_CHARACTER = 12
_OTHER_CHARS = 16_000_000
_MOST_WARNINGS = 1_000
# A batch of long texts ends before its items are all there.
_MAX_BATCH_CHARS = 16_000_000


@traced("import", lambda done: {"memories": done.records, "skipped": done.skipped})
def import_(
    engine: Engine,
    source: Place,
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
    line_format = format_of(source, format)
    limit = engine.settings.max_text_chars
    with reading(source, store=engine.store.path, count=on_progress is not None) as (stream, total):
        lines = Lines(stream, max_chars=_CHARS_PER_CHARACTER * limit + _OTHER_CHARS)
        entries = parse(line_format, lines, max_text_chars=limit)
        batch = Batch(engine, base, sight)
        while True:
            try:
                entry = next(entries, None)
                batch.add(entry, lines.number)
            except RecalliteError as reason:
                raise _at_line(lines.number, batch.stored, reason) from reason
            if entry is None or (not whole and batch.full(batch_size)):
                batch.write()
                if on_progress is not None:
                    on_progress(lines.number, total)
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
    """The entries of one transaction, and the counts of those before."""

    def __init__(self, engine: Engine, base: str, sight: str) -> None:
        self._engine, self._step = engine, StepSize(first=64, least=32, rests=False)
        self._base, self._sight = base, sight
        self._embedder: Embedder | None = None
        self._versions: list[_Item] = []  # closed versions, before the open one
        self._memories: list[list[_Item]] = []  # of each the closed versions, then the open one
        self._links: list[tuple[int, LinkLine]] = []
        self._supersessions: list[tuple[int, SupersessionLine, Supersession]] = []
        self._documents: list[IncomingDocument] = []
        self._chars = 0
        self.stored = self.skipped = self.linked = self.warnings_total = 0
        self.warnings: list[str] = []

    def full(self, batch_size: int | None = None) -> bool:
        """Whether the batch should be written; by the time that one takes if it may have any size."""
        return len(self) >= (batch_size or self._step.size) or self._chars >= _MAX_BATCH_CHARS

    def __len__(self) -> int:
        return len(self._memories) + len(self._links) + len(self._supersessions) + len(self._documents)

    def add(self, entry: Entry | None, line: int) -> None:
        """Check one entry and keep it; None is the end."""
        match entry:
            case Incoming():
                item = self._item(entry, line)
                self._chars += len(item.row.text)
                if self._versions and item.row.public_id != self._versions[0].row.public_id:
                    self._check_versions_complete()
                self._versions.append(item)
                if item.row.recorded_until is None:
                    self._memories.append(self._versions)
                    self._versions = []
                return
            case Header():
                self._embedder = entry.embedder
            case LinkLine():
                check_link(entry)
                self._links.append((line, entry))
            case SupersessionLine():
                self._supersessions.append((line, entry, check_supersession(entry)))
            case DocumentLine():
                self._documents.append(check_document(entry, self._base))
        self._check_versions_complete()

    def _check_versions_complete(self) -> None:
        if self._versions:
            waiting = self._versions[-1]
            raise InvalidInput(
                f"the version of {waiting.row.public_id} in line {waiting.line} is closed (recorded_until), "
                "and no open version follows it"
            )

    def _item(self, entry: Incoming, line: int) -> _Item:
        settings = self._engine.settings
        entry_in_file, entry = entry, self._by_now(entry, line)
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

    def _by_now(self, entry: Incoming, line: int) -> Incoming:
        """The entry; one that is said to be of a time to come is of now, with a warning."""
        created_at = checks.check_time(entry.created_at, "created_at")
        if created_at is None or not is_to_come(created_at, checks.now_us()):
            return entry
        self.warnings_total += 1
        if len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append(f"line {line}: created_at is {entry.created_at}, which is to come: taken as now")
        return structs.replace(entry, created_at=None)

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
            written = [row for row in rows if not row.named]
            insert_rows(writer, written, identity, compared_by=comparing_policies(engine.settings.write_policy))
            linked = self._write_links(writer, links)
            for line, entry, row in supersessions:
                try:
                    put_supersession(writer, entry, row, self._sight)
                except InvalidInput as reason:
                    raise _at_line(line, self.stored, reason) from reason
            for document in documents:
                put_document(writer, document, self._sight)
        engine.may_have_pending |= any(row.pending for row in rows)
        engine.may_have_uncompared |= bool(written)
        self.stored += len(fresh)
        self.skipped += len(memories) - len(fresh)
        self.linked += linked

    def _fresh(self, reader: Reader, memories: Sequence[list[_Item]]) -> list[list[_Item]]:
        """Memories whose id is neither in the store nor earlier in the batch, with their new ids."""
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
        """Give each row its vectors: those of the file if they are this store's embedder's, else new ones."""
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

    def _write_links(self, writer: Writer, links: Sequence[tuple[int, LinkLine]]) -> int:
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


def check_link(link: LinkLine) -> None:
    """Refuse a link of an unknown type, or that cannot be stored."""
    if link.type not in LINK_TYPES:
        raise InvalidInput(f"type is {shown(link.type)}: use one of {', '.join(LINK_TYPES)}")
    checks.check_unit(link.strength, "strength")
    if link.source == link.target:
        raise InvalidInput(f"{shown(link.source)} cannot be linked to itself")
    for end in (link.source, link.target):
        checks.check_name(end, "a link's end")
    checks.check_time(link.created_at, "created_at")


def check_parts(parts: tuple[bytes, ...], embedder: Embedder | None) -> None:
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
