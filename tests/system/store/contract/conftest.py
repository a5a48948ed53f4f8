"""The contract of stores, on PostgreSQL."""

from __future__ import annotations

import pytest

from recallite.derivation import derive
from recallite.store.opening import open_store


@pytest.fixture
def store(postgres_address):
    opened = open_store(postgres_address, derive=derive)
    yield opened
    opened.close()
