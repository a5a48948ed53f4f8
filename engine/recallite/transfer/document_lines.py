"""Documents in an export: a line each, after their chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.filters import Filter
from recallite.remember.prepare import metadata_json
from recallite.store.transaction import Reader, Writer
from recallite.store.values import CHUNK_KIND
from recallite.system.messages import shown
from recallite.transfer.line_types import DocumentLine, scope_within, written_time
from recallite.transfer.naming import name_document

_HASH_BYTES = 32


class IncomingDocument(Struct, frozen=True):
    """A checked document of an import: its scope, and the columns of its row."""

    id: str
    scope: str
    source: str
    created_at: int
    columns: dict[str, Any]


def document_lines(reader: Reader, filter: Filter) -> Iterator[DocumentLine]:
    """The documents of the exported chunks; none if the filter has more than scopes and kinds."""
    if (filter.kinds and CHUNK_KIND not in filter.kinds) or not filter.replaced(kinds=None).scopes_only:
        return
    for scope in filter.scopes or ("/",):
        for row in reader.documents.listed(scope):
            yield DocumentLine(
                id=row.public_id, source=row.source, scope=scope_within(row.scope, filter.base), title=row.title,
                media_type=row.media_type, content_hash=row.content_hash.hex(), chunking=row.chunking,
                size_bytes=row.size_bytes, metadata=msgspec.json.decode(row.metadata) if row.metadata else None,
                caller_metadata=msgspec.json.decode(row.caller_metadata) if row.caller_metadata else None,
                created_at=written_time(row.created_at), updated_at=written_time(row.updated_at),
            )  # fmt: skip


def check_document(line: DocumentLine, base: str) -> IncomingDocument:
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
    public_id = name_document(writer, document.id, sight)
    if writer.documents.find(document.scope, document.source) or writer.documents.with_id(public_id, "/"):
        return
    columns = {**document.columns, "chunks": 0, "updated_at": document.created_at}
    writer.documents.put(document.scope, document.source, public_id, columns)
    row = writer.documents.find(document.scope, document.source)
    assert row is not None
    chunks = len(writer.documents.chunks_of(row.source_id))
    if not chunks:
        writer.documents.delete([row])
        return
    writer.documents.put(
        document.scope, document.source, public_id, {**document.columns, "chunks": chunks}
    )  # created_at stays that of the first put
