"""The tables are declared once, and rendered in the types of a database."""

from __future__ import annotations

from recallite.store.sql.schema import TABLES, table

TYPES = {"ID": "INTEGER PRIMARY KEY", "FLAG": "INTEGER CHECK ({name} IN (0, 1))", "TEXT": "VARCHAR"}
THING = table("thing", """
    id ID
    -- What it is called.
    name, title TEXT NOT NULL
    open FLAG DEFAULT true
    UNIQUE (name, title)
    UNIQUE INDEX thing_name (name) WHERE open
""")  # fmt: skip


def test_a_table_is_rendered_in_the_types_of_a_database():
    assert THING.create_sql(TYPES) == (
        "CREATE TABLE thing (\n    id INTEGER PRIMARY KEY,\n    name VARCHAR NOT NULL,\n    title VARCHAR NOT NULL,\n"
        "    open INTEGER CHECK (open IN (0, 1)) DEFAULT true,\n    UNIQUE (name, title)\n);\n"
        "CREATE UNIQUE INDEX thing_name ON thing (name) WHERE open;\n"
    )


def test_a_database_has_columns_and_indexes_of_its_own():
    extended = THING.also("key BLOB NOT NULL\nINDEX thing_name (key)")
    assert [*extended.columns] == ["id", "name", "title", "open", "key"]
    assert extended.indexes == {"thing_name": "CREATE INDEX thing_name ON thing (key);"}
    assert "key" not in THING.columns


def test_a_table_without_row_numbers_ends_as_the_database_has_it():
    pair = table("pair", "left, right TEXT\nPRIMARY KEY (left, right)")
    assert pair.create_sql(TYPES, unnumbered=" WITHOUT ROWID").endswith(") WITHOUT ROWID;\n")


def test_each_table_comes_after_those_that_its_rows_refer_to():
    declared: set[str] = set()
    for each in TABLES:
        declared.add(each.name)
        references = " ".join(constraints for _, constraints in each.columns.values())
        assert {word.partition("(")[0] for word in references.split("REFERENCES ")[1:]} <= declared
