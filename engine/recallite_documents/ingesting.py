"""Ingest: finds the documents that a caller names, cuts and stores them, and reports the outcome of each.

Files of a folder are found by patterns and read consistently. Nothing outside the folder is opened.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import string
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from recallite.documents.document import (
    IngestedDocument,
    IngestOptions,
    Skipped,
    is_url,
    stored_metadata,
)
from recallite.embedding.handle import EmbedderHandle
from recallite.engine import Engine
from recallite.errors import DocumentError, InvalidInput, RecalliteError
from recallite.model.checks import check_name, check_path, check_time, join_scopes, now_us, to_datetime
from recallite.remember.document_writing import (
    DocumentOutcome,
    NewChunk,
    NewDocument,
    delete_documents,
    write_documents,
)
from recallite.store.sql.services import DocumentRow
from recallite.store.store import Progress
from recallite.system.folders import Stamp, compile_patterns, kind_of, printable, read_steady, walk
from recallite.system.messages import install_command, shown, without_userinfo
from recallite_documents.chunking import (
    LEAST_TOKENS,
    ChunkSize,
    TextKind,
    chunk_markdown,
    chunk_plain,
    with_columns,
    with_properties,
)
from recallite_documents.detecting import BY_EXTENSION, Loaded
from recallite_documents.front_matter import context_of, front_matter, properties_text, short_name, short_values
from recallite_documents.markdown_sections import page_starts
from recallite_documents.parser import Parser
from recallite_documents.written_dates import own_time

_TEXT_EXTENSIONS = (
    ".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org", ".tex", ".log", ".csv", ".tsv", ".srt", ".vtt",
)  # fmt: skip
_EXTENSIONS = {*BY_EXTENSION, *_TEXT_EXTENSIONS}
_LEFT_OUT = frozenset(("node_modules", "__pycache__"))
_DEEPEST = 64
_NO_DOCUMENT = "no PDF, DOCX, HTML, Markdown or text by its name: name it in include to read it"
_HIDDEN, _EXCLUDED = "hidden and generated files and folders are left out", "exclude leaves it out"


class FoundFile(NamedTuple):
    """A file to read: `inner` is its path below `root`, with forward slashes; `source` names it in the store."""

    source: str
    root: Path
    inner: str
    warnings: tuple[str, ...] = ()


def find_file(path: Path, root: Path | None) -> FoundFile | Path:
    """Return the file, or the real path of a folder, at `path`; with `root` it must be in that folder, links aside."""
    try:
        if root is not None:
            base = Path(os.path.realpath(root, strict=True))
            path = path.relative_to(root) if path.is_absolute() and path.is_relative_to(root) else path
            inner = os.path.relpath(os.path.normpath(base / path), base)
            if inner.split(os.sep)[0] == os.pardir or os.path.isabs(inner):
                raise DocumentError(f"it is not in {root}", "refused")
            real = Path(os.path.realpath(base / inner, strict=True))
            if real != base / inner:
                raise DocumentError(
                    "it is, or is reached through, a symbolic link, which is not followed here", "refused"
                )
        else:
            real = Path(os.path.realpath(path, strict=True))
        mode = real.stat().st_mode
    except (OSError, ValueError) as fault:
        raise DocumentError(_why(fault)) from None
    if stat.S_ISDIR(mode):
        return real
    if not stat.S_ISREG(mode):
        raise DocumentError(f"it is {kind_of(mode)}, not a file")
    return FoundFile(printable(real.as_posix()), real.parent, real.name)


def read_file(file: FoundFile, max_bytes: int) -> tuple[bytes, Stamp]:
    """Return the bytes of one version of a file, and its stamp. Raises DocumentError."""

    def check(status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise DocumentError(f"it is {kind_of(status.st_mode)}, not a file")
        if status.st_size > max_bytes:
            raise DocumentError(f"it has {status.st_size:,} bytes; max_bytes is {max_bytes:,}", "too_large")

    try:
        read = read_steady(file.root, file.inner, check)
    except OSError as fault:
        raise DocumentError(_why(fault)) from None
    if read is None:
        raise DocumentError("it changes while it is read: ingest it again when its writer has finished")
    return read


class Walk:
    """A walk through a folder. Iterating yields its files in order; files that are left out are added to `skipped`.

    `include` and `exclude` are .gitignore patterns of paths below the folder. Without `include`, files with the
    extension of a document are taken. Raises InvalidInput for an invalid pattern.
    """

    def __init__(self, root: Path, include: Sequence[str], exclude: Sequence[str], *, recursive: bool) -> None:
        self.skipped: list[Skipped] = []
        self._root = root
        self._include = compile_patterns(include, "include")
        self._exclude = compile_patterns(exclude, "exclude")
        self._recursive = recursive
        self._folded: dict[str, str] = {}

    def __iter__(self) -> Iterator[FoundFile]:
        for inner, folders, entries in walk(self._root, self._refuse):
            below = f"{inner}/" if inner else ""
            folders[:] = [name for name in folders if self._enters(name, below + name)]
            for entry in entries:
                path = below + entry.name
                try:
                    mode = entry.stat(follow_symlinks=False).st_mode
                except OSError as fault:  # removed since the folder was listed
                    self._skip(path, _why(fault))
                    continue
                if entry.name.startswith(".") or entry.name in _LEFT_OUT:
                    self._skip(path, _HIDDEN)
                elif stat.S_ISLNK(mode):
                    self._skip(path, "it is a symbolic link, which is not followed: name its target")
                else:
                    yield from self._file(mode, path)

    def _refuse(self, inner: str, fault: OSError) -> None:
        if not inner:
            raise DocumentError(_why(fault))
        self._skip(inner, _why(fault))

    def _enters(self, name: str, path: str) -> bool:
        for applies, reason in (
            (name.startswith(".") or name in _LEFT_OUT, _HIDDEN),
            (not self._recursive, "subfolders are left out, as requested (not recursive)"),
            (self._exclude is not None and self._exclude.match_file(f"{path}/"), _EXCLUDED),
            (path.count("/") == _DEEPEST, f"it is nested deeper than {_DEEPEST} folders"),
        ):
            if applies:
                self._skip(path, reason)
                return False
        return True

    def _file(self, mode: int, path: str) -> Iterator[FoundFile]:
        if self._exclude is not None and self._exclude.match_file(path):
            self._skip(path, _EXCLUDED)
        elif self._include is not None and not self._include.match_file(path):
            return  # not reported: nothing asked for it
        elif not stat.S_ISREG(mode):
            self._skip(path, f"it is {kind_of(mode)}, not a file")
        elif self._include is None and os.path.splitext(path)[1].lower() not in _EXTENSIONS:
            self._skip(path, _NO_DOCUMENT)
        elif printable(path) != path:
            self._skip(path, "its name is not UTF-8: rename it")
        else:
            other = self._folded.setdefault(path.casefold(), path)
            clash = () if other == path else (f"its name and that of {other} differ only in case",)
            yield FoundFile((self._root / path).as_posix(), self._root, path, clash)

    def _skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(source=printable((self._root / path).as_posix()), reason=reason))


def _why(fault: Exception) -> str:
    if isinstance(fault, OSError) and fault.errno == errno.ENOENT:
        return "it is not there"
    return f"it cannot be read: {getattr(fault, 'strerror', None) or fault}"


# Chunks of a document.

_SIZE = ChunkSize(max_tokens=1000, target_tokens=500, overlap_tokens=100, least_tokens=LEAST_TOKENS)
CHUNKING = f"knowledge 5: {_SIZE.max_tokens}/{_SIZE.target_tokens}/{_SIZE.overlap_tokens}"
"""The version of reading and cutting, stored with each document; one of another version is cut again when ingested."""

PLACE_KEYS = ("path", "title", "headings", "lines", "chars", "page", "last_page")
"""Keys of a chunk's metadata for its place in the document; a document's own metadata may not use them."""

_MOST_STATED_BYTES = 65_536
_TITLE = re.compile(r"\ufeff?\s*+# ++([^\n]*)")
_SEPARATED = (".csv", ".tsv")


def stated_by(loaded: Loaded) -> tuple[dict[str, Any], str | None]:
    """Return the metadata and title that a document states, front matter included.

    Values longer than 65,536 bytes as JSON are left out.
    """
    metadata, title = loaded.metadata, loaded.title
    if loaded.markdown and loaded.exact:
        metadata, begin = front_matter(loaded.text)
        heading = _TITLE.match(loaded.text, begin)
        stated = metadata.get("title")
        title = None if heading is None else heading[1].strip().rstrip("#" + string.whitespace) or None
        if isinstance(stated, str) and stated.strip():
            title = stated
    short = {name: value for name, value in metadata.items() if len(msgspec.json.encode(value)) <= _MOST_STATED_BYTES}
    return short, None if title is None else short_name(title)


def cut(
    loaded: Loaded, embedder: EmbedderHandle, *, title: str | None, path: str, metadata: Mapping[str, Any]
) -> list[NewChunk]:
    """Return the chunks of a document; raises EmbedderError if its tokens cannot be counted."""
    text = loaded.text
    kind: TextKind = "markdown" if loaded.markdown else "separated" if path.lower().endswith(_SEPARATED) else "plain"
    pages = loaded.pages or []
    if loaded.markdown:
        values, begin = front_matter(text) if loaded.exact else ({}, 0)
        pieces = chunk_markdown(text, lambda: embedder.token_starts([text])[0], _SIZE, begin=begin)
        pieces = with_properties(pieces, text, properties_text(values, without={"title"}), _SIZE)
    else:
        if loaded.exact and not pages:
            pages = page_starts(text) if "\f" in text else []
        pieces = chunk_plain(text, lambda: embedder.token_starts([text])[0], _SIZE, rows=kind == "separated")
    shared = repeated(metadata)
    chunks = []
    for chunk in with_columns(pieces, text, kind):
        headings = [short_name(heading) for heading in chunk.headings]
        place: dict[str, Any] = {"path": path, "headings": headings}
        if title is not None:
            place["title"] = title
        if loaded.exact:
            place["lines"] = list(chunk.lines)
        place["chars"] = [chunk.start, chunk.end]
        if pages:
            place["page"] = max(bisect_right(pages, chunk.start), 1)
            if (last := bisect_right(pages, chunk.end - 1)) > place["page"]:
                place["last_page"] = last
        context = context_of(title, headings, chunk.properties)
        chunks.append(NewChunk(text=chunk.columns + chunk.text, context=context, metadata={**shared, **place}))
    return chunks


def repeated(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the document's metadata that each chunk carries for filters: short values, the last first."""
    # The caller's values come last and take precedence if not all fit.
    items = [(name, value) for name, value in metadata.items() if name not in PLACE_KEYS]
    return short_values(dict(reversed(items)))


def with_metadata(stored: Mapping[str, Any], shared: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return a stored chunk's metadata with other values of its document and its present path."""
    return {**shared, **{name: stored[name] for name in PLACE_KEYS if name in stored}, "path": path}


# The ingest of sources.


class _Source(NamedTuple):
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
        named: dict[str, _Source] = {}
        for source in sources:
            try:
                for item in self._named(source):
                    named[item.source] = item
            except DocumentError as reason:
                self._skip(without_userinfo(source) if isinstance(source, str) else shown(source), reason)
        items = [*named.values()]
        with Parser(self._limits) as parser:
            stream = self._new_documents(items, parser, on_progress)
            for written in write_documents(self._engine, stream, base=self._base, policy=self._options.policy):
                self._report(written)
        with self._engine.store.read() as reader:
            firsts = {repeat: reader.documents.find(self._scope, first) for repeat, first in self._repeats.items()}
        for repeat, row in firsts.items():
            if row is None:
                fault = f"it has the bytes of {self._repeats[repeat]}, which could not be ingested"
                self._skip(repeat, DocumentError(fault))
            else:
                self._report_duplicate(repeat, row, ())
        if self._folders:  # documents of theirs that have no file any more stay until they are deleted
            with self._engine.store.read() as reader:
                stored = reader.documents.find_many(self._scope)
            for source_of, document in stored.items():
                if source_of.startswith(tuple(self._folders)) and self._is_gone(document):
                    why = "its file is gone; the document stays until it is deleted"
                    self.skipped.append(Skipped(source=source_of, reason=why))
        if on_progress is not None:
            on_progress(len(items), len(items))
        return [self._results[item.source] for item in items if item.source in self._results]

    def _named(self, source: object) -> Iterator[_Source]:
        options = self._options
        if isinstance(source, bytes | bytearray | memoryview):
            data = bytes(source)
            name = options.name or f"sha256:{hashlib.sha256(data).hexdigest()[:32]}"
            yield _Source(check_name(name, "name"), name, data=data)
        elif isinstance(source, str) and is_url(source):
            if options.root is not None:
                raise DocumentError(f"{without_userinfo(source)} is not a path in {options.root}", "refused")
            yield _Source(check_name(options.name or source, "source"), source)
        elif isinstance(source, str) and not source.strip():
            raise InvalidInput("source is blank: give a path ('.' is this folder) or a URL")
        elif isinstance(source, str | os.PathLike):
            check_path(source, "source")
            yield from self._at_path(Path(source).expanduser())
        else:
            raise InvalidInput(f"source is {shown(source)}: give a path, a URL, bytes, or a list of these")

    def _at_path(self, path: Path) -> Iterator[_Source]:
        options = self._options
        target = find_file(path, options.root)
        if isinstance(target, FoundFile):
            yield _Source(check_name(options.name or target.source, "source"), target.inner, file=target)
            return
        if options.name is not None or options.title is not None:
            raise InvalidInput(f"name and title are for one document, and {path} is a folder")
        self._alone = False
        self._folders.append(target.as_posix().rstrip("/") + "/")
        walk = Walk(target, options.include, options.exclude, recursive=options.recursive)
        any_file = False
        for file in walk:
            any_file = True
            yield _Source(file.source, file.inner, file=file)
        self.skipped += walk.skipped
        if not any_file and not walk.skipped:
            reason = "no document is in it: PDF, DOCX, HTML, Markdown and text are read"
            self.skipped.append(Skipped(source=printable(target.as_posix()), reason=reason))

    def _new_documents(
        self, items: Sequence[_Source], parser: Parser, on_progress: Progress | None
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

    def _new_document(self, item: _Source, parser: Parser) -> NewDocument | None:
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
        self, item: _Source, content: _Content, digest: bytes, parser: Parser, by_caller: dict[str, Any]
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

    def _refreshed(self, row: DocumentRow, item: _Source | None, content: _Content) -> NewDocument | None:
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

    def _read(self, item: _Source) -> _Content:
        if item.data is not None:
            return _Content(item.data, item.name)
        if item.file is not None:
            data, stamp = read_file(item.file, self._limits.max_bytes)
            content = _Content(data, item.name, warnings=item.file.warnings)
            if item.source != item.file.source:  # the caller's name for it, not a path
                return content
            return content._replace(mtime_ns=stamp.mtime_ns, inode=stamp.inode)
        try:
            from recallite_documents.fetching import fetch
        except ImportError as reason:
            raise DocumentError(
                f"{reason.name}, which fetches URLs, is missing: {install_command('documents')}", "parser_missing"
            ) from None
        fetched = fetch(item.name, self._limits, allow_private_addresses=self._options.allow_private_addresses)
        metadata = {"url": fetched.url, **({"content_type": fetched.media_type} if fetched.media_type else {})}
        return _Content(fetched.data, urlsplit(fetched.url).path, fetched.media_type, fetched.charset, metadata)

    def _report(self, written: DocumentOutcome) -> None:
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


def _title_of(item: _Source) -> str | None:
    """Return a title for a document without one: the name of the file, or the last part of a URL."""
    if item.data is not None and item.source.startswith("sha256:"):
        return None
    name = unquote(urlsplit(item.source).path) if is_url(item.source) else item.source
    return os.path.splitext(os.path.basename(name.rstrip("/")))[0] or item.source
