"""Codes of tokens in memory, for token-level reranking: of each vector those of its tokens, one behind the other.

A record of 25 words takes about 0.3 KB; one without codes 8 bytes where another has some.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.index.growable import Growable, IndexPart, check_offsets, filled
from recallite.store.values import TokenBlock


class TokenIndex(IndexPart):
    """Codes by the place of their vector. Vectors are appended to both indexes in the same order."""

    # The begin of the codes of each vector, and the end of the last ones, int64 (vectors + 1,), or empty.
    starts: NDArray[np.int64] = filled("_starts")
    # The words of all codes.
    codes: NDArray[np.uint64] = filled("_codes")

    def __init__(self) -> None:
        # Empty until a vector has codes; until then the number of vectors, which have none.
        self._starts = Growable(np.int64)
        self._codes = Growable(np.uint64)
        self._bare = 0

    def __len__(self) -> int:
        return len(self._starts) - 1 if len(self._starts) else self._bare

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays that `restore` needs."""
        return {**super().arrays(), "bare": np.array([self._bare])}

    def restore(self, saved: Mapping[str, Growable[Any]]) -> None:
        """Take over what `arrays` gave."""
        super().restore(saved)
        self._bare = int(saved["bare"].array[0])

    def check(self, rows: int, vectors: int) -> None:
        """The codes of the vectors follow one another."""
        if len(self) != vectors:
            raise ValueError(f"codes of {len(self)} vectors; wanted {vectors}")
        if len(self.starts) or len(self.codes):
            check_offsets(self.starts, 0, len(self.codes))

    def extend(self, vector_ids: NDArray[np.int64], block: TokenBlock) -> None:
        """Append the codes of vectors with these row ids; those that `block` lacks have none."""
        if not len(block.ids) and not len(self._starts):
            self._bare += len(vector_ids)
            return
        if not len(self._starts):
            self._starts.extend_with(0, self._bare + 1)
        counts = np.zeros(len(vector_ids), dtype=np.int64)
        order = np.argsort(vector_ids, kind="stable")
        places = np.searchsorted(vector_ids[order], block.ids)
        known = places < len(vector_ids)
        known[known] = vector_ids[order][places[known]] == block.ids[known]
        places, lengths = order[places[known]], block.counts[known]
        counts[places] = lengths
        codes = block.codes if known.all() else block.codes[np.repeat(known, block.counts)]
        if (places[1:] < places[:-1]).any():  # the codes are in the order of their row ids
            begins = np.cumsum(lengths) - lengths
            again = np.argsort(places)
            codes = np.concatenate([codes[begins[i] : begins[i] + lengths[i]] for i in again.tolist()])
        self._codes.extend(codes)
        self._starts.extend(self.starts[-1] + np.cumsum(counts))
