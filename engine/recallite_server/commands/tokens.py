"""What the commands of access tokens print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recallite.doors.cli.output import echo, hint, print_rows, stamp

if TYPE_CHECKING:
    from recallite_server.http.access_tokens import Token


def print_secret(token: Token) -> None:
    """Print the secret of a token, which is shown once."""
    echo(token.secret)
    hint(f"token {token.id} for {token.scope}: it is shown this once, the store keeps its hash")


def print_tokens(tokens: Sequence[Token]) -> None:
    """Print tokens and what they allow."""
    print_rows(
        ("id", "name", "scope", "may", "as", "expires"),
        [
            (entry.id, entry.name or "", entry.scope, "read" if entry.read_only else "read, write",
             entry.authority, "expired" if entry.expired else stamp(entry.expires_at) or "never")
            for entry in tokens
        ],
    )  # fmt: skip
