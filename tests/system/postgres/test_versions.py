"""Two versions of Recallite on one database, and two processes that create one memory."""

from __future__ import annotations

import threading

import pytest

from recallite import Memory
from recallite.errors import StoreError
from tests.attacks.workload import Embedder
from tests.raising import raises

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

from recallite_postgres.server import SCHEMA_VERSION


def test_a_memory_of_a_newer_recallite_is_left_as_it_is(postgres_server, postgres_address):
    schema = postgres_address.rpartition("schema=")[2]
    with Memory(postgres_address, embedder=Embedder()) as memory:
        memory.remember("the violin is in room seven")
    postgres_server.execute(f"UPDATE {schema}.meta SET value = '{SCHEMA_VERSION + 1}' WHERE key = 'schema_version'")

    def everything():
        return [
            postgres_server.execute(
                f"SELECT relname, relkind::text, relnatts FROM pg_class WHERE relnamespace = "
                f"'{schema}'::regnamespace ORDER BY 1"
            ),
            *(postgres_server.execute(f"SELECT * FROM {schema}.{table} ORDER BY 1") for table in ("meta", "record")),
        ]

    before = everything()
    with raises(StoreError, "newer_schema", match=f"version {SCHEMA_VERSION + 1}.*up to {SCHEMA_VERSION}"):
        Memory(postgres_address, embedder=Embedder())
    assert everything() == before


def test_processes_that_create_one_memory_at_once_all_open_it(postgres_address):
    opened, faults, together = [], [], threading.Barrier(6)

    def open_it():
        together.wait()
        try:
            opened.append(Memory(postgres_address, embedder=Embedder()))
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    opened[0].remember("the violin is in room seven")
    assert [memory.count() for memory in opened] == [1] * 6
    for memory in opened:
        memory.close()
