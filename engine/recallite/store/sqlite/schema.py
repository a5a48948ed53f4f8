"""The schema in SQLite: `PRAGMA user_version` has its version, and `application_id` says that the file is ours."""

from __future__ import annotations

from recallite.store.sql.schema import TABLES, Table, table
from recallite.store.sqlite.views import VIEWS

APPLICATION_ID = 0x52656361  # "Reca"
# Five 384-dimensional float32 vectors fill a page of 8192; at 4096 two do, and bulk writing took 1.7 times as long.
PAGE_SIZE_BYTES = 8192

_TYPES = {
    "SERIAL": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "ID": "INTEGER PRIMARY KEY",
    "FLAG": "INTEGER NOT NULL CHECK ({name} IN (0, 1))",
}


def _key_lists(name: str) -> tuple[Table, ...]:
    """The tables of records that are listed by random keys; see `key_lists`."""
    return (
        # Ids are random, so that no two runs of a file ever share one, and what a process keeps of a run stays valid.
        # `keys` are int64, ascending; in the same order `offsets` are the row ids of the records less `first_id`,
        # uint32 (both little-endian).
        table(f"{name}_run", """
            id INTEGER PRIMARY KEY
            first_id INTEGER NOT NULL
            keys, offsets BLOB NOT NULL
        """, derived=True),
        # The records whose entries in a run no longer count; they go when the run is next written.
        table(f"{name}_unlisted", "record_id INTEGER PRIMARY KEY", derived=True),
        # What single writes add, until it is enough for a run.
        table(f"{name}_key", """
            key, record_id INTEGER NOT NULL
            PRIMARY KEY (key, record_id)
        """, derived=True),
    )  # fmt: skip


_MORE = {
    # Of the commit that wrote a row: a random number, which no other commit has.
    "feed": "commit_name INTEGER NOT NULL",
}
_TABLES = (
    *(shared.also(_MORE.get(shared.name, "")) for shared in TABLES),
    # The keys of the records that a new one may repeat or supersede: open, and not superseded.
    *_key_lists("statement"),
    # All open records by the first 8 bytes of their hash, which do not depend on case, spaces or quote marks.
    *_key_lists("text"),
)
# The words of messages, tokenised and stemmed like those of records.
MESSAGE_WORDS = (
    "CREATE VIRTUAL TABLE session_fts USING fts5(words, content='', contentless_delete=1, tokenize='ascii');"
)
# For programs that change a kind.
_TRIGGER = """
CREATE TRIGGER record_kind AFTER UPDATE OF kind ON record
WHEN NOT EXISTS (SELECT 1 FROM kind WHERE name = new.kind) BEGIN
    INSERT INTO kind (name) VALUES (new.kind);
END;
"""


def _create_sql(table: Table) -> str:
    return table.create_sql(_TYPES, unnumbered=" WITHOUT ROWID")


DERIVED = {table.name: _create_sql(table) for table in _TABLES if table.derived}
"""The statements that create the tables which `rebuild` makes anew, by name."""
SCHEMA = "".join([*map(_create_sql, _TABLES), MESSAGE_WORDS, _TRIGGER, VIEWS])
"""The statements that make a new file."""
MIGRATIONS: tuple[str, ...] = ()
"""The statements that bring a file of each released schema, from 1 on, to the next."""
SCHEMA_VERSION = 1 + len(MIGRATIONS)
