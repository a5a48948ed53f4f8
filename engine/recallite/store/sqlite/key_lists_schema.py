"""The tables of records that are listed by random keys; see `key_lists`."""

from __future__ import annotations

# Ids are random, so that no two runs of a file ever share one, and what a process keeps of a run stays valid.
_LISTS = """
CREATE TABLE {name}_run (
    id       INTEGER PRIMARY KEY,
    first_id INTEGER NOT NULL,
    -- int64, ascending, and in the same order the row ids of the records less `first_id`, uint32 (both little-endian).
    keys     BLOB NOT NULL,
    offsets  BLOB NOT NULL
);
-- The records whose entries in a run no longer count; they go when the run is next written.
CREATE TABLE {name}_unlisted (
    record_id INTEGER PRIMARY KEY
);
-- What single writes add, until it is enough for a run.
CREATE TABLE {name}_key (
    key       INTEGER NOT NULL,
    record_id INTEGER NOT NULL,
    PRIMARY KEY (key, record_id)
) WITHOUT ROWID;
"""
LISTS = ("statement", "text")
KEY_LISTS_SCHEMA = f"""
-- Derived: the keys of the records that a new one may repeat or supersede: open, and not superseded.{
    _LISTS.format(name=LISTS[0])
}
-- Derived: all open records by the first 8 bytes of their hash, which do not depend on case, spaces or quote marks.{
    _LISTS.format(name=LISTS[1])
}"""
KEY_LIST_TABLES = tuple(f"{name}_{part}" for name in LISTS for part in ("run", "unlisted", "key"))
"""Derived tables, which `rebuild` makes anew."""
