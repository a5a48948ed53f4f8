"""Words and their numbers. A record's words are stored once, as numbers, and never tokenised again at open."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Lexicon", "TermList"]

_CACHE_WORDS = 250_000


class TermList(NamedTuple):
    """The distinct words of a record: int32 term numbers, ascending, and uint8 counts (255 means 255 or more)."""

    terms: bytes
    counts: bytes


class Lexicon:
    """The words of one store, with a cache of their numbers.

    Numbers never change while the epoch stands; `vacuum` may drop unused words and opens a new epoch.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._epoch = -1
        self._asked: dict[str, int] = {}
        self._asked_at: int | None = None

    def recalled(self, connection: apsw.Connection, words: Sequence[str], loads: int) -> dict[str, int]:
        """`lookup` for queries, which ask for the same words again. `loads` grows when numbers may have changed."""
        if self._asked_at != loads or len(self._asked) > _CACHE_WORDS:
            self._asked, self._asked_at = {}, loads
        asked = self._asked
        missing = [word for word in words if word not in asked]
        if missing:
            asked.update(self.lookup(connection, missing))
        return {word: asked[word] for word in words if word in asked}

    def lookup(self, connection: apsw.Connection, words: Sequence[str]) -> dict[str, int]:
        """The numbers of those words that some record holds or held."""
        if not words:
            return {}
        return dict(
            connection.execute(
                "SELECT text, id FROM term WHERE text IN (SELECT value FROM carray(?))",
                (apsw.carray(tuple(words)),),
            )
        )

    def number(self, connection: apsw.Connection, documents: Sequence[Sequence[str]]) -> list[TermList]:
        """The term list of each document, new words added. Call inside `atomic()`; see `forget_unsaved`."""
        self._check_epoch(connection)
        self._add_missing(connection, {word for document in documents for word in document})
        number_of = self._numbers
        lengths = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
        numbers = np.fromiter(
            (number_of[word] for document in documents for word in document),
            dtype=np.int64,
            count=int(lengths.sum()),
        )
        return _term_lists(numbers, lengths)

    def forget_unsaved(self) -> None:
        """Drop the cache: the transaction that added words to it was rolled back."""
        self._numbers.clear()
        self._epoch = -1

    def _check_epoch(self, connection: apsw.Connection) -> None:
        epoch = int(connection.execute("SELECT value FROM meta WHERE key = 'lexicon_epoch'").get or 0)
        if epoch != self._epoch or len(self._numbers) > _CACHE_WORDS:
            self._numbers.clear()
            self._epoch = epoch

    def _add_missing(self, connection: apsw.Connection, words: Iterable[str]) -> None:
        missing = sorted(word for word in words if word not in self._numbers)
        if not missing:
            return
        known = self.lookup(connection, missing)
        new = [word for word in missing if word not in known]
        if new:
            connection.execute("INSERT INTO term (text) SELECT value FROM carray(?)", (apsw.carray(tuple(new)),))
            known.update(self.lookup(connection, new))
        self._numbers.update(known)


def _term_lists(numbers: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[TermList]:
    """Count equal numbers within each document; one sort serves the whole batch."""
    document = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    keys, counts = np.unique((document << 32) | numbers, return_counts=True)
    terms = (keys & 0xFFFFFFFF).astype("<i4").tobytes()
    saturated = np.minimum(counts, 255).astype(np.uint8).tobytes()
    bounds = np.searchsorted(keys >> 32, np.arange(len(lengths) + 1)).tolist()
    return [TermList(terms[4 * start : 4 * stop], saturated[start:stop]) for start, stop in itertools.pairwise(bounds)]
