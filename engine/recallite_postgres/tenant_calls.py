"""Tenants: roles of a PostgreSQL server that are confined to a scope of a memory, by the server itself."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import TYPE_CHECKING, cast

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.records import Plain
from recallite.plugin import engine_of
from recallite.system.messages import shown
from recallite_postgres.scheme import TenantRow

if TYPE_CHECKING:
    from recallite.memory import Memory
    from recallite_postgres.store import PostgresStore


class Tenant(Plain, frozen=True, kw_only=True):
    """A role and its scope: it reads and writes what is in the scope and below it, and sees nothing else."""

    role: str
    scope: str
    created_at: datetime


class Tenants:
    """The tenants of a memory on a PostgreSQL server. Only its owner can change them.

    The administrator of the server makes the roles. What the server confines, a stolen password opens no further:
    see the guide "Tenants".
    """

    def __init__(self, memory: Memory) -> None:
        self._store = engine_of(memory).whole("tenants").store

    def grant(self, role: str, scope: str) -> Tenant:
        """Confine a role to a scope and let it use the memory; if it has another scope, it changes to this one.

        Raises InvalidInput for a malformed scope, a store that is a file, and a role that is not there or that no
        scope confines: a superuser, the owner of the memory, or one with BYPASSRLS or REPLICATION.
        """
        return _shown(self._with_roles().grant_tenant(_checked(role), checks.check_scope(scope)))

    def revoke(self, role: str) -> None:
        """Take from a role all that it may do here, also in connections that are open. Raises NotFound if it has none.

        What it has written stays.
        """
        self._with_roles().revoke_tenant(_checked(role))

    def list(self) -> builtins.list[Tenant]:
        """All tenants, by the name of the role."""
        return [_shown(row) for row in self._with_roles().tenants()]

    def _with_roles(self) -> PostgresStore:
        if not hasattr(self._store, "grant_tenant"):
            raise InvalidInput(f"{self._store.path} is a file, which has no roles: tenants are of a PostgreSQL server")
        return cast("PostgresStore", self._store)


def _checked(role: object) -> str:
    name = checks.check_name(role, "role")
    if len(name.encode()) > 63:
        raise InvalidInput(f"role is {shown(name)}: PostgreSQL has names of at most 63 bytes")
    return name


def _shown(row: TenantRow) -> Tenant:
    return Tenant(role=row.role, scope=row.scope, created_at=checks.to_datetime(row.created_at))


def print_grant(tenant: Tenant) -> None:
    """Print the scope of a role."""
    from recallite_cli.output import hint

    hint(f"{tenant.role} has {tenant.scope} and what is below it")
