"""Databases of other programs, which are only read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from recallite.model.checks import check_path
from recallite.store.sqlite import foreign_tables

__all__ = ["rows", "tables"]


def tables(path: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """The tables of a SQLite file of another program, with their columns. Raises StoreError, as NotADatabase."""
    return foreign_tables.tables(check_path(path))


def rows(
    path: str | os.PathLike[str], table: str, columns: Sequence[str], *, order_by: Sequence[str] = ()
) -> Iterator[tuple[foreign_tables.Value, ...]]:
    """The rows of a table of another program's SQLite file, one at a time, in the order of their row ids or of columns.

    Text that is not in the encoding of the file has U+FFFD for what is wrong. StoreError where the file is damaged, is
    locked, or changed while it was read.
    """
    return foreign_tables.rows(check_path(path), table, columns, order_by=order_by)
