"""What the suites of the workspace share: a quick configuration, and everything that an index says, in order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from recallite import Workspace, WorkspaceConfig
from recallite.store.sql.derived import unpacked
from recallite.store.sqlite.maintenance import verify

LONG_AGO_NS = 1_600_000_000 * 10**9


def write(folder: Path, path: str, text: str | bytes) -> Path:
    """A file of the folder with this text."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def config(**fields: Any) -> WorkspaceConfig:
    """A configuration in which searches look at no file by themselves."""
    return WorkspaceConfig.from_dict({"sync": {"on_search": False}, **fields})


def index_all(folder: Path, embedder: Any = "none", **fields: Any) -> Any:
    """Index a folder with a workspace of its own; returns what that says."""
    with Workspace(folder, config(**fields), embedder=embedder) as workspace:
        return workspace.index()


def counts(result: Any) -> tuple[int, int, int, int]:
    """Files scanned, indexed, deleted, renamed."""
    return result.files_scanned, result.files_indexed, result.files_deleted, result.files_renamed


def dump(workspace: Workspace) -> dict[str, Any]:
    """Everything that an index says of its files, without ids and the times at which it was written; it is sound."""
    with workspace._index.engine().store.read() as reader:
        found = verify(reader)
        assert found.problems == (), found
        documents = reader.connection.execute(
            "SELECT o.name, d.title, d.media_type, hex(d.content_hash), d.chunking, d.size_bytes, d.mtime_ns, "
            "d.inode, d.metadata, d.problem, d.chunks FROM document d JOIN source o ON o.id = d.source_id ORDER BY 1"
        ).fetchall()
        chunks = reader.connection.execute(
            "SELECT o.name, r.position, r.text, r.context, r.metadata, r.created_at, r.importance, "
            "r.embedding_state, r.id FROM record r JOIN source o ON o.id = r.source_id ORDER BY 1, 2"
        ).fetchall()
        place = {row[-1]: row[:2] for row in chunks}
        vectors = {
            (*place[record], part): tuple(np.round(np.frombuffer(value, "<f4"), 4).tolist())
            for record, part, value in reader.connection.execute("SELECT record_id, part, value FROM vector")
        }
        texts = dict(reader.connection.execute("SELECT id, text FROM term"))
        words = {}
        for record, terms, numbers in reader.connection.execute("SELECT record_id, terms, counts FROM record_terms"):
            ids = unpacked(terms, np.array([0, len(numbers)])).tolist()
            words[place[record]] = sorted(zip((texts[each] for each in ids), list(numbers), strict=False))
        rows = reader.connection.execute("SELECT count(*) FROM record").get
        sources = reader.connection.execute("SELECT name FROM source ORDER BY 1").fetchall()
    assert rows == len(chunks)
    return {
        "documents": documents,
        "chunks": [(*row[:4], msgspec.json.decode(row[4]), *row[5:8]) for row in chunks],
        "vectors": vectors,
        "words": words,
        "sources": sources,
    }


def dump_afresh(folder: Path, elsewhere: Path, embedder: Any, **fields: Any) -> dict[str, Any]:
    """What an index built from nothing says of the same files."""
    fresh = config(db_path=str(elsewhere / "fresh.db"), **fields)
    for each in elsewhere.glob("fresh.db*"):
        each.unlink()
    with Workspace(folder, fresh, embedder=embedder) as workspace:
        workspace.index()
        return dump(workspace)


def chunk_ids(workspace: Workspace) -> dict[tuple[str, int], tuple[str, int]]:
    """Public and row id of each chunk, by file and position."""
    with workspace._index.engine().store.read() as reader:
        rows = reader.connection.execute(
            "SELECT o.name, r.position, r.public_id, r.id FROM record r JOIN source o ON o.id = r.source_id"
        )
        return {(name, position): (public, row) for name, position, public, row in rows}


def settle(folder: Path) -> None:
    """Give every file a time long ago, so that its `stat` is past doubt."""
    for file in folder.rglob("*.md"):
        os.utime(file, ns=(LONG_AGO_NS, LONG_AGO_NS))
