"""Copies of stores: everything in them, onto files and servers and back, interrupted, refused and compared."""

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager

import apsw
import pytest

from recallite import Memory, Settings, copy_store
from recallite.errors import InvalidInput, RecalliteError, StoreCorrupt, StoreError
from recallite.store.opening import open_store
from recallite.store.sqlite.encryption import ciphers_version
from recallite.store.sqlite.schema import DERIVED
from recallite.text.words import tokenize
from recallite_postgres import copy_store as copying
from recallite_postgres.copied_rows import COPIED, rows_of
from recallite_postgres.tenant_calls import Tenants
from tests.unit.core.memory.support import raw, scored
from tests.unit.core.store.full import fill

PLAIN = Settings(embedder="none", index_snapshot=False)
# Of the file alone: what it derives, and what is each store's own.
NOT_COPIED = {"feed", *(name for name in DERIVED if name.startswith(("statement_", "text_"))), "synced"}
SECRET = "s3cr3t-w0rd"


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A file with rows in every table, closed."""
    folder = tmp_path_factory.mktemp("full")
    path = folder / "agent.db"
    fill(path, folder)
    return path


def exported(place, scope=None):
    """What `export` says of a store, line by line; of a copy of a file, since it compares what waits first."""
    lines = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        place = shutil.copy(place, folder) if os.path.exists(place) else place
        with Memory(place, settings=PLAIN) as memory:
            memory.transfer.export(lines, vectors=True, scope=scope)
    return lines.getvalue().splitlines()


@contextmanager
def reading(place):
    """A read transaction of a store."""
    with closing(open_store(place)) as store, store.read() as reader:
        yield reader


def test_every_table_is_copied_or_known_not_to_be(full):
    with raw(str(full)) as database:
        tables = {
            name
            for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if not name.startswith("sqlite_")
        }
        assert tables - COPIED.keys() == NOT_COPIED
        for name in COPIED:
            assert database.execute(f"SELECT count(*) FROM {name}").get > 0, f"the store has no {name}"


def test_a_server_has_the_same_columns(full, postgres_address):
    with reading(full) as file, reading(postgres_address) as server:
        for name in COPIED:
            assert sorted(rows_of(file).columns(name)) == sorted(rows_of(server).columns(name)), name


@pytest.fixture(params=["file", "server"])
def target(request, tmp_path):
    """A place where there is no store yet."""
    if request.param == "file":
        return str(tmp_path / "copy.db")
    return request.getfixturevalue("postgres_address")


def test_a_copy_has_everything_and_goes_on(full, target):
    before = full.read_bytes()
    told = []
    done = copy_store(full, target, access_tokens=True, on_progress=lambda *now: told.append(now))
    assert done.ok, done.problems
    assert done.recalls == 32
    assert not done.source_changed
    assert set(done.rows) == COPIED.keys()
    assert told[-1] == (2 * sum(done.rows.values()),) * 2
    assert full.read_bytes() == before, "the source was changed"
    assert exported(target) == exported(full)
    with Memory(full, settings=PLAIN) as one, Memory(target, settings=PLAIN) as two:
        one._engine.comparing.stop()  # what waits to be compared is copied in the next case too
        assert two.store.verify().ok
        found = [each.sessions.search("rack", agent="ada") for each in (one, two)]
        said = [[(hit.session, hit.position, hit.content, hit.confidence) for hit in hits] for hits in found]
        assert said[0] == said[1] != []
        assert two.sessions.get("chat", agent="ada").messages() == one.sessions.get("chat", agent="ada").messages()
        assert two.episodes.snapshots(agent="ada") == one.episodes.snapshots(agent="ada")
        assert two.procedures.list(agent="ada") == one.procedures.list(agent="ada")
        assert two.experience.tips("deploy", agent="ada") == one.experience.tips("deploy", agent="ada")
        assert two.consolidator.cycles("ada") == one.consolidator.cycles("ada")
        assert two.knowledge.list() == one.knowledge.list()
        assert [item.content for item in two.working.agent("ada").load()] == ["the gateway is in rack 4"]
        assert scored(two.recall("which archive was restarted")) == scored(one.recall("which archive was restarted"))
        made = two.remember("Linus lives in Helsinki", scope="/team")
        two.update(made.id, text="Linus lives in Portland", scope="/team")
        two.sessions.open("chat", agent="ada").append({"role": "user", "content": "and the archive?"})
        assert two.recall("Where does Linus live?", limit=1)[0].id == made.id
        assert two.store.verify().ok


def test_a_server_is_copied_to_a_file_and_to_another_server(full, postgres_address, postgres_server, tmp_path):
    copy_store(full, postgres_address, access_tokens=True)
    back = tmp_path / "back.db"
    assert copy_store(postgres_address, back, access_tokens=True).ok
    assert exported(back) == exported(full)
    address = postgres_address + "_b"
    try:
        done = copy_store(postgres_address, address)
        assert done.ok, done.problems
        assert exported(address) == exported(full)
    finally:
        postgres_server.execute(f"DROP SCHEMA IF EXISTS {address.rpartition('schema=')[2]} CASCADE")


def test_the_past_of_a_memory_that_moved_is_on_a_server_where_the_memory_is(tmp_path, postgres_address):
    path = tmp_path / "moved.db"
    with Memory(path, settings=PLAIN) as memory:
        moved = memory.remember("said elsewhere", scope="/ben", source="notes", tags=["old"])
        memory.update(moved.id, text="said here")
        memory.update(moved.id, scope="/ada")
    assert copy_store(path, postgres_address).ok
    with Memory(postgres_address, settings=PLAIN) as copy:
        versions = copy.history(moved.id)
        assert [(each.scope, each.source, each.tags) for each in versions] == [("/ada", "notes", ("old",))] * 2
        assert copy.store.verify().ok
        assert copy.scoped("/ada").forget(moved.id).versions == 1


def test_ids_that_were_given_are_not_given_again(full, target, tmp_path):
    copy_store(full, target)
    again = tmp_path / "again.db"
    copy_store(target, again)
    for place in (target, again):
        with reading(full) as one, reading(place) as two:
            given = rows_of(one).last_ids()
            assert given["record"] > rows_of(one).count("record", "/")
            assert rows_of(two).last_ids().items() >= given.items()


def test_access_tokens_stay_behind_unless_asked_for(full, tmp_path):
    done = copy_store(full, tmp_path / "without.db")
    assert "access_token" not in done.rows
    assert copy_store(full, tmp_path / "with.db", access_tokens=True).rows["access_token"] == 1


def test_a_part_has_its_scope_and_nothing_of_others(full, target):
    done = copy_store(full, target, scope="/team/ada")
    assert done.ok, done.problems
    assert done.recalls > 0
    assert exported(target, "/team/ada") == exported(full, "/team/ada")
    with Memory(target, settings=PLAIN) as part, Memory(full, settings=PLAIN) as whole:
        assert part.store.verify().ok
        assert [each.scope for each in part.scopes()] == ["/team/ada"]
        assert part.count() == whole.count(scope="/team/ada") == 43
        assert part.recall("Where does Ada live?", scope="/team/ada")[0].text == "Ada lives in Oslo"
        assert part.knowledge.list() == []
    with reading(target) as reader:
        assert reader.lexicon.lookup(tokenize("gateway scheduler archive")).keys() == {*tokenize("scheduler")}
        assert reader.meta.identity() is None


@pytest.mark.skipif(ciphers_version() is None, reason="apsw-sqlite3mc is not installed: the ciphers of SQLite")
def test_a_copy_of_an_encrypted_file_has_its_key_or_another(full, tmp_path):
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    copy_store(full, tmp_path / "plain.db")
    with Memory(tmp_path / "plain.db", settings=PLAIN) as memory:
        memory.store.rekey("a passphrase")
    assert copy_store(tmp_path / "plain.db", first, key="a passphrase").ok
    assert copy_store(first, second, key="a passphrase", target_key="another").ok
    with Memory(first, settings=PLAIN, key="a passphrase") as one, Memory(second, settings=PLAIN, key="another") as two:
        assert one.count() == two.count() > 0


def test_a_tenant_is_told_that_the_owner_copies(full, tmp_path, postgres_address, postgres_server):
    copy_store(full, postgres_address)
    postgres_server.execute("CREATE ROLE copying_tenant LOGIN")
    address = postgres_server.address(schema=postgres_address.rpartition("schema=")[2], user="copying_tenant")
    try:
        with Memory(postgres_address, settings=PLAIN) as memory:
            tenants = Tenants(memory)
            tenants.grant("copying_tenant", "/team")
            with Memory(address, settings=PLAIN) as confined:
                assert sorted(each.tag for each in confined.tags()) == sorted(
                    each.tag for each in memory.scoped("/team").tags()
                )
            for places in ((address, tmp_path / "copy.db"), (full, address)):
                with pytest.raises(InvalidInput, match="needs the owner"):
                    copy_store(*places)
            tenants.revoke("copying_tenant")
    finally:
        postgres_server.execute("DROP OWNED BY copying_tenant")
        postgres_server.execute("DROP ROLE copying_tenant")


def test_a_tenant_does_not_open_an_unfinished_copy(full, postgres_address, postgres_server):
    with Memory(postgres_address, settings=PLAIN) as memory:
        postgres_server.execute("CREATE ROLE early_tenant LOGIN")
        Tenants(memory).grant("early_tenant", "/team")
    try:
        killed(full, postgres_address, 0.4)
        with pytest.raises(StoreError, match="unfinished copy"):
            Memory(postgres_server.address(schema=postgres_address.rpartition("schema=")[2], user="early_tenant"))
    finally:
        postgres_server.execute("DROP OWNED BY early_tenant")
        postgres_server.execute("DROP ROLE early_tenant")


_KILLED = """
import os, signal, sys
from recallite import copy_store
from recallite.store.sql import maintenance
maintenance._ROWS = maintenance._LARGE_ROWS = 30
def report(done, total):
    if done > total * float(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
copy_store(sys.argv[1], sys.argv[2], on_progress=report)
"""


def killed(source, target, share):
    """Copy in another process that is killed when it has copied that share."""
    ended = subprocess.run([sys.executable, "-c", _KILLED, str(source), str(target), str(share)], check=False)
    assert ended.returncode == -9


@pytest.mark.parametrize("share", [0.1, 0.4, 0.9])
def test_a_copy_that_was_killed_is_finished_by_the_same_call(full, target, share):
    killed(full, target, share)
    with pytest.raises(StoreError, match="unfinished copy"):
        Memory(target)
    with pytest.raises(InvalidInput, match="unfinished copy"):
        copy_store(full, target, scope="/team")
    done = copy_store(full, target)
    assert done.ok, done.problems
    assert done.resumed > 0
    assert exported(target) == exported(full)
    with Memory(target, settings=PLAIN) as memory:
        assert memory.store.verify().ok


def test_a_source_that_changed_meanwhile_is_copied_anew(tmp_path, target):
    source = tmp_path / "source.db"
    with Memory(source, settings=PLAIN) as memory:
        ids = memory.remember_many(f"fact {number}" for number in range(50))
    killed(source, target, 0.4)
    with Memory(source, settings=PLAIN) as memory:
        memory.update(ids[7], text="another fact")
        memory.forget(ids[9])
    done = copy_store(source, target)
    assert done.ok, done.problems
    assert done.resumed == 0
    assert exported(target) == exported(source)


def test_a_source_that_is_written_to_is_copied_as_it_was(full, tmp_path):
    source = tmp_path / "source.db"
    copy_store(full, source)
    with Memory(source, settings=PLAIN) as memory:
        before = memory.count()
        written = []

        def write(done, total):
            if not written:
                written.append(memory.remember("Written during the copy"))

        done = copy_store(source, tmp_path / "copy.db", on_progress=write)
    assert done.ok, done.problems
    assert done.source_changed
    assert done.recalls == 0
    with Memory(tmp_path / "copy.db", settings=PLAIN) as memory:
        assert memory.count() == before


@pytest.mark.parametrize("write", ["memory", "session"])
def test_a_target_with_content_is_refused_and_left_as_it_is(full, target, write):
    with Memory(target, settings=PLAIN) as memory:
        if write == "memory":
            memory.remember("mine")
        else:
            memory.sessions.open("mine").append({"role": "user", "content": "mine"})
    with pytest.raises(InvalidInput, match="not empty"):
        copy_store(full, target)
    with Memory(target, settings=PLAIN) as memory:
        assert memory.count() == (write == "memory")
        assert len(memory.sessions.list()) == (write == "session")


def test_a_target_whose_memories_were_forgotten_is_empty(full, target):
    with Memory(target, settings=PLAIN) as memory:
        memory.forget(memory.remember("gone soon", tags=["old"], kind="odd").id)
    assert copy_store(full, target).ok
    assert exported(target) == exported(full)


def test_what_differs_is_named(full, tmp_path, monkeypatch):
    finish = copying._Copy._differences

    def falsified(self, reader):
        with self._target.atomic() as writer:
            writer.connection.execute("UPDATE record SET text = 'falsified' WHERE id = 5")
            writer.connection.execute("DELETE FROM link WHERE source_id = (SELECT min(source_id) FROM link)")
        return finish(self, reader)

    monkeypatch.setattr(copying._Copy, "_differences", falsified)
    done = copy_store(full, tmp_path / "copy.db")
    assert not done.ok
    assert [problem.partition(":")[0] for problem in done.problems] == ["record", "link"]
    monkeypatch.undo()
    assert copy_store(full, tmp_path / "copy.db").ok, "the same call mends it"


def test_other_hits_are_named(full, tmp_path, monkeypatch):
    recall = copying.recall_queries

    def fewer(engine, *rest):
        return [hits[:-1] if "copy" in engine.store.path else hits for hits in recall(engine, *rest)]

    monkeypatch.setattr(copying, "recall_queries", fewer)
    done = copy_store(full, tmp_path / "copy.db")
    assert done.recalls == 32
    assert all(problem.startswith("recall of ") for problem in done.problems)
    assert done.problems


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE record SET importance = 'high' WHERE id = 5",
        "UPDATE record SET text = CAST(x'ff41' AS TEXT) WHERE id = 5",
        "UPDATE token_code SET codes = 'none' WHERE vector_id = 5",
        "UPDATE session SET created_at = 'yesterday'",
    ],
)
def test_a_damaged_row_is_named_and_the_copy_stays_unfinished(full, tmp_path, damage):
    source = tmp_path / "source.db"
    source.write_bytes(full.read_bytes())
    with apsw.Connection(str(source)) as database:
        database.execute("PRAGMA ignore_check_constraints = 1")
        database.execute(damage)
    with pytest.raises(StoreCorrupt, match=r"source\.db"):
        copy_store(source, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="unfinished copy"):
        Memory(tmp_path / "copy.db")


def test_a_damaged_page_is_an_error_of_the_source(full, tmp_path):
    source = tmp_path / "source.db"
    data = bytearray(full.read_bytes())
    for page in range(8, len(data) // 4096):
        data[page * 4096 : page * 4096 + 16] = b"\xff" * 16
    source.write_bytes(data)
    with pytest.raises(StoreCorrupt, match=r"source\.db"):
        copy_store(source, tmp_path / "copy.db")


def test_a_source_that_is_not_there_is_not_made(tmp_path, postgres_address):
    with pytest.raises(InvalidInput, match="there is no store"):
        copy_store(tmp_path / "none.db", tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="there is no store"):
        copy_store(postgres_address, tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="there is no store"):
        copy_store(":memory:", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_bad_places_are_refused_before_anything_is_made(full, tmp_path):
    with pytest.raises(InvalidInput, match="two places"):
        copy_store(full, full)
    with pytest.raises(InvalidInput, match=":memory:"):
        copy_store(full, ":memory:")
    with pytest.raises(InvalidInput, match="no scope /nowhere"):
        copy_store(full, tmp_path / "copy.db", scope="/nowhere")
    with pytest.raises(InvalidInput, match="not absolute"):
        copy_store(full, tmp_path / "copy.db", scope="team")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://ada:{SECRET}@127.0.0.1:1/db?server_wait_ms=1000",
        f"postgresql://ada:{SECRET}/x@127.0.0.1:1/db",
        f"postgres:/ada:{SECRET}@127.0.0.1:1/db",
        f"postgresq://ada:{SECRET}@127.0.0.1:1/db",
        f"postgresql://ada:{SECRET}@127.0.0.1:1/db?schema=A-B",
    ],
)
@pytest.mark.parametrize("place", ["source", "target"])
def test_no_error_repeats_a_password(full, address, place):
    pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
    with pytest.raises(RecalliteError) as raised:
        copy_store(*((address, full) if place == "source" else (full, address)))
    fault = raised.value
    while fault is not None:
        assert SECRET not in str(fault)
        assert SECRET not in repr(fault)
        fault = fault.__cause__ or fault.__context__


def test_the_later_of_two_copies_to_a_place_wins(full, tmp_path):
    target = tmp_path / "copy.db"
    inner = []

    def report(done, total):
        if not inner:
            inner.append(None)
            inner[0] = copy_store(full, target)

    with pytest.raises(StoreError, match="another copy"):
        copy_store(full, target, on_progress=report)
    assert inner[0].ok
    assert exported(target) == exported(full)


def test_the_report_is_json(full, tmp_path):
    done = copy_store(full, tmp_path / "copy.db", verify=False)
    assert (done.ok, done.recalls) == (True, 0)
    told = json.loads(done.to_json())
    assert told["records"] == done.rows["record"]
