"""A standby is read, within a bound of how far it may be behind, and not written."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings
from recallite.errors import StoreError, StoreUnavailable
from tests.limits import until
from tests.raising import raises
from tests.system.postgres.server import PostgresServer
from tests.system.postgres.standby import standby_of

PLAIN = Settings(embedder="none")


@pytest.fixture
def pair():
    primary = PostgresServer.started(fsync=False)
    standby = None
    try:
        with Memory(primary.address(schema="m"), settings=PLAIN) as memory:
            memory.remember("zebras graze")
        standby = standby_of(primary, synchronous=False)
        # A new standby does not say at once how far it is.
        primary.execute("CREATE TABLE something (a INT)")
        until(lambda: standby.execute("SELECT pg_last_xact_replay_timestamp() IS NOT NULL") == [(True,)])
        yield primary, standby
    finally:
        for server in (standby, primary):
            if server is not None:
                server.remove()


def test_a_standby_answers_and_follows_and_refuses_writes(pair):
    primary, standby = pair
    address = standby.address(schema="m")
    with Memory(address, settings=PLAIN) as reader, Memory(primary.address(schema="m"), settings=PLAIN) as memory:
        assert [hit.text for hit in reader.recall("zebras")] == ["zebras graze"]
        memory.remember("zebras gallop")
        until(lambda: len(reader.recall("zebras")) == 2)
        with raises(StoreError, "read_only", match="standby"):
            reader.remember("lions sleep")
        assert reader.store.stats().behind_ms < 60_000
        assert memory.store.stats().behind_ms is None


def test_what_is_too_far_behind_is_not_read(pair):
    primary, standby = pair
    standby.execute("SELECT pg_wal_replay_pause()")
    with Memory(primary.address(schema="m"), settings=PLAIN) as memory:
        memory.remember("zebras gallop")
    until(lambda: standby.execute("SELECT pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()") == [(True,)])
    with raises(StoreUnavailable, "timeout", match="behind"):
        Memory(standby.address(schema="m", standby_lag_ms="1"), settings=PLAIN)
    with Memory(standby.address(schema="m", standby_lag_ms="0"), settings=PLAIN) as reader:
        assert len(reader.recall("zebras")) == 1
