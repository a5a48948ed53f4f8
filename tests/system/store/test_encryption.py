"""Encrypted stores, where SQLite3 Multiple Ciphers is installed: what lies on the disk, wrong keys, rekeying."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from recallite import AsyncMemory, Memory, Settings, restore_store
from recallite.errors import InvalidInput, NotADatabase, StoreError, StoreUnavailable, WrongKey
from recallite.store.sqlite.encryption import Key
from tests.raising import raises

CIPHERS = getattr(apsw, "mc_version", None)
encrypted = pytest.mark.skipif(CIPHERS is None, reason="apsw-sqlite3mc is not installed in place of apsw")
plain = pytest.mark.skipif(CIPHERS is not None, reason="apsw-sqlite3mc is installed in place of apsw")
PLAIN = Settings(embedder="none")
KEY, OTHER = "correct horse battery staple", "raw:" + "5a" * 32
SECRET = "The vault of Zanzibar opens at midnight"


@pytest.fixture
def locked(path):
    """An encrypted store with one memory, closed."""
    with Memory(path, settings=PLAIN, key=KEY) as memory:
        memory.remember(SECRET)
    return path


def texts(path, key=None):
    with Memory(path, settings=PLAIN, key=key) as memory:
        assert memory.store.verify().ok
        return [record.text for record in memory.list(limit=None)]


def holds(folder, *words):
    """Files of a folder in which any of the words stands."""
    return sorted(
        file.name
        for file in Path(folder).rglob("*")
        if file.is_file() and any(word.encode() in file.read_bytes() for word in words)
    )


@encrypted
def test_nothing_is_on_the_disk_in_the_clear(path, tmp_path):
    with Memory(path, settings=PLAIN, key=KEY) as memory:
        ids = memory.remember_many([f"{SECRET}, said guest {number}" for number in range(400)])
        memory.forget(ids[:100])
        memory.store.backup(tmp_path / "copy.db")
        assert len(memory.recall("Zanzibar midnight", limit=5)) == 5
        assert Path(path + "-wal").stat().st_size > 0
        assert holds(tmp_path, "Zanzibar", "zanzibar", "SQLite format", "CREATE TABLE") == []
        assert memory.store.vacuum() >= 0
        assert memory.store.rebuild().ok
        assert memory.store.stats().encrypted
    assert holds(tmp_path, "Zanzibar", "zanzibar", "SQLite format", "CREATE TABLE") == []
    assert len(texts(str(tmp_path / "copy.db"), KEY)) == 300


@encrypted
@pytest.mark.parametrize("replace", [shutil.copyfile, os.replace, None])
def test_a_backup_takes_the_place_of_an_encrypted_store_that_is_open(locked, tmp_path, replace):
    with Memory(locked, settings=PLAIN, key=KEY) as memory:
        backup = memory.store.backup(tmp_path / "copy.db")
        memory.remember_many([f"The lamp {number} is red" for number in range(20)])
        memory.recall("lamp")
        if replace is None:
            restore_store(backup, locked, key=KEY, settings=PLAIN, discard_old=True)
        else:
            replace(backup, locked)
        assert memory.recall("lamp") == []
        memory.remember("The desk is green")
        with Memory(locked, settings=PLAIN, key=KEY) as other:
            assert other.count() == 2
    assert sorted(texts(locked, KEY)) == ["The desk is green", SECRET]
    assert holds(tmp_path, "Zanzibar", "lamp", "desk") == []


@encrypted
def test_a_backup_with_another_key_changes_nothing(locked, tmp_path):
    with Memory(locked, settings=PLAIN, key=KEY) as memory:
        backup = memory.store.backup(tmp_path / "copy.db")
        memory.remember("The desk is green")
    with pytest.raises(WrongKey, match=r"copy\.db"):
        restore_store(backup, locked, key=OTHER, settings=PLAIN)
    assert len(texts(locked, KEY)) == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["agent.db", "copy.db"]


@encrypted
def test_a_large_store_has_no_index_beside_it(path, monkeypatch):
    monkeypatch.setattr("recallite.index.snapshot._SMALLEST", 1)
    with Memory(path, settings=PLAIN) as memory:
        memory.remember(SECRET)
        memory.recall("Zanzibar")
    assert Path(path + "-index").exists()
    with Memory(path, settings=PLAIN) as memory:
        memory.store.rekey(KEY)
        memory.recall("Zanzibar")
        assert any("no index is kept beside it" in note for note in memory.store.stats().notes)
    assert holds(Path(path).parent, "Zanzibar", "zanzibar") == []
    assert not Path(path + "-index").exists()


@encrypted
@pytest.mark.parametrize("key", [None, "another", OTHER])
def test_without_its_key_a_store_stays_shut(locked, key):
    before = Path(locked).read_bytes()
    with pytest.raises(WrongKey) as refused:
        Memory(locked, settings=PLAIN, key=key)
    assert ("is encrypted: give its key" if key is None else "cannot be read with this key") in str(refused.value)
    assert Path(locked).read_bytes() == before
    assert texts(locked, KEY) == [SECRET]


@encrypted
def test_a_key_for_a_plain_file_is_refused(on_disk):
    on_disk.remember(SECRET)
    with pytest.raises(WrongKey, match="is not encrypted and a key is given"):
        Memory(on_disk.path, settings=PLAIN, key=KEY)


@encrypted
@pytest.mark.parametrize("key", [None, KEY])
def test_another_file_is_no_database_with_a_key_or_without(tmp_path, key):
    file = tmp_path / "notes.txt"
    file.write_text("nothing of a database\n" * 300)
    with pytest.raises(NotADatabase):
        Memory(file, settings=PLAIN, key=key)
    assert file.read_text() == "nothing of a database\n" * 300


@encrypted
def test_rekeying_there_and_back(on_disk):
    path = on_disk.path
    on_disk.remember(SECRET)
    on_disk.close()
    steps = (None, KEY, "lighthouse"), (KEY, OTHER, "umbrella"), (OTHER, KEY, "violin"), (KEY, None, "walrus")
    for old, new, note in steps:
        with Memory(path, settings=PLAIN, key=old) as memory:
            memory.recall("Zanzibar")
            memory.store.rekey(new)
            memory.remember(note)
            assert memory.recall("Zanzibar")[0].text == SECRET
            assert memory.store.stats().encrypted == (new is not None)
        if new is not None:
            assert holds(Path(path).parent, "Zanzibar", "zanzibar") == []
            with pytest.raises(WrongKey):
                Memory(path, settings=PLAIN, key=old)
    assert len(texts(path)) == 5


@encrypted
def test_rekeying_waits_for_nobody_and_changes_nothing_where_another_has_the_file(locked):
    quick = Settings(embedder="none", busy_timeout_ms=20)
    with Memory(locked, settings=quick, key=KEY) as other:
        other.recall("Zanzibar")
        with Memory(locked, settings=quick, key=KEY) as memory:
            with raises(StoreUnavailable, "locked"):
                memory.store.rekey(OTHER)
            memory.remember("still there")
        assert len(other.list()) == 2
    assert len(texts(locked, KEY)) == 2


@encrypted
def test_a_process_killed_while_rekeying_leaves_the_old_key_or_the_new(path):
    with Memory(path, settings=PLAIN, key=KEY) as memory:
        memory.remember_many([f"{SECRET} {'x' * 500} {number}" for number in range(1_500)])
    code = (
        "import sys\nfrom recallite import Memory, Settings\n"
        "memory = Memory(sys.argv[1], settings=Settings(embedder='none'), key=sys.argv[2])\n"
        "keys = [sys.argv[2], *sys.argv[3:]]\nprint('ready', flush=True)\n"
        "while True:\n    keys.append(keys.pop(0)); memory.store.rekey(keys[0] or None)\n"
    )
    key, found = KEY, set()
    for after_ms in (5, 30, 60, 90, 130, 210):
        running = subprocess.Popen(
            [sys.executable, "-c", code, path, key, *({KEY, OTHER} - {key})], stdout=subprocess.PIPE
        )
        running.stdout.readline()
        time.sleep(after_ms / 1000)  # the moment of the kill is what is tried; nothing is waited for
        running.send_signal(signal.SIGKILL)
        running.communicate()
        opened = [each for each in (KEY, OTHER) if opens(path, each)]
        assert len(opened) == 1
        (key,) = opened
        found.add(key)
        assert len(texts(path, key)) == 1_500


def opens(path, key):
    try:
        Memory(path, settings=PLAIN, key=key).close()
    except WrongKey:
        return False
    return True


@encrypted
def test_two_processes_may_begin_a_store_at_once(path):
    code = (
        "import sys\nfrom recallite import Memory, Settings\nsys.stdin.readline()\n"
        "with Memory(sys.argv[1], settings=Settings(embedder='none'), key='k') as m: m.remember(sys.argv[2])\n"
    )
    words = ["lighthouse", "umbrella", "violin", "walrus"]  # of equal ones the store would keep one
    running = [
        subprocess.Popen([sys.executable, "-c", code, path, word], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for word in words
    ]
    for each in running:
        each.stdin.write(b"\n")
        each.stdin.flush()
    assert [each.communicate()[1] for each in running] == [b""] * 4
    assert sorted(texts(path, "k")) == words


@encrypted
def test_another_program_opens_it_with_the_passphrase(locked):
    connection = apsw.Connection(locked)
    connection.pragma("cipher", "chacha20")
    connection.pragma("key", KEY)
    assert connection.execute("SELECT text FROM record").get == SECRET
    connection.close()


@encrypted
def test_a_key_shows_nowhere(locked, capfd):
    key = Key(KEY)
    assert KEY not in repr(key) + str(key)
    with pytest.raises(TypeError):
        pickle.dumps(key)
    memory = Memory(locked, settings=PLAIN, key=KEY)
    assert KEY not in repr(memory) + repr(vars(memory._engine.store)) + repr(memory.store.stats())
    memory.close()
    for wrong in ("raw:12", "nul\x00" + KEY, "\ud800" + KEY, 7):
        with pytest.raises((InvalidInput, WrongKey)) as refused:
            Memory(locked, settings=PLAIN, key=wrong)
        assert KEY not in str(refused.value)
    asynchronous = AsyncMemory(locked, key=KEY)
    assert KEY not in repr(vars(asynchronous))


@encrypted
def test_asynchronous(locked):
    async def use():
        async with AsyncMemory(locked, settings=PLAIN, key=KEY) as memory:
            await memory.store.rekey(OTHER)
            return [record.text for record in await memory.list()]

    assert asyncio.run(use()) == [SECRET]
    assert texts(locked, OTHER) == [SECRET]


@encrypted
def test_the_key_comes_from_settings_and_the_environment(locked, tmp_path, monkeypatch):
    file = tmp_path / "key"
    file.write_text(KEY + "\n")
    with Memory(locked, settings=Settings(embedder="none", key_file=str(file))) as memory:
        assert memory.count() == 1
    for name, value in (("RECALLITE_KEY", KEY), ("RECALLITE_KEY_FILE", str(file))):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert texts(locked) == [SECRET]
    with pytest.raises(InvalidInput, match="cannot be read"):
        Memory(locked, settings=Settings(key_file=str(tmp_path / "none")))


@encrypted
def test_the_command_line(locked, tmp_path):
    file = tmp_path / "key"
    file.write_text("from a file\n")

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "recallite", "--db", locked, *arguments], capture_output=True, text=True,
            env={**os.environ, "RECALLITE_EMBEDDER": "none", **environment},
        )  # fmt: skip

    shut = run("list")
    assert (shut.returncode, "RECALLITE_KEY" in shut.stderr) == (3, True)
    assert SECRET in run("list", RECALLITE_KEY=KEY).stdout
    assert run("rekey", RECALLITE_KEY=KEY).returncode == 2
    changed = run("rekey", "--new-key-file", str(file), "--json", RECALLITE_KEY=KEY)
    assert json.loads(changed.stdout) == {"encrypted": True}
    assert SECRET in run("list", RECALLITE_KEY_FILE=str(file)).stdout
    assert run("rekey", "--decrypt", RECALLITE_KEY="from a file").returncode == 0
    assert run("rekey", RECALLITE_NEW_KEY=KEY).returncode == 0
    assert texts(locked, KEY) == [SECRET]


@encrypted
def test_what_would_lie_beside_it_in_the_clear_is_refused(path, monkeypatch):
    monkeypatch.setenv("RECALLITE_LOW_MEMORY", "1")
    with pytest.raises(InvalidInput, match="LOW_MEMORY"):
        Memory(path, settings=Settings(embedder="none"), key=KEY)
    monkeypatch.delenv("RECALLITE_LOW_MEMORY")
    with Memory(":memory:", settings=PLAIN) as memory, pytest.raises(InvalidInput, match="no file"):
        memory.store.rekey(KEY)
    with Memory(path, settings=PLAIN, key=KEY) as memory, pytest.raises(InvalidInput, match="whole file"):
        memory.scoped("/a").store.rekey(OTHER)


@plain
def test_without_ciphers_a_key_says_how_to_install_them(path):
    with raises(StoreError, "no_ciphers", match="pip install apsw-sqlite3mc"):
        Memory(path, settings=PLAIN, key=KEY)
    assert not Path(path).exists()


def test_an_encrypted_file_is_told_from_another_without_ciphers_too(path):
    # What the ciphers leave of the first bytes: page size, versions, reserved bytes and SQLite's fractions.
    Path(path).write_bytes(bytes(range(7, 23)) + b"\x10\x00\x02\x02\x20\x40\x20\x20" + os.urandom(8_168))
    with pytest.raises(WrongKey, match="is encrypted: give its key"):
        Memory(path, settings=PLAIN)


@encrypted
def test_an_erasure_is_checked_in_the_pages_as_they_read(path):
    with Memory(path, key=KEY, settings=PLAIN) as memory:
        memory.remember("The ship left the harbour")
        id = memory.remember("Zaphod moved to 7 Quuxington Road").id
        assert b"Quuxington" in memory._engine.store._writer.connection.serialize("main")
        receipt = memory.forget(id, receipt=True).receipt
        assert receipt.complete
        assert receipt.searched > 2
        assert b"Quuxington" not in memory._engine.store._writer.connection.serialize("main")


@encrypted
def test_files_for_other_devices_are_encrypted(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with (
        Memory(tmp_path / "one.db", settings=PLAIN, key=KEY) as one,
        Memory(tmp_path / "two.db", settings=PLAIN, key=KEY) as two,
    ):
        stored = one.remember(SECRET)
        one.transfer.sync(folder)
        assert not holds(folder, "vault", stored.id, "sha256", "merged")
        assert two.transfer.sync(folder).merged == 1
        assert two.get(stored.id).text == SECRET


@encrypted
@pytest.mark.parametrize("key", [None, OTHER])
def test_devices_without_the_key_write_nothing_for_others(tmp_path, key):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Memory(tmp_path / "one.db", settings=PLAIN, key=KEY) as one:
        one.remember(SECRET)
        one.transfer.sync(folder)
        before = sorted(folder.rglob("*"))
        with Memory(tmp_path / "two.db", settings=PLAIN, key=key) as two:
            two.remember("The office closes at six")
            with pytest.raises(WrongKey, match="give all"):
                two.transfer.sync(folder)
        assert sorted(folder.rglob("*")) == before
        device = folder / ("0" * 12)
        device.mkdir()
        (device / "00000001.sync").write_bytes(b'{"number":1}\n')
        with pytest.raises(WrongKey, match="is not encrypted"):
            one.transfer.sync(folder)


@encrypted
def test_a_changed_encrypted_file_for_devices_is_not_merged(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with (
        Memory(tmp_path / "one.db", settings=PLAIN, key=KEY) as one,
        Memory(tmp_path / "two.db", settings=PLAIN, key=KEY) as two,
    ):
        one.remember(SECRET)
        device = one.transfer.sync(folder).device
        file = folder / device / "00000001.sync"
        whole = file.read_bytes()
        for place in range(5_000, len(whole), 997):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            assert two.transfer.sync(folder).merged == 0
            file.write_bytes(whole[:place])
            assert two.transfer.sync(folder).merged == 0
        file.write_bytes(whole)
        assert two.transfer.sync(folder).merged == 1
