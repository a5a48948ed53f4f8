"""The stores that the contract is checked on; `tests/system/store/contract` checks it on PostgreSQL."""

from __future__ import annotations

import pytest

from recallite.derivation import derive
from recallite.store.opening import open_store
from recallite.store.sqlite.encryption import ciphers_version
from tests.unit.core.store.contract.support import KEY

STORES = {
    "file": lambda folder: open_store(folder / "store.db", derive=derive),
    "memory": lambda folder: open_store(":memory:", derive=derive),
}
if ciphers_version() is not None:
    STORES["encrypted"] = lambda folder: open_store(folder / "store.db", key=KEY, derive=derive)


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    opened = STORES[request.param](tmp_path)
    yield opened
    opened.close()
