"""The ids that a store has, in 16 bytes each: small enough to be sent to every worker."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from recallite.memory import Memory
from recallite.model.checks import now_us
from recallite.model.filters import Filter
from recallite.plugin import engine_of

_BYTES = 16
_ROWS = 10_000


class KnownIds:
    """A set of ids by their hashes; two ids of a billion share one with a chance of about 1e-21."""

    def __init__(self, hashes: NDArray[np.bytes_]) -> None:
        self._hashes = np.sort(hashes)

    @classmethod
    def of(cls, memory: Memory) -> KnownIds:
        """The ids of all memories that a handle sees, superseded ones too, as of now."""
        filter = Filter(include_superseded=True).within(memory.scope)
        parts = [np.empty(0, f"S{_BYTES}")]
        with engine_of(memory).read() as reader:
            row_ids = reader.records.matching_ids(filter, now_us())
            for begin in range(0, len(row_ids), _ROWS):
                rows = reader.records.fetch(row_ids[begin : begin + _ROWS])
                parts.append(_hashed([row.public_id for row in rows.values()]))
        return cls(np.concatenate(parts))

    def __len__(self) -> int:
        return len(self._hashes)

    def __call__(self, ids: list[str]) -> set[str]:
        """Return those of these ids that are known."""
        if not ids or not len(self._hashes):
            return set()
        wanted = _hashed(ids)
        places = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        return {name for name, known in zip(ids, self._hashes[places] == wanted, strict=True) if known}


def _hashed(ids: list[str]) -> NDArray[np.bytes_]:
    digests = [hashlib.blake2b(name.encode(), digest_size=_BYTES).digest() for name in ids]
    return np.array(digests, f"S{_BYTES}")
