"""The columns of the tables of truth over time: what marks and what ranks statements that others have replaced.

"default" marks them when they are written and ranks the rest when reading; "reading only" writes without detection;
"neither" ranks without looking at what has changed, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from recallite.model.settings import WritePolicy

__all__ = ["WAYS", "Way"]


class Way(NamedTuple):
    """The policy that is given to `remember_many` and the options of `recall`."""

    policy: WritePolicy | None
    options: dict[str, Any]


_UNDETECTED = WritePolicy(supersede_confidence=None, contradict_confidence=None)

WAYS = {
    "default": Way(None, {}),
    "reading only": Way(_UNDETECTED, {}),
    "neither": Way(_UNDETECTED, {"superseded": "as_ranked"}),
}
