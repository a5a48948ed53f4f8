"""Owner of a record's statement, by its metadata: "I live in Oslo" of two users are two facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMES = frozenset(
    name + end
    for name in (
        "user", "speaker", "author", "agent", "actor", "person", "customer", "account", "tenant", "owner", "role",
        "name", "project", "workspace", "repository", "repo", "environment", "env", "device", "host", "server",
    )
    for end in ("", "id", "name")
)  # fmt: skip


def whose(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say whose a record is, by names without case and underscores: "userId" is "user_id"."""
    named = ((name.replace("_", "").replace("-", "").lower(), value) for name, value in metadata.items())
    return {name: value for name, value in named if name in _NAMES}
