"""Forgetting with a receipt: what is gone is gone from every byte of the files, and the receipt says so."""

from __future__ import annotations

import io
import random
from pathlib import Path

import apsw
import pytest

from recallite import Memory, Settings, restore_store
from recallite.errors import InvalidInput, StoreError
from recallite.store.sql import maintenance as searching
from recallite.store.sql.maintenance import found_in
from recallite.store.sqlite import maintenance
from recallite.store.sqlite.store import SqliteStore
from tests.conftest import PLAIN
from tests.unit.core.memory.support import WordEmbedder

SECRETS = (
    b"Beeblebrox",
    b"Xylophone",
    b"Quuxington",
    b"078-05-1120",
    b"beeblebrox",
    b"xylophon",
    b"zaphod",
    b"heart-of-gold",
)


def files_of(path):
    return [Path(path + ending) for ending in ("", "-wal", "-index", "-index-part") if Path(path + ending).exists()]


def stored(memory):
    """A memory with everything that can hang on one, among two hundred others."""
    others = memory.remember_many([f"The ship {number} left the harbour at {number % 24} h" for number in range(200)])
    memory.store.catch_up()  # else the files change while they are searched
    record = memory.remember(
        "Zaphod Beeblebrox lives in 42 Xylophone Street", scope="/users/zaphod", tags=["heart-of-gold"],
        metadata={"ssn": "078-05-1120"}, source="chat-of-zaphod", context="Zaphod's neighbour",
    )  # fmt: skip
    memory.update(record.id, text="Zaphod Beeblebrox moved to 7 Quuxington Road")
    memory.link(record.id, others[0])
    memory.recall("Where does Zaphod live?")
    return record.id


def test_nothing_is_left_in_any_byte_of_the_files(path):
    with Memory(path, embedder=WordEmbedder()) as memory:
        id = stored(memory)
        assert any(secret in file.read_bytes() for file in files_of(path) for secret in SECRETS)
        gone = memory.forget(id, receipt=True)
        assert [secret for file in files_of(path) for secret in SECRETS if secret in file.read_bytes()] == []
        receipt = gone.receipt
        assert receipt.complete
        assert receipt.problems == ()
        assert receipt.ids == (id,)
        assert receipt.elsewhere == {}
        counted = {"record": 2, "link": 1, "tag": 1, "record_tag": 2, "scope": 1, "source": 1, "vector": 2}
        assert {table: receipt.removed[table] for table in counted} == counted
        assert receipt.files == {file.name: file.stat().st_size for file in files_of(path)}
        assert memory.store.verify().ok
        assert memory.recall("Which ship left the harbour?")
        assert memory.count() == 200


def test_what_others_hold_of_it_is_named(path):
    with Memory(path, settings=PLAIN) as memory:
        id = memory.remember("Zaphod moved to 7 Quuxington Road last week").id
        session = memory.sessions.open("s", agent="ada")
        session.append("user", "I heard that Zaphod moved to 7 Quuxington Road last week")
        receipt = memory.forget(id, receipt=True).receipt
    assert receipt.complete
    assert receipt.elsewhere == {"record.text": 1, "session_message.message": 1}


def test_what_holds_again_is_not_counted_against_what_is_gone(path):
    with Memory(path) as memory:
        old = memory.remember("The standup of team 1 is at nine")
        memory.remember("The standup of team 1 is at ten now")
        memory.restore(old.id)
        newest = memory.remember("The standup of team 1 is at eleven now")
        gone = memory.forget(newest.id, receipt=True)
        assert gone.holds_again
        assert gone.receipt.removed["record"] == 1
        assert min(gone.receipt.removed.values()) > 0


def test_what_rules_say_of_memories_is_no_text_of_them(path):
    with Memory(path, settings=PLAIN) as memory:
        for name in ("Zaphod", "Trillian"):
            old = memory.remember(f"{name} lives in Quuxington", created_at="2026-01-01")
            assert memory.remember(f"{name} moved to Xylophone Bay").supersedes == (old.id,)
            memory.remember(f"{name} works at Megadodo")
            assert memory.remember(f"{name} does not work at Megadodo").contradictions
        ids = [record.id for record in memory.list(limit=None, include_superseded=True) if "Zaphod" in record.text]
        receipt = memory.forget(ids, receipt=True).receipt
        assert "reason" not in " ".join(receipt.elsewhere)
        old, other, new = (memory.remember(f"Ship {number} left the dock").id for number in range(3))
        for one in (old, other):
            memory.supersede(one, new, reason="Zaphod told us so at lunch")
        receipt = memory.forget(old, receipt=True).receipt
        assert receipt.elsewhere["supersession.reason"] == 1  # a caller's own words


def test_a_reader_of_an_older_state_makes_it_incomplete(path):
    with Memory(path, settings=Settings(embedder="none", busy_timeout_ms=100)) as memory:
        id = stored(memory)
        reader = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchall()
        receipt = memory.forget(id, receipt=True).receipt
        assert not receipt.complete
        assert "its WAL could not be emptied" in receipt.problems[0]
        assert "are left in" in receipt.problems[1]
        reader.close()
        memory.store.vacuum()
        assert [secret for file in files_of(path) for secret in SECRETS if secret in file.read_bytes()] == []


def test_a_scope_goes_with_its_services_and_its_name(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("The ship left the harbour")
        memory.remember("Ada keeps the keys in the blue drawer", scope="/agents/ada")
        memory.sessions.open("monday", agent="ada").append("user", "Where are the keys of the boathouse?")
        memory.episodes.snapshot(messages=[], summary="Of boathouses", agent="ada")
        memory.experience.record(task_type="boathouse-query", tools=["search"], success=True, agent="ada")
        memory.knowledge.ingest(b"# Boathouses\n\nBy the water.\n", name="boathouses.md", scope="/agents/ada")
        receipt = memory.forget(scope="/agents/ada", receipt=True).receipt
        assert receipt.complete
        for table in ("session", "session_message", "session_snapshot", "tool_pattern", "document", "record", "scope"):
            assert receipt.removed[table] >= 1, table
        held = b"".join(file.read_bytes() for file in files_of(path))
        assert [word for word in (b"oathouse", b"agents/ada", b"blue drawer") if word in held] == []
        assert memory.remember("A new scope takes a number again", scope="/agents/grace").scope == "/agents/grace"
        assert [hit.text for hit in memory.recall("ship harbour")][:1] == ["The ship left the harbour"]
        assert memory.store.verify().ok


def test_another_handle_finds_what_is_left(path):
    with Memory(path, embedder=WordEmbedder()) as memory, Memory(path, embedder=WordEmbedder()) as other:
        id = stored(memory)
        assert other.recall("Where does Zaphod live?", scope="/users/zaphod")
        assert memory.forget(id, receipt=True).receipt.complete
        memory.remember("Trillian took the number of a scope", scope="/users/trillian")
        assert [hit.text for hit in other.recall("Trillian", scope="/users/trillian")] == [
            "Trillian took the number of a scope"
        ]
        assert not other.recall("Where does Zaphod live?", scope="/users/zaphod")


def test_a_scoped_handle_cannot_ask_for_one(on_disk):
    id = on_disk.remember("Kept", scope="/a").id
    with pytest.raises(InvalidInput, match="whole file"):
        on_disk.scoped("/a").forget(id, receipt=True)
    with pytest.raises(InvalidInput, match="receipt is 'yes'"):
        on_disk.forget(id, receipt="yes")
    assert on_disk.get(id).text == "Kept"


def test_in_memory_there_is_no_file_to_search(memory):
    receipt = memory.forget(memory.remember("Held in RAM alone").id, receipt=True).receipt
    assert receipt.complete
    assert receipt.files == {}


def test_where_the_file_cannot_be_compacted_the_receipt_says_so(path, monkeypatch):
    def full(store):
        with store.exclusive():
            raise apsw.FullError("database or disk is full")

    with Memory(path, embedder="none") as memory:
        id = memory.remember("Zaphod Beeblebrox lives in 42 Xylophone Street").id
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "compact", full)
            gone = memory.forget(id, receipt=True)
        assert gone.records == 1
        assert not gone.receipt.complete
        assert "could not be compacted" in gone.receipt.problems[0]
        assert "rolled back" not in gone.receipt.problems[0]
        assert memory.count() == 0


@pytest.mark.parametrize("fault", [StoreError("it failed", "io"), OSError(5, "Input/output error")])
def test_where_the_files_cannot_be_searched_the_receipt_says_so(on_disk, monkeypatch, fault):
    def fails(*_):
        raise fault

    id = on_disk.remember("Zaphod Beeblebrox lives in 42 Xylophone Street").id
    monkeypatch.setattr(maintenance, "_found_in_files", fails)
    gone = on_disk.forget(id, receipt=True)
    assert (gone.records, on_disk.count(), gone.receipt.complete) == (1, 0, False)
    assert "could not be searched" in gone.receipt.problems[0]


def test_a_file_that_a_backup_replaced_is_searched_too(path, tmp_path):
    with Memory(path, embedder="none") as memory:
        memory.remember("The ship left the harbour")
        memory.store.backup(tmp_path / "backup.db")
        memory.remember("Zaphod Beeblebrox lives in 42 Xylophone Street", id="zaphod")
    replaced = restore_store(tmp_path / "backup.db", path).replaced
    with Memory(path, embedder="none") as memory:
        memory.remember("Zaphod Beeblebrox lives in 42 Xylophone Street", id="zaphod")
        receipt = memory.forget("zaphod", receipt=True).receipt
        assert not receipt.complete
        assert receipt.problems == (
            f"{replaced}, which a backup replaced, holds some of what was forgotten: remove it",
        )
        ship = memory.remember("The ship Heart of Gold is in the dock").id
        assert memory.forget(ship, receipt=True).receipt.complete
        Path(replaced).unlink()
        memory.remember("Zaphod Beeblebrox lives in 42 Xylophone Street", id="zaphod")
        assert memory.forget("zaphod", receipt=True).receipt.complete


@pytest.mark.parametrize("name", ["agent.db", "a" * 230 + ".db"])
def test_a_copy_that_a_killed_restore_left_goes(tmp_path, name):
    left = tmp_path / f".{name[:200]}.0123abcd.part"
    with Memory(tmp_path / name, embedder="none") as memory:
        id = memory.remember("Zaphod Beeblebrox lives in 42 Xylophone Street").id
        memory.store.backup(left)
        others = tmp_path / ".other.db.0123abcd.part"
        others.write_bytes(b"of another store")
        assert memory.forget(id, receipt=True).receipt.complete
        assert not left.exists()
        assert others.exists()


def test_a_replaced_file_that_is_encrypted_may_hold_it_though_the_store_is_not(on_disk):
    path = Path(on_disk.path)
    replaced = path.with_name(f"{path.name}-before-20260101-120000")
    replaced.write_bytes(bytes(range(16)) + path.read_bytes()[16:24] + bytes(range(256)) * 16)
    gone = on_disk.forget(on_disk.remember("Zaphod Beeblebrox lives in 42 Xylophone Street").id, receipt=True)
    assert gone.receipt.problems == (
        f"{replaced}, which a backup replaced, may hold some of what was forgotten: remove it",
    )


def test_an_index_snapshot_goes(path):
    with Memory(path, settings=PLAIN) as memory:
        id = memory.remember("A text of some length").id
        Path(path + "-index").write_bytes(b"derived")
        receipt = memory.forget(id, receipt=True).receipt
    assert receipt.index_snapshot
    assert not Path(path + "-index").exists()


def test_an_index_snapshot_that_another_handle_takes_away_meanwhile_is_no_error(path, monkeypatch):
    monkeypatch.setattr(maintenance, "files_of", lambda path: [Path(path), Path(path + "-index-part")])
    with Memory(path, settings=PLAIN) as memory:
        receipt = memory.forget(memory.remember("A text of some length").id, receipt=True).receipt
    assert (receipt.complete, [*receipt.files]) == (True, [Path(path).name])


def test_every_sequence_is_found_wherever_it_stands(monkeypatch):
    monkeypatch.setattr(searching, "_CHUNK_BYTES", 64)
    seeded = random.Random(5)
    data = seeded.randbytes(1000)
    there = {data[place : place + size] for place in range(0, 990) for size in (8, 10, 32)}
    absent = {seeded.randbytes(9) for _ in range(50)} | {data[500:520] + b"!", data[-6:] + b"beyond"}
    assert found_in(io.BytesIO(data).read, there | absent) == there
    assert found_in(io.BytesIO().read, there) == set()
