"""Questions answered from SQL: shortlist there, then ask a small in-memory index of just those records.

For one recall on a large file, when loading the whole index would cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.index.cold_sum import contenders
from recollect.index.memory_index import MemoryIndex
from recollect.index.memory_view import MemoryQuestions, MemoryView
from recollect.index.population import Population
from recollect.index.protocol import Summed
from recollect.index.table import Visible
from recollect.index.vectors import shortlist_size
from recollect.numerics import kernels
from recollect.store import cold, loading, reading
from recollect.store.filters import Condition, Filter, everything, records_in
from recollect.store.vectors import EmbedderRow

if TYPE_CHECKING:
    import apsw
    from numpy.typing import NDArray

    from recollect.index.vectors import Originals

__all__ = ["ColdView", "nearest_records"]

_REACH = 2
# Records without a vector compete by their words alone: so many of the best by words are looked at for a weighted sum.
_WORDED = 2000


class ColdView:
    """A store under one filter, without a loaded index; the same questions as `MemoryView` takes."""

    def __init__(
        self,
        connection: apsw.Connection,
        chosen: Filter,
        now: int,
        embedder: EmbedderRow | None,
        originals: Originals,
    ) -> None:
        self._connection = connection
        self._filter = chosen
        self._now = now
        self._condition = everything(chosen, now)
        self._embedder = embedder
        self._originals = originals

    def ask(
        self,
        vectors: NDArray[np.float32] | None,
        terms: Sequence[NDArray[np.int32]],
        words: Sequence[Sequence[str]],
        wanted: int,
        summed: Summed | None = None,
    ) -> MemoryQuestions:
        """As `MemoryView.ask`: the shortlists of these queries are loaded into an index of their own."""
        connection = self._connection
        found: list[int] = []
        all_visible = self._filter.unrestricted and not cold.hides_some(connection)
        condition = None if all_visible else self._condition
        most_words = 2 * wanted if summed is None else max(2 * wanted, _WORDED)
        worded = cold.best_by_words(connection, words, self._filter.base, self._condition, most_words)
        if vectors is not None and self._embedder is not None:
            near = [nearest_records(connection, self._embedder, each, condition, wanted) for each in vectors]
            if summed is not None:
                found = contenders(connection, self._embedder, vectors, self._condition, summed, near)
            found += [key for each in near for key in each]
        found += [key for each in worded.found for key in each]
        found = [*dict.fromkeys(found)]
        found += cold.linked_to(connection, found)
        around = cold.places_around(connection, found, _REACH)
        index = MemoryIndex()
        index.load_some(connection, around)
        visible = records_in(around.ids) & self._condition
        listed = index.table.listing(reading.matching_ids(connection, visible))
        selection = index.selection(Visible(now=self._now, as_of=self._filter.as_of, listed=listed))
        counted = {
            term: worded.frequencies[word] or -1
            for asked, numbers in zip(words, terms, strict=True)
            for word, term in zip(asked, numbers.tolist(), strict=True)
        }
        population = Population(worded.records, worded.words, counted=counted)
        return MemoryView(index, selection, population, self._originals).ask(vectors, terms, words, wanted)


def nearest_records(
    connection: apsw.Connection,
    embedder: EmbedderRow,
    vector: NDArray[np.float32],
    condition: Condition | None,
    wanted: int,
) -> list[int]:
    """Row ids of the `wanted` records nearest to the vector: by sketch, then by int8 codes, as in memory.

    `condition` says which may be found; None is all. vec0 took 3 s for the 2,500 nearest of a million sketches, this
    0.3 s.
    """
    ids, owners, sketches = loading.sketches(connection, embedder.id, embedder.dimension)
    allowed, visible = None, len(ids)
    if condition is not None:
        allowed = np.flatnonzero(np.isin(owners, reading.matching_ids(connection, condition)))
        visible = len(allowed)
    if not visible:
        return []
    size = shortlist_size(visible, wanted)
    near, _ = kernels.hamming_shortlist(kernels.sketch(vector[None, :]), sketches, allowed, 0, visible, size)
    block = loading.codes(connection, embedder.dimension, np.sort(ids[near[0]]))
    exact = block.codes.astype(np.float32) @ vector * block.scales
    ranked = block.owners[np.argsort(-exact, kind="stable")]
    return [*dict.fromkeys(ranked.tolist())][:wanted]
