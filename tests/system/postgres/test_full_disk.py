"""A server whose disk is full: a clear error, nothing written, and writes go on once there is space."""

from __future__ import annotations

import os
import subprocess

import pytest

from recallite.errors import StoreError
from tests.raising import raises
from tests.system.postgres.binaries import owner
from tests.system.postgres.server import PostgresServer

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

from recallite_postgres.faults import translated

# A file system of its own, gone with the server.
_SMALL_DISK = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=4m,uid=$1 tmpfs "$0" && shift && exec "$@"')


@pytest.fixture
def small_disk():
    """A server with a tablespace `small` of 4 MB."""
    server = PostgresServer(fsync=False)
    try:
        disk = server.folder / "small"
        disk.mkdir()
        command = (*_SMALL_DISK, str(disk), str(owner()[0]))
        if os.geteuid() != 0 or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
            pytest.skip("a small disk is a mounted one, which only root may make")
        server.launcher = command
        server.initialise()
        server.start()
        server.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        yield server
    finally:
        server.remove()


def test_a_full_disk_undoes_the_write_and_says_so(small_disk, connected):
    connections = connected(small_disk.address())
    with connections.connect(options="-c default_tablespace=small") as connection:
        connection.execute("CREATE TABLE public.other AS SELECT generate_series(1, 10000)")
        connection.execute("CREATE TABLE public.notes (text text STORAGE PLAIN)")
        connection.execute("INSERT INTO public.notes VALUES ('kept')")
        much = "INSERT INTO public.notes SELECT repeat('a', 4000) FROM generate_series(1, 2000)"
        with raises(StoreError, "full", match=r"is full .*No space left on device.*; nothing was written"):
            execute(connections, connection, much)
        assert connection.execute("SELECT text FROM public.notes").fetchall() == [("kept",)]
        connection.execute("DROP TABLE public.other")
        connection.execute("INSERT INTO public.notes SELECT repeat('a', 4000) FROM generate_series(1, 20)")
        assert connection.execute("SELECT count(*) FROM public.notes").fetchone() == (21,)


def execute(connections, connection, statement):
    with translated(connections.address):
        connection.execute(statement)
