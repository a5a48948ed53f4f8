"""Databases of other programs, which are only read."""

from recallite.store.sqlite.foreign_tables import rows as rows
from recallite.store.sqlite.foreign_tables import tables as tables
