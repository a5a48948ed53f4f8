"""An index is replaced only where its damage is proven by reading it, and then it is moved aside."""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
from contextlib import suppress

import apsw
import pytest

from recallite import Workspace
from recallite.errors import RecalliteError, StoreCorrupt, StoreError
from recallite.store.sqlite.restoring import proven_damage
from recallite_notes.opening import move_aside, moved_aside
from tests.unit.core.memory.support import WordEmbedder
from tests.unit.notes.support import config, dump, index_all, write


@pytest.fixture
def folder(tmp_path):
    for each in range(40):
        write(tmp_path / "notes", f"n{each}.md", f"# Note {each}\n\n" + "A zebra of a note. " * 40)
    index_all(tmp_path / "notes")
    return tmp_path / "notes"


def index_of(folder):
    return folder / ".recallite" / "index.db"


def said(folder):
    """The file's inode, and what it holds."""
    file = index_of(folder)
    connection = sqlite3.connect(file)
    rows = connection.execute("SELECT id, public_id, text FROM record ORDER BY id").fetchall()
    connection.close()
    return file.stat().st_ino, rows


def answers(folder):
    with Workspace(folder, config(), embedder="none") as workspace:
        return workspace.search("zebra", min_score=0.0, max_results=40)


def _fault(kind, extended):
    fault = kind("injected")
    fault.extendedresult = extended
    return fault


_CORRUPT = "corrupt, says SQLite"
_NO_DATABASE = "no database, says SQLite"
_PASSING = {
    "no descriptors": _fault(apsw.CantOpenError, apsw.SQLITE_CANTOPEN),
    "a read that fails": _fault(apsw.IOError, apsw.SQLITE_IOERR_READ),
    "a file that cannot be looked at": _fault(apsw.IOError, apsw.SQLITE_IOERR_FSTAT),
    "permissions": _fault(apsw.PermissionsError, apsw.SQLITE_PERM),
    "memory": _fault(apsw.NoMemError, apsw.SQLITE_NOMEM),
    "a lock": _fault(apsw.BusyError, apsw.SQLITE_BUSY),
    "a short read": _fault(apsw.IOError, apsw.SQLITE_IOERR_SHORT_READ),
    _CORRUPT: _fault(apsw.CorruptError, apsw.SQLITE_CORRUPT),
    _NO_DATABASE: _fault(apsw.NotADBError, apsw.SQLITE_NOTADB),
}
# Another process may be changing the key: the file is opened once more.
_ATTEMPTS = {_NO_DATABASE: 2}


@pytest.mark.parametrize(
    ("name", "times"),
    [
        (name, times)
        for name in _PASSING
        for times in (_ATTEMPTS.get(name, 1), 1_000)
        if (name, times) != (_CORRUPT, 1_000)
    ],
)
def test_a_fault_while_it_is_opened_loses_no_index(folder, monkeypatch, name, times):
    """Whatever SQLite says, a file that is sound when it is read stays."""
    fault = _PASSING[name]
    before = said(folder)
    opened, calls = apsw.Connection, []

    def connect(*arguments, **options):
        calls.append(arguments)
        if len(calls) <= times:
            raise fault
        return opened(*arguments, **options)

    monkeypatch.setattr("recallite.store.sqlite.connection.apsw.Connection", connect)
    with suppress(RecalliteError):  # what is no database is opened a second time: it may be changing its key
        assert len(answers(folder)) == 40
        assert times == 1
    monkeypatch.undo()
    assert calls
    assert said(folder) == before
    assert len(answers(folder)) == 40


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM, errno.EACCES])
def test_a_file_that_cannot_be_looked_at_loses_no_index(folder, monkeypatch, code):
    """The locks and the folder of the index, and `stat` of it, fail while it is open."""
    before = said(folder)
    with Workspace(folder, config(), embedder="none") as workspace:
        assert len(workspace.search("zebra", min_score=0.0, max_results=40)) == 40
        held = workspace._index.engine()
        opened, looked = os.open, os.stat

        def refuse(path, *arguments, **options):
            if os.path.basename(path).startswith("index.db"):
                raise OSError(code, os.strerror(code), str(path))
            return opened(path, *arguments, **options)

        def blind(path, *arguments, **options):
            if str(path).endswith("index.db"):
                raise OSError(code, os.strerror(code), str(path))
            return looked(path, *arguments, **options)

        with monkeypatch.context() as failing:
            failing.setattr(os, "open", refuse)
            failing.setattr(os, "stat", blind)
            with pytest.raises(StoreError, match=os.strerror(code)):
                workspace.index()
            assert len(workspace.search("zebra", min_score=0.0, max_results=40)) == 40
        assert workspace._index.engine() is held
    assert said(folder) == before


@pytest.mark.parametrize("code", [apsw.SQLITE_IOERR_READ, apsw.SQLITE_NOMEM, apsw.SQLITE_CANTOPEN])
def test_a_check_that_cannot_read_every_page_proves_nothing(folder, monkeypatch, code):
    """SQLite reports a page that it could not read as a finding of its integrity check."""
    from recallite.store.sqlite import restoring

    class Failing:
        def execute(self, *_):
            return [(f"Tree 5 page 9: unable to get the page. error code={code}",)]

    assert not restoring._whole(Failing())
    code = apsw.SQLITE_CORRUPT
    with pytest.raises(StoreCorrupt, match="page 9"):
        restoring._whole(Failing())


def _damage(file, how):
    data = bytearray(file.read_bytes())
    match how:
        case "garbage":
            file.write_bytes(b"not a database at all, " * 500)
        case "its header":
            file.write_bytes(b"\0" * 16 + data[16:])
        case "half":
            file.write_bytes(data[: len(data) // 2])
        case "pages":
            for page in range(1, len(data) // 4096):
                data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
            file.write_bytes(data)


@pytest.mark.parametrize("how", ["garbage", "its header", "half", "pages"])
def test_a_damaged_index_is_moved_aside_and_it_is_said(folder, how):
    file = index_of(folder)
    _damage(file, how)
    damaged = hashlib.sha256(file.read_bytes()).digest()
    with Workspace(folder, embedder="none") as workspace:
        found = workspace.search("zebra", min_score=0.0, max_results=40)
        assert len(found) == 40
        (aside,) = moved_aside(file)
        assert hashlib.sha256(aside.read_bytes()).digest() == damaged
        assert [str(aside) in each for each in found.problems] == [True]
        assert workspace.search("zebra", min_score=0.0).problems == ()
        assert [each.path for each in workspace.status().problems] == [str(aside)]


def test_an_index_run_that_finds_the_index_damaged_says_so(folder):
    _damage(index_of(folder), "half")
    result = index_all(folder)
    assert (result.files_indexed, len(result.problems)) == (40, 1)
    assert "the damaged one is" in result.problems[0].reason


def test_a_schema_of_another_version_is_moved_aside(folder):
    connection = sqlite3.connect(index_of(folder))
    connection.execute("PRAGMA user_version = 100")
    connection.close()
    assert index_all(folder).files_indexed == 40
    (aside,) = moved_aside(index_of(folder))
    assert sqlite3.connect(aside).execute("SELECT count(*) FROM document").fetchone() == (40,)


def test_a_checkpoint_that_was_killed_damaged_nothing(folder):
    # It writes the header, with the number of pages, before the pages themselves: they stand in the WAL.
    index = index_of(folder)
    connection = apsw.Connection(str(index))
    connection.pragma("wal_autocheckpoint", 0)
    connection.pragma("journal_mode", "wal")
    before = index.stat().st_size
    connection.execute("CREATE TABLE more (x); INSERT INTO more VALUES (zeroblob(100000))")
    copy, wal = folder / "copy.db", index.with_name(index.name + "-wal").read_bytes()
    (folder / "copy.db-wal").write_bytes(wal)
    connection.pragma("wal_checkpoint(TRUNCATE)")
    copy.write_bytes(index.read_bytes()[:before])
    connection.close()
    assert apsw.Connection(str(copy)).execute("PRAGMA quick_check").get == "ok"
    (folder / "copy.db-wal").write_bytes(wal)
    copy.write_bytes(index.read_bytes()[:before])
    assert proven_damage(str(copy), StoreError("no descriptors left", "read_only")) is None


def test_damaged_indexes_do_not_fill_the_folder(folder):
    file = index_of(folder)
    for each in range(6):
        file.write_bytes(b"damaged" * each)
        (file.parent / "index.db-wal").write_bytes(b"wal")
        move_aside(file)
    kept = moved_aside(file)
    assert [each.read_bytes() for each in kept] == [b"damaged" * each for each in (3, 4, 5)]
    assert len(list(file.parent.glob("index.db.damaged-*"))) == 6  # each with its WAL
    assert not file.exists()


def test_memories_that_are_damaged_are_nobodys_index(folder, tmp_path):
    """In the workspace's own folder too, what says that it is no index stays where it is."""
    from recallite import Memory

    file = index_of(folder)
    for each in file.parent.iterdir():
        each.unlink()
    with Memory(file, embedder="none") as memory:
        for each in range(200):
            memory.remember(f"Fact {each} about the sky. " * 20)
    data = bytearray(file.read_bytes())
    for page in range(len(data) // 4096 - 8, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    file.write_bytes(data)
    assert proven_damage(str(file), StoreCorrupt("not proven")) is not None  # a value that was read and is wrong
    fault = StoreCorrupt("a page")
    fault.__cause__ = apsw.CorruptError("a page")
    assert proven_damage(str(file), fault) is None


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE record SET text = 'A horse of a note.' WHERE id % 3 = 0",
        "DELETE FROM record_terms WHERE record_id % 2 = 0",
        "DELETE FROM term",
        "UPDATE vector SET value = zeroblob(length(value)) WHERE record_id % 2 = 0",
        "UPDATE document SET content_hash = zeroblob(32)",
    ],
)
def test_a_forced_index_repairs_what_sqlite_cannot_see(folder, damage):
    with Workspace(folder, config(), embedder=WordEmbedder()) as workspace:
        workspace.index()
        right = dump(workspace)
        with workspace._index.engine().store.atomic() as writer:
            writer.connection.execute(damage)
    with Workspace(folder, config(), embedder=WordEmbedder()) as workspace:
        workspace.index(force=True)
        assert dump(workspace) == right
