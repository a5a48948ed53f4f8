"""Making the indexes of `candidates.py` while others read and write.

They are made with CREATE INDEX CONCURRENTLY: to make the one of a million vectors takes minutes, for which a lock would
stop every writer. It runs outside a transaction and may leave an index that is not valid, which the next attempt
removes. A lock of the session keeps a second process from making the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from recallite.errors import RecalliteError
from recallite.store.candidates import WORD_INDEX, halves_of, vector_index
from recallite.store.store import Progress
from recallite.store.values import EmbedderRow
from recallite.system.logs import logger
from recallite_postgres.connection import Connections, StoreConnection
from recallite_postgres.faults import translated

_log = logger(__name__)
_PROGRESS_SECONDS = 0.5
# Bytes of a vector in the graph while it is made, beside its components: 16 neighbours a level, and their distances.
_NODE_BYTES = 700
_LEAST_MEMORY_KB = 65_536


def make(connections: Connections, embedder: EmbedderRow | None, on_progress: Progress | None = None) -> list[str]:
    """Make what is missing and remove what serves no more; returns the names of the indexes that were made.

    `on_progress` is told of the rows of the index that is being made.
    """
    wanted = {WORD_INDEX: _WORDS}
    if embedder is not None:
        wanted[vector_index(embedder)] = _vectors(embedder)
    with translated(connections.address), connections.connect() as connection:
        connection.execute("SET statement_timeout = 0; SET lock_timeout = 0")
        connection.execute("SELECT pg_advisory_lock(hashtextextended('recallite candidates ' || current_schema(), 0))")
        valid: dict[str, bool] = dict(connection.execute(_EXISTING).fetchall())
        for name, sound in valid.items():
            if name not in wanted or not sound:
                connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}".encode())
        missing = [name for name in wanted if not valid.get(name)]
        if missing and embedder is not None:
            _allow_memory(connection, embedder)
        for name in missing:
            _log.info("%s: makes the index %s", connections.address, name)
            with _reporting(connections, connection, on_progress):
                _create(connection, name, wanted[name])
        if missing:
            connection.execute("ANALYZE record_terms, vector, record")
    return missing


# `gin_pending_list_limit`, in KB: what is not merged into the index yet is searched one by one.
_WORDS = (
    f"CREATE INDEX CONCURRENTLY {WORD_INDEX} ON record_terms USING gin (term_numbers(terms)) "
    "WITH (gin_pending_list_limit = 256)"
)
_EXISTING = (
    "SELECT c.relname::text, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace "
    f"AND (c.relname = '{WORD_INDEX}' OR c.relname LIKE 'vector\\_near\\_%')"
)


def _vectors(embedder: EmbedderRow) -> str:
    return (
        f"CREATE INDEX CONCURRENTLY {vector_index(embedder)} ON vector "
        f"USING hnsw (({halves_of(embedder, 'value')}) halfvec_cosine_ops) WHERE embedder_id = {embedder.id:d}"
    )


def _allow_memory(connection: StoreConnection, embedder: EmbedderRow) -> None:
    """Allow the memory that making the graph takes, at most half of the server's shared buffers."""
    connection.execute(
        "SELECT set_config('maintenance_work_mem', greatest(least((SELECT count(*) FROM vector) * %s / 1024, "
        "(SELECT setting::bigint * 8 / 2 FROM pg_settings WHERE name = 'shared_buffers')), %s)::text, false)",
        (2 * embedder.dimension + _NODE_BYTES, _LEAST_MEMORY_KB),
    )


def _create(connection: StoreConnection, name: str, statement: str) -> None:
    try:
        connection.execute(statement.encode())
    except psycopg.errors.DiskFull:
        # Workers share memory, of which a container may have little.
        connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}".encode())
        connection.execute("SET max_parallel_maintenance_workers = 0")
        connection.execute(statement.encode())


@contextmanager
def _reporting(connections: Connections, building: StoreConnection, on_progress: Progress | None) -> Iterator[None]:
    """Tell how far a connection's CREATE INDEX is, from another one."""
    if on_progress is None:
        yield
        return
    ended = threading.Event()

    def report() -> None:
        with suppress(RecalliteError, psycopg.Error), connections.connect() as connection:
            while not ended.wait(_PROGRESS_SECONDS):
                row = connection.execute(
                    "SELECT tuples_done, tuples_total FROM pg_stat_progress_create_index WHERE pid = %s",
                    (building.info.backend_pid,),
                ).fetchone()
                if row is not None and row[1]:
                    on_progress(row[0], row[1])

    watching = threading.Thread(target=report, name="recallite-index-progress", daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()
