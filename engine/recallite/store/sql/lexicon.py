"""Words and their numbers. A record's words are stored once, as numbers, and never tokenised again at open."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recallite.store.sql.repository import Repository
from recallite.store.values import TermList
from recallite.text.record_words import MOST, NAME, TAG_ONLY, RecordWords

if TYPE_CHECKING:
    from numpy.typing import NDArray


_CACHE_WORDS = 250_000


class WordNumbers:
    """The numbers of words that one store has seen, for all of its transactions.

    They hold for an epoch: `vacuum` may drop unused words and begins a new one.
    """

    def __init__(self) -> None:
        self.written: dict[str, int] = {}
        self.epoch = -1
        self.asked: dict[str, int] = {}
        self.asked_at: int | None = None

    def forget(self) -> None:
        """Drop the numbers that were written: the transaction that added words was rolled back."""
        self.written.clear()
        self.epoch = -1


class SqlLexicon(Repository):
    """The words of the store; `record_terms` is derived from them."""

    def lookup(self, words: Sequence[str]) -> dict[str, int]:
        if not words:
            return {}
        return dict(
            self._execute(
                "SELECT text, id FROM term WHERE text IN (SELECT value FROM carray(?))", (self._array(words),)
            )
        )

    def size(self) -> int | None:
        """How many words there are; None where that is not to be known."""
        return self._number("SELECT count(*) FROM term")

    def recalled(self, words: Sequence[str], generation: int) -> dict[str, int]:
        cache = self._tx.numbers
        if cache.asked_at != generation or len(cache.asked) > _CACHE_WORDS:
            cache.asked, cache.asked_at = {}, generation
        asked = cache.asked
        missing = [word for word in words if word not in asked]
        if missing:
            asked.update(self.lookup(missing))
        return {word: asked[word] for word in words if word in asked}

    def put(self, ids: Sequence[int], documents: Sequence[RecordWords]) -> None:
        """Store the term lists of records, new words added."""
        self._check_epoch()
        words = set().union(*(document.written for document in documents), *(document.tags for document in documents))
        self._add_missing(words.difference(self._tx.numbers.written))
        if len(documents) == 1:  # in 0.6 of the time that arrays take
            term_lists = [self._term_list(documents[0])]
        else:
            keys = self._keys([document.written for document in documents])
            tagged, named = (
                self._keys(words) if any(words) else None
                for words in ([document.tags for document in documents], [document.names for document in documents])
            )
            term_lists = _term_lists(len(documents), keys, tagged, named)
        self._execute_many(
            "INSERT INTO record_terms (record_id, terms, counts) VALUES (?, ?, ?)",
            [(record_id, *term_list) for record_id, term_list in zip(ids, term_lists, strict=True)],
        )

    def _term_list(self, document: RecordWords) -> TermList:
        number_of = self._tx.numbers.written
        counts = sorted([(number_of[word], count) for word, count in document.counts().items()])
        return TermList(
            struct.pack(f"<{len(counts)}i", *[number for number, _ in counts]), bytes([count for _, count in counts])
        )

    def _keys(self, documents: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """Each word's number, with the place of its document above the lower 32 bits."""
        number_of = self._tx.numbers.written
        lengths = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
        words = itertools.chain.from_iterable(documents)
        numbers = np.fromiter(map(number_of.__getitem__, words), dtype=np.int64, count=int(lengths.sum()))
        keys: NDArray[np.int64] = (np.repeat(np.arange(len(lengths), dtype=np.int64), lengths) << 32) | numbers
        return keys

    def copy(self, record_id: int, to_id: int) -> None:
        """Give a record the words of another."""
        self._execute(
            "INSERT INTO record_terms SELECT ?, terms, counts FROM record_terms WHERE record_id = ?",
            (to_id, record_id),
        )

    def drop(self, ids: Sequence[int]) -> None:
        """Remove the words of records."""
        self._execute(
            "DELETE FROM record_terms WHERE record_id IN (SELECT value FROM carray(?))", (self._id_array(ids),)
        )

    def _check_epoch(self) -> None:
        epoch = int(self._execute("SELECT value FROM meta WHERE key = 'lexicon_epoch'").get or 0)
        cache = self._tx.numbers
        if epoch != cache.epoch or len(cache.written) > _CACHE_WORDS:
            cache.written.clear()
            cache.epoch = epoch

    def _add_missing(self, words: Iterable[str]) -> None:
        """Number these words, none of which is in the cache."""
        cache = self._tx.numbers
        missing = sorted(words)
        if not missing:
            return
        known = self.lookup(missing)
        new = [word for word in missing if word not in known]
        if new:
            self._tx.add_names("term", "text", new)
            known.update(self.lookup(new))
        cache.written.update(known)


def _term_lists(
    documents: int, written: NDArray[np.int64], tagged: NDArray[np.int64] | None, named: NDArray[np.int64] | None
) -> list[TermList]:
    """Count equal keys, which are words of documents; one sort serves the whole batch."""
    every = written if tagged is None else np.concatenate([written, tagged])
    keys, counts = np.unique(every, return_counts=True)
    marked = np.minimum(counts, MOST).astype(np.uint8)
    if tagged is not None:
        tags, times = np.unique(tagged, return_counts=True)
        at = np.searchsorted(keys, tags)
        marked[at[counts[at] == times]] |= TAG_ONLY
    if named is not None:
        marked[np.searchsorted(keys, named)] |= NAME
    terms, values = (keys & 0xFFFFFFFF).astype("<i4").tobytes(), marked.tobytes()
    bounds = np.searchsorted(keys >> 32, np.arange(documents + 1)).tolist()
    return [TermList(terms[4 * start : 4 * stop], values[start:stop]) for start, stop in itertools.pairwise(bounds)]
