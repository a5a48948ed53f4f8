"""The stores that the contract is checked on. Another store joins as one more line of `STORES`."""

from __future__ import annotations

import pytest

from recollect.store.opening import open_store

STORES = {
    "file": lambda folder: open_store(folder / "store.db"),
    "memory": lambda folder: open_store(":memory:"),
}


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    opened = STORES[request.param](tmp_path)
    yield opened
    opened.close()
