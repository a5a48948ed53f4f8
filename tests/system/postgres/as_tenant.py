"""Every memory of a test is a tenant's: `pytest -p tests.system.postgres.as_tenant tests/unit/core/memory`.

The tenant has the scope "/", so that results are those of the owner. What works on the whole memory is refused to it.
"""

from __future__ import annotations

import recallite.engine
from recallite.errors import InvalidInput
from recallite.plugin import EngineHandle
from recallite.store.opening import open_store
from tests.system.postgres import in_place_of_files
from tests.system.postgres.in_place_of_files import pytest_unconfigure  # noqa: F401

_ROLE = "tenant"


def _opened(path, *, key=None, **settings):
    store = in_place_of_files._opened(path, key=key, **settings)
    if key is not None or store.confined_to is not None:
        return store
    server = in_place_of_files._server()
    if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", _ROLE):
        server.execute(f"CREATE ROLE {_ROLE} LOGIN")
    if _ROLE not in [tenant.role for tenant in store.tenants()]:
        store.grant_tenant(_ROLE, "/")
    schema = store.path.rpartition("schema=")[2]
    tenant = open_store(server.address(user=_ROLE, schema=schema), **settings)
    close_tenant = tenant.close

    def close():
        close_tenant()
        store.close()

    tenant.close, tenant.verify, tenant.rebuild, tenant.vacuum = close, store.verify, store.rebuild, store.vacuum
    return tenant


def _whole(self, verb):
    if not self._owner:
        raise InvalidInput(f"{verb} works on the whole file: call it on the Memory that opened it, not on a scope")
    return self


def pytest_configure(config):
    recallite.engine.open_store = _opened
    EngineHandle.whole = _whole
