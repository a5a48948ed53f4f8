"""SQLite files of other programs are read, and left as they are."""

from __future__ import annotations

import json
import shutil
from itertools import islice

import apsw
import pytest

from recallite.errors import InvalidInput, NotADatabase, StoreCorrupt, StoreError
from recallite.store.sqlite.foreign import rows, tables


@pytest.fixture
def path(tmp_path):
    return tmp_path / "of another? program#1.db"


def made(path, *statements, mode="delete"):
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", mode)
    for each in statements:
        connection.execute(each)
    return connection


TABLE = 'CREATE TABLE [to do] (id INTEGER PRIMARY KEY, [a "b"] TEXT, n REAL, raw BLOB)'


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_tables_and_rows_of_a_closed_file(path, mode):
    two = "INSERT INTO [to do] VALUES (2, 'two', 0.5, x'00ff'), (1, NULL, 3, 'text')"
    made(path, TABLE, two, mode=mode).close()
    assert tables(path) == {"to do": ("id", 'a "b"', "n", "raw")}
    assert list(rows(path, "to do", ['a "b"', "n", "raw", "id"])) == [
        (None, 3.0, "text", 1),
        ("two", 0.5, b"\0\xff", 2),
    ]
    assert list(rows(path, "to do", ["id"], order_by=["n"])) == [(2,), (1,)]
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_rows_that_are_in_the_wal_only(path):
    with made(path, TABLE, "INSERT INTO [to do] (id) VALUES (7)", mode="wal"):
        assert list(rows(path, "to do", ["id"])) == [(7,)]


def test_a_wal_left_by_a_crash(path, tmp_path):
    left = tmp_path / "left.db"
    with made(path, TABLE, "INSERT INTO [to do] (id) VALUES (7)", mode="wal"):
        shutil.copy(path, left)
        shutil.copy(f"{path}-wal", f"{left}-wal")
    before = left.read_bytes()
    assert list(rows(left, "to do", ["id"])) == [(7,)]
    assert left.read_bytes() == before


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_texts_of_any_encoding(path, encoding):
    one = "INSERT INTO [to do] (id, n) VALUES (1, 'grün 🌱')"
    made(path, f"PRAGMA encoding = '{encoding}'", TABLE, one).close()
    assert list(rows(path, "to do", ["n"])) == [("grün 🌱",)]


def test_a_text_that_is_not_in_its_encoding(path):
    made(path, TABLE, "INSERT INTO [to do] (id, n) VALUES (1, CAST(x'61ff62' AS TEXT))").close()
    assert list(rows(path, "to do", ["n"])) == [("a\ufffdb",)]


def test_rows_come_in_the_order_of_their_ids_though_an_index_has_them(path):
    made(path, TABLE, "CREATE INDEX i ON [to do] (n)", "INSERT INTO [to do] (id, n) VALUES (1, 9), (2, 5)").close()
    assert list(rows(path, "to do", ["n"])) == [(9.0,), (5.0,)]


def test_a_change_while_a_file_is_read_is_told(path):
    made(path, TABLE, "INSERT INTO [to do] (id) VALUES (1), (2)", mode="wal").close()
    reading = rows(path, "to do", ["id"])
    assert next(reading) == (1,)
    made(path, "INSERT INTO [to do] (id) VALUES (3)", mode="wal").close()
    with pytest.raises(StoreError, match="changed while it was read"):
        list(reading)


def test_what_is_not_there_is_named(path, tmp_path):
    made(path, TABLE).close()
    with pytest.raises(InvalidInput, match="no table nothing"):
        rows(path, "nothing", ["id"])
    with pytest.raises(InvalidInput, match="no column nothing"):
        rows(path, "to do", ["nothing"])
    with pytest.raises(StoreError, match="cannot be read"):
        tables(tmp_path / "none.db")


def test_what_is_no_database_is_refused(tmp_path):
    (tmp_path / "text.db").write_text("not a database at all, but long enough to look at")
    with pytest.raises(NotADatabase):
        tables(tmp_path / "text.db")
    with pytest.raises(NotADatabase):
        tables(tmp_path)


def test_a_damaged_file_gives_what_can_be_read(path):
    many = "INSERT INTO [to do] SELECT value, hex(zeroblob(500)), 0, NULL FROM json_each(?)"
    with made(path, TABLE) as connection:
        connection.execute(many, (json.dumps(list(range(500))),))
    connection.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + b"\xee" * (len(whole) // 2))
    reading = rows(path, "to do", ["id"])
    assert list(islice(reading, 100)) == [(id,) for id in range(100)]
    with pytest.raises(StoreCorrupt, match="damaged"):
        list(reading)
