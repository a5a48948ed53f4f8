"""Ids derived from what a record says, so that the same record written twice is one."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import structs

from recallite.errors import InvalidInput
from recallite.model.checks import check_time, join_scopes
from recallite.model.records import NewRecord
from recallite.remember.fields import check_life
from recallite.system.messages import fault_text

_BYTES = 16
_TIMES = ("created_at", "valid_from", "valid_until")
_DEFAULTS = structs.asdict(NewRecord(text=""))
_encode = msgspec.json.Encoder(order="sorted").encode


def content_id(record: NewRecord, base: str = "/") -> str:
    """Return the id of a record that has none, in the scope `base` of a store: BLAKE2b of all its fields but vectors.

    Two records that differ in any field, such as the metadata or the position in a source, have different ids. Raises
    InvalidInput for a field that cannot be stored.
    """
    fields: dict[str, Any] = {name: getattr(record, name) for name in _DEFAULTS if name not in ("id", "vector")}
    fields["scope"] = join_scopes(base, record.scope) or "/"
    if isinstance(record.importance, int):
        fields["importance"] = float(record.importance)
    for name in _TIMES:
        fields[name] = check_time(fields[name], name)
    fields["expires_at"] = check_life(record.expires_at) or check_time(record.expires_at, "expires_at")
    stated = {name: value for name, value in fields.items() if value not in (_DEFAULTS[name], [], {})}
    try:
        encoded = _encode(stated)
    except (TypeError, ValueError, OverflowError, RecursionError) as fault:
        raise InvalidInput(f"a record has a field that cannot be stored: {fault_text(fault)}") from fault
    return "content-" + hashlib.blake2b(encoded, digest_size=_BYTES).hexdigest()
