"""The operations that only a server has: access tokens and what the page shows; and results as JSON has them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from recallite.doors.operation import Argument, Command, Operation, OperationSet
from recallite.model.records import Hit, Hits, Record, Records

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


# Results of operations, of which JSON has the attributes of lists too.


class HitsAnswer(Struct):
    """The hits of one query, best first: `Hits` as JSON has them."""

    hits: list[Hit]
    query: str
    evidence_gaps: tuple[str, ...] = ()
    left_out: int = 0
    sub_queries: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    diversify_by: str | None = None
    stages: Annotated[dict[str, float], Meta(description="Milliseconds.")] = {}


class RecordsAnswer(Struct):
    """The memories of a list, in order: `Records` as JSON has them."""

    memories: list[Record]
    left_out: int = 0


def in_json(returns: Any) -> Any:
    """The type that a result has as JSON."""
    if returns == list[Hits]:
        return list[HitsAnswer]
    return {Hits: HitsAnswer, Records: RecordsAnswer}.get(returns, returns)


def from_json(value: Any) -> Any:
    """A result as Python has it, of a value of the type that `in_json` names."""
    if isinstance(value, RecordsAnswer):
        return Records(value.memories, left_out=value.left_out)
    if isinstance(value, HitsAnswer):
        fields = structs.asdict(value)
        return Hits(fields.pop("hits"), **fields)
    return [*map(from_json, value)] if isinstance(value, list) else value
