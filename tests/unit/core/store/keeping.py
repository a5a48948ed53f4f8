"""Makes the store that later versions must open: `python -m tests.unit.core.store.keeping`.

It is written with every kind of row, as this version stores them, to `stores/schema_N.db.xz`. Once a version with
schema N is released, its store is never made again.
"""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path
from unittest.mock import patch

import apsw

from recallite import Memory, Settings
from recallite.store.sqlite import key_lists
from recallite.store.sqlite.schema import SCHEMA_VERSION
from tests.unit.core.store.full import fill

STORES = Path(__file__).with_name("stores")


def tables(database: apsw.Connection) -> list[str]:
    """The tables of a store, without those that SQLite itself makes."""
    names = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return [name for (name,) in names if not name.startswith("sqlite_")]


def make(path: Path, folder: Path) -> None:
    """Fill the store at `path`, and exchange changes with another; raises AssertionError if a table stays empty."""
    with patch.object(key_lists, "_RECENT_RECORDS", 8):  # else 128 records make a run of keys
        fill(str(path), folder, notes=8)
    (folder / "exchange").mkdir()
    settings = Settings(index_snapshot=False)
    with Memory(path, settings=settings) as memory, Memory(folder / "other.db", settings=settings) as other:
        memory._engine.comparing.stop()  # a record is to wait
        other.remember("Linus prefers green tea", scope="/team", id="linus-tea")
        for each in (memory, other, memory):
            each.transfer.sync(folder / "exchange")
        memory.forget("linus-tea")
    with apsw.Connection(str(path)) as database:
        empty = [name for name in tables(database) if not database.execute(f"SELECT count(*) FROM {name}").get]
        assert not empty, f"the store has no {empty}"


def main() -> None:
    """Write the store of the present schema."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "agent.db")
        make(path, Path(scratch))
        STORES.mkdir(exist_ok=True)
        target = STORES / f"schema_{SCHEMA_VERSION}.db.xz"
        target.write_bytes(lzma.compress(path.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
