"""Vectors in memory: a 1-bit sketch for the shortlist by Hamming distance, int8 codes to rescore it, codes of tokens.

Residuals of the codes give the exact cosines of the best. A vector of 384 dimensions takes about 830 bytes. The
originals stay in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.index.growable import Growable, IndexPart, check_lengths, check_offsets, check_within, extend, filled
from recallite.store.sql.blocks import TokenBlock
from recallite.store.sql.vectors import PackedVectors
from recallite.system.numerics import kernels

ALIKE = 100_000
"""The number of visible vectors up to which the shortlist has one size."""


def shortlist_size(vectors: int, wanted: int) -> int:
    """The number of sketches to rescore to find the best `wanted` of this many visible vectors.

    On 100,000 real MiniLM vectors recall@10 is 0.995 with 400 and 0.998 with 800; it falls slowly with n.
    """
    return max(4 * wanted, 800, int(800 * (vectors / ALIKE) ** 0.5))


class VectorIndex(IndexPart):
    """Vectors in the order of their writes; `owners` gives the record row of each."""

    _numbers = ("_rows",)
    sketches: NDArray[np.uint64] = filled("_sketches")  # in blocks, as the kernel reads them: `kernels.sketch_blocks`
    codes: NDArray[np.int8] = filled("_codes")  # (n, dimension)
    scales: NDArray[np.float32] = filled("_scales")  # the value of a step of each vector's codes
    # The rest that the codes leave of each component: see `store.sql.vectors.PackedVectors`.
    residuals: NDArray[np.int8] = filled("_residuals")
    # The record row of each vector; empty while vector i belongs to row i.
    owners_by_vector: NDArray[np.int64] = filled("_owners")
    # By record row: the index of its first part, -1 for none, and the number of its parts, which are adjacent; empty
    # while vector i belongs to row i.
    first_places: NDArray[np.int64] = filled("_first_place")
    parts_of_rows: NDArray[np.int32] = filled("_parts")

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._sketches = Growable(np.uint64, ((dimension + 63) // 64, kernels.LANES))
        self._codes = Growable(np.int8, (dimension,))
        self._scales = Growable(np.float32)
        self._residuals = Growable(np.int8, (dimension,))
        # Until vector i belongs to another row than i, owners, first vectors and parts are empty.
        self._aligned = True
        self._rows = 0
        self._owners = Growable(np.int64)
        # Row ids of the vectors, in runs of consecutive ones: the first vector, and what to add to the index of each.
        self._run_places = Growable(np.int64)
        self._run_offsets = Growable(np.int64)
        self.has_parts = False
        self._first_place = Growable(np.int64)
        self._parts = Growable(np.int32)

    def __len__(self) -> int:
        return len(self._scales.array)

    def owners(self, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
        """The record rows of these vectors."""
        return vectors if self._aligned else self._owners.array[vectors]

    def parts(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """The number of vectors of each record row."""
        return (rows < len(self)).astype(np.int32) if self._aligned else self._parts.array[rows]

    def ids(self, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row ids of these vectors, int64."""
        runs = np.searchsorted(self._run_places.array, vectors, side="right") - 1
        ids: NDArray[np.int64] = vectors + self._run_offsets.array[runs]
        return ids

    def restore(self, saved: Mapping[str, Growable[Any]]) -> None:
        """Take over what `arrays` gave."""
        super().restore(saved)
        self.has_parts = bool((self._parts.array > 1).any())
        self._aligned = not len(self._parts)

    def check(self, rows: int, vectors: int) -> None:
        """Vectors belong to rows, and the parts of a row are vectors."""
        check_lengths(vectors, self._codes.array, self._scales.array, self._residuals.array)
        check_lengths(-(-vectors // kernels.LANES), self._sketches.array)
        check_lengths(0 if self._aligned else vectors, self._owners.array)
        check_lengths(0 if self._aligned else rows, self._first_place.array, self._parts.array)
        if self._rows != rows or (self._aligned and vectors > rows):
            raise ValueError(f"vectors of {self._rows} rows; wanted {rows}")
        check_lengths(len(self._run_places), self._run_offsets.array)
        if vectors:
            check_offsets(np.append(self._run_places.array, vectors), 0, vectors)
        check_within(self._owners.array, 0, rows)
        check_within(self._first_place.array, -1, max(vectors, 1))
        check_within(self._parts.array, 0, vectors + 1)
        check_within((self._first_place.array + self._parts.array)[self._parts.array > 0], 1, vectors + 1)

    def reserve(self, capacity: int) -> None:
        """Reserve capacity for this many vectors."""
        self._sketches.reserve(-(-capacity // kernels.LANES))
        for buffer in (self._codes, self._scales, self._residuals):
            buffer.reserve(capacity)

    def admitted(self, mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The mask of the record row of each vector."""
        admitted: NDArray[np.uint8] = mask[: len(self)] if self._aligned else mask[self._owners.array]
        return admitted

    def extend(
        self, block: PackedVectors, rows_of: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Append vectors, and return their row ids; `rows_of` maps record ids to rows.

        The parts of a record are adjacent.
        """
        first, ids, owners = len(self.scales), block.ids, rows_of(block.owners)
        sketches, codes, scales, residuals = block.sketches, block.codes, block.scales, block.residuals
        known = owners >= 0
        if not known.all():  # a record is missing: `verify` names it
            ids, owners, sketches = ids[known], owners[known], sketches[known]
            codes, scales, residuals = codes[known], scales[known], residuals[known]
        if not len(owners):
            return ids
        lane = first % kernels.LANES
        room = kernels.LANES - lane if lane else 0
        if lane:  # first where the last block has room
            self._sketches.array[-1, :, lane : lane + len(sketches[:room])] = sketches[:room].T
        vectors = np.arange(first, first + len(owners), dtype=np.int64)
        offsets = ids - vectors
        before = self._run_offsets.array[-1:] if len(self._run_offsets.array) else offsets[:1] - 1
        begins = offsets != np.append(before, offsets[:-1])
        blocks = kernels.sketch_blocks(np.array(sketches[room:], order="C"))
        extend(
            (self._sketches, blocks), (self._codes, codes), (self._scales, scales), (self._residuals, residuals),
            (self._run_places, vectors[begins]), (self._run_offsets, offsets[begins]),
        )  # fmt: skip
        if self._aligned and np.array_equal(owners, vectors):
            return ids
        if self._aligned:  # the first rows have one vector each
            self._aligned = False
            aligned = np.arange(first)
            extend((self._owners, aligned), (self._first_place, aligned))
            self._parts.extend_with(1, first)
            self._list_rows()
        self._owners.extend(owners)
        if (owners[1:] > owners[:-1]).all():
            self._first_place.array[owners] = vectors
            self._parts.array[owners] = 1
            return ids
        rows, starts, counts = np.unique(owners, return_index=True, return_counts=True)
        self._first_place.array[rows] = starts + first
        self._parts.array[rows] = counts
        self.has_parts = self.has_parts or len(rows) < len(owners)
        return ids

    def _list_rows(self) -> None:
        new = self._rows - len(self._parts.array)
        self._first_place.extend_with(-1, new)
        self._parts.extend_with(0, new)

    def add_rows(self, count: int) -> None:
        """Add record rows up to `count`, without vectors."""
        self._rows = count
        if not self._aligned:
            self._list_rows()

    def nearest(
        self, queries: NDArray[np.float32], allowed: NDArray[np.int64] | None, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The `count` vectors nearest to each query by their codes (q, count), best first, and their cosines.

        queries float32 (q, dimension) of unit length; `allowed` vectors, ascending, or None for all.
        """
        visible = len(self) if allowed is None else len(allowed)
        if not visible:
            nothing = np.empty((len(queries), 0))
            return nothing.astype(np.int64), nothing.astype(np.float32)
        if visible <= kernels.SCAN_ALL:
            size, vectors = visible, np.arange(visible, dtype=np.int64) if allowed is None else allowed
            near = np.tile(vectors, (len(queries), 1))
            distances = np.zeros(near.shape, dtype=np.uint16)
        else:
            sketches, size = kernels.sketch(queries), shortlist_size(visible, count)
            scanned = self._sketches.array, allowed, 0, visible
            near, distances = kernels.hamming_shortlist(sketches, *scanned, size, checked=True)
        return kernels.rescore_shortlist(queries, self.codes, self.scales, near, distances, size, count, checked=True)


# Codes of tokens in memory, for token-level reranking: the codes of each vector's tokens, one after the other. A record
# of 25 words takes about 0.3 KB; one without codes 8 bytes where another has some.


class TokenIndex(IndexPart):
    """Codes by vector. Vectors are appended to both indexes in the same order."""

    _numbers = ("_bare",)
    # The begin of the codes of each vector, and the end of the last ones, (vectors + 1,), or empty.
    starts: NDArray[np.int64] = filled("_starts")
    codes: NDArray[np.uint64] = filled("_codes")  # the words of all codes

    def __init__(self) -> None:
        # Empty until a vector has codes; until then the number of vectors, which have none.
        self._starts = Growable(np.int64)
        self._codes = Growable(np.uint64)
        self._bare = 0

    def __len__(self) -> int:
        return len(self._starts.array) - 1 if len(self._starts.array) else self._bare

    def check(self, rows: int, vectors: int) -> None:
        """The codes of the vectors follow one another."""
        if len(self) != vectors:
            raise ValueError(f"codes of {len(self)} vectors; wanted {vectors}")
        if len(self.starts) or len(self.codes):
            check_offsets(self.starts, 0, len(self.codes))

    def extend(self, vector_ids: NDArray[np.int64], block: TokenBlock) -> None:
        """Append the codes of vectors with these row ids; vectors that `block` lacks have none."""
        if not len(block.ids) and not len(self._starts.array):
            self._bare += len(vector_ids)
            return
        if not len(self._starts.array):
            self._starts.extend_with(0, self._bare + 1)
        counts = np.zeros(len(vector_ids), dtype=np.int64)
        order = np.argsort(vector_ids, kind="stable")
        vectors = np.searchsorted(vector_ids[order], block.ids)
        known = vectors < len(vector_ids)
        known[known] = vector_ids[order][vectors[known]] == block.ids[known]
        vectors, lengths = order[vectors[known]], block.counts[known]
        counts[vectors] = lengths
        codes = block.codes if known.all() else block.codes[np.repeat(known, block.counts)]
        if (vectors[1:] < vectors[:-1]).any():  # the codes are in the order of their row ids
            begins = np.cumsum(lengths) - lengths
            codes = np.concatenate([codes[begins[i] : begins[i] + lengths[i]] for i in np.argsort(vectors).tolist()])
        extend((self._codes, codes), (self._starts, self.starts[-1] + np.cumsum(counts)))
