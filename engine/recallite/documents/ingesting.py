"""Ingest: reads the sources a caller names, stores their documents, and reports the outcome of each."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from recallite.documents.chunks import CHUNKING, cut, repeated, stated_by, with_metadata
from recallite.documents.found_files import FoundFile, Walk, find_file, read_file
from recallite.documents.loaded import Limits
from recallite.documents.outcomes import IngestedDocument, Skipped
from recallite.documents.parser import Parser
from recallite.engine import Engine
from recallite.errors import (
    DocumentError,
    InvalidInput,
    RecalliteError,
)
from recallite.model.checks import check_name, check_path, check_time, join_scopes, now_us, to_datetime
from recallite.model.settings import WritePolicy
from recallite.remember.document_writing import NewChunk, NewDocument, Written, delete_documents, write_documents
from recallite.store.values import DocumentRow
from recallite.system.folders import printable
from recallite.system.messages import install_command, shown, without_userinfo
from recallite.text.dates.written import own_time

Progress = Callable[[int, int | None], None]
"""Called with the number of documents done and their total."""


class IngestOptions(NamedTuple):
    """The options of one ingest."""

    scope: str
    metadata: dict[str, Any] | None
    name: str | None
    title: str | None
    policy: WritePolicy
    include: Sequence[str]
    exclude: Sequence[str]
    password: str | None
    recursive: bool
    allow_private_addresses: bool
    root: Path | None
    limits: Limits


class _Item(NamedTuple):
    """A document to read: a file, a URL or bytes."""

    source: str
    name: str
    file: FoundFile | None = None
    data: bytes | None = None


class _Content(NamedTuple):
    """The bytes of a document, and the facts known about it."""

    data: bytes
    name: str
    media_type: str | None = None
    charset: str | None = None
    metadata: dict[str, Any] = {}  # noqa: RUF012
    mtime_ns: int | None = None
    inode: int | None = None
    warnings: tuple[str, ...] = ()


class Ingest:
    """One ingest. With `alone`, a document that cannot be ingested raises instead of being skipped."""

    def __init__(self, engine: Engine, base: str, options: IngestOptions, *, alone: bool) -> None:
        self.skipped: list[Skipped] = []
        self._results: dict[str, IngestedDocument] = {}
        self._engine = engine
        self._base = base
        self._options = options
        self._alone = alone
        self._scope = join_scopes(base, options.scope) or "/"
        self._limits = options.limits
        # Documents being written and their warnings, by source; sources by the hash of their bytes, and duplicates.
        self._in_progress: dict[str, tuple[NewDocument, tuple[str, ...]]] = {}
        self._hashes: dict[bytes, str] = {}
        self._repeats: dict[str, str] = {}
        self._folders: list[str] = []

    def run(self, sources: Iterable[object], on_progress: Progress | None) -> list[IngestedDocument]:
        """Ingest these sources. Raises DocumentError and InvalidInput."""
        items = list({item.source: item for item in self._items(sources)}.values())
        with Parser(self._limits) as parser:
            stream = self._new_documents(items, parser, on_progress)
            for written in write_documents(self._engine, stream, base=self._base, policy=self._options.policy):
                self._report(written)
        for source, first in self._repeats.items():
            self._report_repeat(source, first)
        self._report_gone()
        if on_progress is not None:
            on_progress(len(items), len(items))
        return [self._results[item.source] for item in items if item.source in self._results]

    def _items(self, sources: Iterable[object]) -> Iterator[_Item]:
        """Yield the documents that the sources name, those of folders included."""
        for source in sources:
            try:
                yield from self._named(source)
            except DocumentError as reason:
                self._skip(without_userinfo(source) if isinstance(source, str) else shown(source), reason)

    def _named(self, source: object) -> Iterator[_Item]:
        options = self._options
        if isinstance(source, bytes | bytearray | memoryview):
            data = bytes(source)
            name = options.name or f"sha256:{hashlib.sha256(data).hexdigest()[:32]}"
            yield _Item(check_name(name, "name"), name, data=data)
        elif isinstance(source, str) and is_url(source):
            if options.root is not None:
                raise DocumentError(f"{without_userinfo(source)} is not a path in {options.root}", "refused")
            yield _Item(check_name(options.name or source, "source"), source)
        elif isinstance(source, str) and not source.strip():
            raise InvalidInput("source is blank: give a path ('.' is this folder) or a URL")
        elif isinstance(source, str | os.PathLike):
            check_path(source, "source")
            yield from self._at_path(Path(source).expanduser())
        else:
            raise InvalidInput(f"source is {shown(source)}: give a path, a URL, bytes, or a list of these")

    def _at_path(self, path: Path) -> Iterator[_Item]:
        options = self._options
        target = find_file(path, options.root)
        if isinstance(target, FoundFile):
            yield _Item(check_name(options.name or target.source, "source"), target.inner, file=target)
            return
        if options.name is not None or options.title is not None:
            raise InvalidInput(f"name and title are for one document, and {path} is a folder")
        self._alone = False
        self._folders.append(target.as_posix().rstrip("/") + "/")
        walk = Walk(target, options.include, options.exclude, recursive=options.recursive)
        any_file = False
        for file in walk:
            any_file = True
            yield _Item(file.source, file.inner, file=file)
        self.skipped += walk.skipped
        if not any_file and not walk.skipped:
            reason = "no document is in it: PDF, DOCX, HTML, Markdown and text are read"
            self.skipped.append(Skipped(source=printable(target.as_posix()), reason=reason))

    def _new_documents(
        self, items: Sequence[_Item], parser: Parser, on_progress: Progress | None
    ) -> Iterator[NewDocument]:
        """Yield the documents to write; the outcomes of the others are reported here."""
        for done, item in enumerate(items):
            if on_progress is not None:
                on_progress(done, len(items))
            try:
                document = self._new_document(item, parser)
            except DocumentError as reason:
                self._skip(without_userinfo(item.source), reason)
                continue
            if document is not None:
                yield document

    def _new_document(self, item: _Item, parser: Parser) -> NewDocument | None:
        """Return the document to write; None if its bytes are stored already."""
        with _document_errors():
            content = self._read(item)
        digest = hashlib.sha256(content.data).digest()
        with self._engine.store.read() as reader:
            stored = reader.documents.find(self._scope, item.source)
            same = reader.documents.with_content(self._scope, digest)
        if stored is not None and stored.content_hash == digest and self._is_current(stored):
            return self._refreshed(stored, item, content)
        if digest in self._hashes:
            self._repeats[item.source] = self._hashes[digest]
            return None
        for other in same:
            if other.source == item.source or not self._is_current(other):
                continue
            if stored is None and self._is_gone(other):
                return self._refreshed(other, item, content)
            if self._is_unchanged(other, digest):
                self._report_duplicate(item.source, other, content.warnings)
                return self._refreshed(other, None, content)
        return self._parsed(item, content, digest, parser, _caller_metadata(stored))

    def _parsed(
        self, item: _Item, content: _Content, digest: bytes, parser: Parser, by_caller: dict[str, Any]
    ) -> NewDocument:
        by_caller = {**by_caller, **(self._options.metadata or {})}
        with _document_errors():
            loaded = parser.load(
                content.data, content.name, media_type=content.media_type, charset=content.charset,
                password=self._options.password,
            )  # fmt: skip
            stated, stated_title = stated_by(loaded)
            metadata = {**stated, **content.metadata, **by_caller}
            created_at, undated = _written(metadata, item.source, content.mtime_ns)
            title = self._options.title or stated_title or _title_of(item)
            chunks = cut(loaded, self._engine.embedder, title=title, path=item.source, metadata=metadata)
        if not chunks:
            raise DocumentError("it holds no text")
        document = NewDocument(
            scope=self._options.scope, source=item.source, title=title, media_type=loaded.media_type,
            content_hash=digest, chunking=CHUNKING, size_bytes=len(content.data), mtime_ns=content.mtime_ns,
            inode=content.inode, metadata=metadata, caller_metadata=by_caller, chunks=chunks,
            created_at=now_us() if created_at is None else created_at,
        )  # fmt: skip
        self._hashes[digest] = item.source
        self._in_progress[item.source] = document, (*content.warnings, *loaded.warnings, *undated)
        return document

    def _refreshed(self, row: DocumentRow, item: _Item | None, content: _Content) -> NewDocument | None:
        """Return a stored document with the caller's metadata added, and with the source of `item`."""
        known = stored_metadata(row.metadata)
        metadata = {**known, **content.metadata, **(self._options.metadata or {})}
        source = row.source if item is None else item.source
        if metadata == known and source == row.source:
            if item is not None:
                self._results[source] = _stored_already(row, source, content.warnings)
            return None
        with self._engine.store.read() as reader:
            stored = reader.documents.chunks_of(row.source_id)
        shared = repeated(metadata)
        chunks = [
            NewChunk(text=chunk.text, context=chunk.context,
                     metadata=with_metadata(stored_metadata(chunk.metadata), shared, source))
            for chunk in stored
        ]  # fmt: skip
        document = NewDocument(
            scope=self._options.scope, source=source, title=row.title, media_type=row.media_type,
            content_hash=row.content_hash, chunking=row.chunking, size_bytes=row.size_bytes,
            mtime_ns=row.mtime_ns if item is None else content.mtime_ns,
            inode=row.inode if item is None else content.inode, metadata=metadata,
            caller_metadata={**_caller_metadata(row), **(self._options.metadata or {})}, chunks=chunks,
            created_at=_written(metadata, source, None)[0]
            or min((chunk.created_at for chunk in stored), default=row.created_at),
            renamed_from=None if source == row.source else row.source,
        )  # fmt: skip
        if item is not None:
            self._hashes[row.content_hash] = source
            self._in_progress[source] = document, content.warnings
        return document

    def _is_current(self, row: DocumentRow) -> bool:
        """Whether a stored document of the same bytes would be cut and named the same now."""
        return row.chunking == CHUNKING and self._options.title in (None, row.title)

    def _is_gone(self, row: DocumentRow) -> bool:
        """Whether a source is a file that no longer exists: a document with its bytes is that file, moved."""
        return self._options.root is None and _is_file(row) and not os.path.lexists(row.source)

    def _is_unchanged(self, row: DocumentRow, digest: bytes) -> bool:
        """Whether a document still has the stored bytes; one that is being replaced has not."""
        if row.source in self._in_progress:
            return False
        if not _is_file(row) or self._options.root is not None:
            return True
        try:
            file = find_file(Path(row.source), None)
            if not isinstance(file, FoundFile):
                return False
            return hashlib.sha256(read_file(file, self._limits.max_bytes)[0]).digest() == digest
        except DocumentError:
            return False

    def _read(self, item: _Item) -> _Content:
        if item.data is not None:
            return _Content(item.data, item.name)
        if item.file is not None:
            data, stamp = read_file(item.file, self._limits.max_bytes)
            content = _Content(data, item.name, warnings=item.file.warnings)
            if item.source != item.file.source:  # the caller's name for it, not a path
                return content
            return content._replace(mtime_ns=stamp.mtime_ns, inode=stamp.inode)
        try:
            from recallite.documents.fetching import fetch
        except ImportError as reason:
            raise DocumentError(
                f"{reason.name}, which fetches URLs, is missing: {install_command('documents')}", "parser_missing"
            ) from None
        fetched = fetch(item.name, self._limits, allow_private_addresses=self._options.allow_private_addresses)
        metadata = {"url": fetched.url, **({"content_type": fetched.media_type} if fetched.media_type else {})}
        return _Content(fetched.data, urlsplit(fetched.url).path, fetched.media_type, fetched.charset, metadata)

    def _report(self, written: Written) -> None:
        if written.outcome == "failed":
            self._skip(written.source, DocumentError(written.problem or ""))
        elif written.source in self._in_progress:
            document, warnings = self._in_progress[written.source]
            # "unchanged": all chunks were kept, and the metadata has changed.
            outcome = "updated" if written.outcome == "unchanged" else written.outcome
            self._results[written.source] = IngestedDocument(
                id=written.id, source=written.source, outcome=outcome, title=document.title,
                chunks=len(document.chunks), chunks_created=written.chunks_created,
                chunks_deleted=written.chunks_deleted, pending=written.pending, warnings=warnings,
            )  # fmt: skip

    def _report_duplicate(self, source: str, other: DocumentRow, warnings: tuple[str, ...]) -> None:
        """Report a duplicate, and delete the outdated document stored under its own source."""
        delete_documents(self._engine, self._scope, [source])
        self._results[source] = _stored_already(other, source, warnings)

    def _report_repeat(self, source: str, first: str) -> None:
        with self._engine.store.read() as reader:
            row = reader.documents.find(self._scope, first)
        if row is None:
            self._skip(source, DocumentError(f"it has the bytes of {first}, which could not be ingested"))
        else:
            self._report_duplicate(source, row, ())

    def _report_gone(self) -> None:
        """Report documents of these folders whose files are gone; they stay until they are deleted."""
        if not self._folders:
            return
        with self._engine.store.read() as reader:
            stored = reader.documents.find_many(self._scope)
        for source, row in stored.items():
            if source.startswith(tuple(self._folders)) and self._is_gone(row):
                reason = "its file is gone; the document stays until it is deleted"
                self.skipped.append(Skipped(source=source, reason=reason))

    def _skip(self, source: str, fault: DocumentError) -> None:
        message = str(fault)
        if self._alone:
            named = message if message.startswith(source) else f"{source}: {message}"
            raise DocumentError(named, fault.reason) from fault
        self.skipped.append(Skipped(source=source, reason=message, error=fault.reason))


@contextmanager
def _document_errors() -> Iterator[None]:
    """Turn an unexpected error of reading or cutting a document into its outcome: the others must go on."""
    try:
        yield
    except InvalidInput as fault:  # a text that cannot be encoded, not the caller's argument
        raise DocumentError(str(fault)) from fault
    except RecalliteError:
        raise
    except Exception as fault:
        raise DocumentError(f"reading it failed: {type(fault).__name__}: {str(fault)[:300]}") from fault


def stored_metadata(text: str | None) -> dict[str, Any]:
    """Return metadata from a column of the store."""
    return dict(msgspec.json.decode(text)) if text else {}


def is_url(source: str) -> bool:
    """Whether a source is a URL of http or https."""
    return source.lower().startswith(("http://", "https://"))


def _written(metadata: dict[str, Any], source: str, mtime_ns: int | None) -> tuple[int | None, list[str]]:
    """Return when a document was written, as it states, its name says or its file was changed, and dates not read."""
    moment, unread = own_time(metadata, os.path.splitext(urlsplit(source).path if is_url(source) else source)[0])
    if moment is None and mtime_ns is not None:
        moment = min(to_datetime(mtime_ns // 1000), to_datetime(now_us()))
    return check_time(moment, "created_at"), [str(fault) for fault in unread]


def _is_file(row: DocumentRow) -> bool:
    """Whether the source of a document is the path of a file; names of bytes and URLs may look like one."""
    return row.mtime_ns is not None


def _caller_metadata(row: DocumentRow | None) -> dict[str, Any]:
    return stored_metadata(None if row is None else row.caller_metadata)


def _stored_already(row: DocumentRow, source: str, warnings: tuple[str, ...]) -> IngestedDocument:
    """Return the outcome for a source with the bytes of this document: unchanged, or a duplicate of another source."""
    unchanged = source == row.source
    return IngestedDocument(
        id=row.public_id, source=source, outcome="unchanged" if unchanged else "duplicate", title=row.title,
        chunks=row.chunks, duplicate_of=None if unchanged else row.source, warnings=warnings,
    )  # fmt: skip


def _title_of(item: _Item) -> str | None:
    """Return a title for a document without one: the name of the file, or the last part of a URL."""
    if item.data is not None and item.source.startswith("sha256:"):
        return None
    name = unquote(urlsplit(item.source).path) if is_url(item.source) else item.source
    return os.path.splitext(os.path.basename(name.rstrip("/")))[0] or item.source
