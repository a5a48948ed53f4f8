"""What an index tells of each record: the same whether it followed changes, was loaded, or is from a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite import Memory
from recallite.index.memory_index import MemoryIndex


def told(memory: Memory) -> dict[str, Any]:
    """What the index of a store that has been recalled from tells of its present records and of their words."""
    index = memory._engine.index
    rows = np.flatnonzero(index.table.present)
    rows = rows[np.argsort(index.table.ids[rows], kind="stable")]
    table = index.table
    return {
        "ids": table.ids[rows].tolist(),
        "open": table.open[rows].tolist(),
        "scopes": table.scopes[rows].tolist(),
        "frames": table.frames[rows].tolist(),
        "standing": table.standing[rows].tolist(),
        "positioned": table.positioned[rows].tolist(),
        "words": _words(index, rows),
        "vectors": _vectors(index, rows),
    }


def _words(index: MemoryIndex, rows: np.ndarray) -> list[list[tuple[int, int]]]:
    """The words of each row and how often it has them, read from the segments."""
    words, found = index.words, {int(row): [] for row in rows}
    for segment in range(len(words.segments) - 1):
        first, stop = words.segments[segment : segment + 2].tolist()
        terms, starts = words.terms[first:stop], words.starts[first + segment : stop + segment + 1]
        assert (terms[1:] > terms[:-1]).all()
        for term, begin, end in zip(terms.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            for row, count in zip(words.rows[begin:end].tolist(), words.counts[begin:end].tolist(), strict=True):
                if row in found:
                    found[row].append((term, count))
    return [sorted(each) for each in found.values()]


def _vectors(index: MemoryIndex, rows: np.ndarray) -> list[list[tuple[list[int], list[int], float]]]:
    """The codes, residuals and scale of each part of each row."""
    vectors = index.vectors
    if vectors is None:
        return []
    owners = vectors.owners(np.arange(len(vectors)))
    return [
        [
            (vectors.codes[place].tolist(), vectors.residuals[place].tolist(), float(vectors.scales[place]))
            for place in np.flatnonzero(owners == row).tolist()
        ]
        for row in rows
    ]
