"""Ids of imported memories: an import must not reveal ids that its handle cannot see."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from recallite.store.transaction import Reader

_NAMESPACE = uuid.UUID("8f6b3b0a-58e5-5d1c-9d0e-6d1f3c5f7c11")


def name_memories(reader: Reader, ids: Collection[str], sight: str) -> dict[str, str]:
    """The id that each of these memories has, or will have, for a handle bound to the scope `sight`.

    It is the given one, unless a memory outside of `sight` has it: then it is another one, the same at every import.
    """
    names = {public_id: public_id for public_id in ids}
    if sight == "/":
        return names
    unsettled = list(names)
    while unsettled:
        every = [public_id for name in unsettled for public_id in (names[name], _another(names[name], sight))]
        visible = reader.records.find_ids(every, sight)
        taken = reader.records.find_ids(every, "/")
        next_round = []
        for name in unsettled:
            current, other = names[name], _another(names[name], sight)
            if current in visible or not (current in taken or other in visible):
                continue
            names[name] = other
            if other not in visible:
                next_round.append(name)
        unsettled = next_round
    return names


def name_document(reader: Reader, public_id: str, sight: str) -> str:
    """The id that a document has, or will have, as `name_memories`."""
    while reader.documents.with_id(public_id, "/") and not reader.documents.with_id(public_id, sight):
        public_id = _another(public_id, sight)
    return public_id


def _another(public_id: str, sight: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{sight}\n{public_id}"))
