"""A PostgreSQL server with pgvector for benchmarks: one of the tests' own on this machine, with fsync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.postgres.server import PostgresServer

__all__ = ["started", "version"]

_SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "maintenance_work_mem": "512MB"}


@contextmanager
def started() -> Iterator[PostgresServer]:
    """A new server, removed afterwards."""
    server = PostgresServer.started(fsync=True, settings=_SETTINGS)
    try:
        server.execute("CREATE EXTENSION vector")
        yield server
    finally:
        server.remove()


def version(server: PostgresServer) -> str:
    """Versions of the server and of pgvector."""
    ((text,),) = server.execute(
        "SELECT current_setting('server_version') || ', pgvector ' || extversion FROM pg_extension "
        "WHERE extname = 'vector'"
    )
    return str(text)
