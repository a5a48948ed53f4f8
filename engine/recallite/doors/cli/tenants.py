"""The commands about tenants: roles of a PostgreSQL server that are confined to a scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from recallite.doors.cli.command import prints
from recallite.doors.cli.options import Yes, argument
from recallite.doors.cli.output import hint, print_rows, stamp

if TYPE_CHECKING:
    from recallite.doors.tenants import Tenant
    from recallite.memory import Memory

tenant = typer.Typer(help="Roles of a PostgreSQL server, confined to a scope.", no_args_is_help=True)


def _print_grant(made: Tenant) -> None:
    hint(f"{made.role} has {made.scope} and what is below it")


@tenant.command("grant")
@prints(_print_grant)
def grant(
    memory: Memory,
    role: Annotated[str, argument("ROLE", "A role that is there: CREATE ROLE ... LOGIN makes one.")],
    scope: Annotated[str, argument("SCOPE", "It reaches this scope and those below it.")],
) -> Tenant:
    """Confine a role to a scope, in place of one that it had."""
    from recallite.doors.tenants import Tenants

    return Tenants(memory).grant(role, scope)


def _print_tenants(found: Sequence[Tenant]) -> None:
    print_rows(("role", "scope", "since"), [(each.role, each.scope, stamp(each.created_at)) for each in found])


@tenant.command("list")
@prints(_print_tenants)
def list_(memory: Memory) -> list[Tenant]:
    """Show the roles that have a scope."""
    from recallite.doors.tenants import Tenants

    return Tenants(memory).list()


@tenant.command("revoke")
@prints(lambda role: hint(f"revoked {role}"))
def revoke(memory: Memory, role: Annotated[str, argument("ROLE", "As the list shows it.")], yes: Yes = False) -> str:
    """Take from a role all that it may do; what it has written stays."""
    from recallite.doors.tenants import Tenants

    if not yes and not typer.confirm(f"Revoke {role}?", err=True):
        raise typer.Exit(1)
    Tenants(memory).revoke(role)
    return role
