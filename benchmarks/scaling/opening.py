"""The ways a store can be opened: fields of `Settings` by name. Each is timed and weighed in new processes."""

from __future__ import annotations

from typing import Any

__all__ = ["CASES"]

CASES: dict[str, dict[str, Any]] = {
    "from the store": {"index_snapshot": False},
    "from the snapshot": {},
    "low memory": {"low_memory": True},
}
