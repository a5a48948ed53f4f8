"""The operations that only a PostgreSQL server has: roles that it confines to a scope."""

from __future__ import annotations

from recallite.doors.operation import Argument, Command, Operation, OperationSet

_TENANTS = "recallite_postgres.tenant_calls:Tenants."
OPERATIONS = OperationSet(
    (
        Operation(
            "tenants.grant",
            "Confine a role to a scope, in place of one that it had.",
            group="servers",
            effect="writes",
            call=_TENANTS + "grant",
            command=Command(
                "tenant grant",
                "recallite_postgres.tenant_calls:print_grant",
                arguments={
                    "role": Argument("A role that is there: CREATE ROLE ... LOGIN makes one.", "ROLE"),
                    "scope": Argument("It reaches this scope and those below it.", "SCOPE"),
                },
            ),
        ),
        Operation(
            "tenants.list",
            "Show the roles that have a scope.",
            group="servers",
            call=_TENANTS + "list",
            command=Command("tenant list", "role scope since:created_at"),
        ),
        Operation(
            "tenants.revoke",
            "Take from a role all that it may do; what it has written stays.",
            group="servers",
            effect="destroys",
            call=_TENANTS + "revoke",
            command=Command(
                "tenant revoke",
                "print_revoked",
                confirm="Revoke {role}?",
                arguments={"role": Argument("As the list shows it.", "ROLE")},
            ),
        ),
    ),
    {"tenant": "Roles of a PostgreSQL server, confined to a scope."},
)
