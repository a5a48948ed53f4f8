"""The change feed, the derived sketches, and giving space back."""

from __future__ import annotations

from recallite import Memory
from recallite.model.records import NewRecord
from tests.unit.core.memory.support import PLAIN, run, unit


def test_the_tables_can_be_read_with_any_sqlite(path):
    """With the interpreter's own sqlite3, in another process, on a file that no one has open."""
    with Memory(path, settings=PLAIN) as memory:
        memory.remember(
            NewRecord(
                "a text",
                scope="/a",
                tags=["x", "y"],
                metadata={"k": 1},
                source="s",
                position=3,
                importance=0.75,
                created_at="2026-01-02T03:04:05Z",
                vector=unit(1),
            )
        )
        memory.remember("another")
    said = run(
        """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
assert sqlite3.sqlite_version_info >= (3, 38)
row = connection.execute(
    "SELECT content, scope, tags, metadata, source, position, importance, created_at, kind FROM memories "
    "ORDER BY 1 LIMIT 1"
).fetchone()
print(row)
for name, kind in connection.execute("SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view')").fetchall():
    if not name.startswith("sqlite_"):
        connection.execute(f"SELECT * FROM {name}").fetchall()
print(connection.execute("SELECT count(*) FROM memories").fetchone())
""",
        path,
    ).splitlines()
    assert said == [
        "('a text', '/a', '[\"x\",\"y\"]', '{\"k\":1}', 's', 3, 0.75, '2026-01-02T03:04:05.000Z', 'memory')",
        "(2,)",
    ]
