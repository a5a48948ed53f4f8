"""Opening a store on a PostgreSQL server: the entry points `postgresql` and `postgres` of `recallite.stores`."""

from __future__ import annotations

from typing import Unpack

from recallite.store.opening import StoreOptions
from recallite.store.store import Store
from recallite_postgres.address import parse_address


def open(address: str, **options: Unpack[StoreOptions]) -> Store:
    """The store in the schema that an address names, created if it does not exist."""
    parse_address(address)  # says which package is missing
    from recallite_postgres.store import PostgresStore

    return PostgresStore(address, **options)


def exists(address: str) -> bool:
    """Whether the schema holds a memory."""
    parsed = parse_address(address)
    from recallite_postgres.migrating import holds_memory

    return holds_memory(parsed)


def shown(address: str) -> str:
    """The address without its password."""
    return str(parse_address(address))
