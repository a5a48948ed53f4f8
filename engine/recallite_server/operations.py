"""The operations that only a server has: access tokens, and what the page shows."""

from __future__ import annotations

from recallite.doors.operation import Argument, Command, Operation, OperationSet

_TOKENS, _SHOW = "recallite_server.http.access_tokens:Tokens.", "recallite_server.commands.serve:"
OPERATIONS = OperationSet(
    (
        Operation(
            "timeline", "The numbers of memories by day or month.",
            group="memories", http="GET /timeline", call="recallite_server.timeline:timeline",
        ),
        Operation(
            "diffs", "Differences by words between each version of a memory and the one before it.",
            group="links", http="GET /memories/{id}/diffs", call="recallite_server.timeline:diffs",
        ),
        Operation(
            "tokens.create", "Make a token; it is printed once.",
            group="servers", effect="writes", call=_TOKENS + "create",
            command=Command(
                "token create", _SHOW + "print_secret", create=True,
                arguments={
                    "scope": Argument("It reaches this scope and those below it.", "/A/B"),
                    "reads": Argument("It also recalls what is here; repeat for more.", "/A/B", "--reads"),
                    "read_only": Argument("It can change nothing."),
                    "authority": Argument("As whom it writes at most: user, agent, tool, document or web.", "WHO"),
                    "expires_after": Argument(
                        "How long it lasts: 12h, 30d, 8w. Default: until revoked.", "TIME", "--expires"
                    ),
                    "name": Argument("Whose it is, for the list.", "NAME"),
                },
            ),
        ),
        Operation(
            "tokens.list", "Show the tokens of the store, without their secrets.",
            group="servers", call=_TOKENS + "list", command=Command("token list", _SHOW + "print_tokens"),
        ),
        Operation(
            "tokens.revoke", "Remove a token: from now on it admits nobody.",
            group="servers", effect="destroys", call=_TOKENS + "revoke",
            command=Command(
                "token revoke", "print_revoked", confirm="Revoke {id}?",
                arguments={"id": Argument("As the list shows it.", "ID")},
            ),
        ),
    ),
    {"token": "Access tokens of the server."},
)  # fmt: skip
